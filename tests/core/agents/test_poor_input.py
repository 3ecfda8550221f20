"""What a program gives wrongly: one sentence says what is wrong and what to write, never an error of Python's own."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.agents.assistant import Assistant
from core.agents.basic import BasicAgent, FnCallAgent
from core.agents.memory import Memory
from core.errors import (
    BadMessagesError,
    BrokenDocumentError,
    ModelRefusedError,
    ModelServiceError,
    ParlourError,
    SettingsError,
    UnknownNameError,
)
from core.llm.base import BaseChatModel
from core.llm.catalog import LLM_REGISTRY
from core.llm.open_model import get_chat_model
from core.rag.library import Library
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.base import BaseTool

ASKED: list[Any] = [{"role": "user", "content": "Go"}]
OPENAI: dict[str, Any] = {"model": "m", "base_url": "http://127.0.0.1:1/v1", "api_key": "k"}


def agent() -> Any:
    return BasicAgent(llm=ScriptedModel("fine"))


def asked(content: Any) -> Any:
    return agent().run_nonstream([{"role": "user", "content": content}])


def with_parameters(parameters: Any) -> BaseTool:
    class Own(BaseTool):
        name = "own"

    Own.parameters = parameters
    return Own()


def library(folder: Path) -> Library:
    return Library.open(folder / "library")


WRONG: dict[str, tuple[Callable[[Path], Any], type[ParlourError], str]] = {
    "no message": (lambda _: agent().run_nonstream([]), BadMessagesError, "There is no message to answer. Give"),
    "no message, streamed": (lambda _: agent().run([]), BadMessagesError, "There is no message to answer. Give"),
    "an empty message": (
        lambda _: agent().run_nonstream([{"role": "user", "content": ""}]),
        BadMessagesError,
        "The last message is empty. Give it words, or a file.",
    ),
    "an unknown language": (
        lambda _: agent().run(ASKED, lang="xx"),
        SettingsError,
        "lang cannot be 'xx'. Give en or zh.",
    ),
    "one name for a list of tools": (
        lambda _: FnCallAgent("calculator", ScriptedModel("x")),  # type: ignore[arg-type]
        SettingsError,
        "function_list must be a list, not str. Write ['calculator'].",
    ),
    "one dict for a list of tools": (
        lambda _: FnCallAgent({"name": "calculator"}, ScriptedModel("x")),  # type: ignore[arg-type]
        SettingsError,
        "Write [{'name': 'calculator'}].",
    ),
    "one tool for a list of tools": (
        lambda _: FnCallAgent(with_parameters([]), ScriptedModel("x")),  # type: ignore[arg-type]
        SettingsError,
        "function_list must be a list, not Own. Write [the_tool].",
    ),
    "a class that is no tool": (lambda _: FnCallAgent([dict]), SettingsError, "This is no tool: <class 'dict'>. Give"),
    "a function without a signature": (
        lambda _: FnCallAgent([max]),
        SettingsError,
        "Python does not tell the parameters of <built-in function max>. Write a function",
    ),
    "a number as content": (lambda _: asked(7), BadMessagesError, "neither a text nor a list of parts. Give a text"),
    "numbers as parts": (lambda _: asked([7]), BadMessagesError, "A part of the content cannot be int. Give"),
    "a number among parts": (lambda _: asked(["a", 7]), BadMessagesError, "A part of the content cannot be int. Give"),
    "an unknown part": (
        lambda _: asked([{"type": "hologram", "hologram": "x"}]),
        BadMessagesError,
        "no part of the type 'hologram'. Known: text, image_url",
    ),
    "a part without its value": (
        lambda _: asked([{"type": "image_url", "image_url": {"link": "x"}}]),
        BadMessagesError,
        'type \'image_url\' cannot be read. Write it as {"type": "image_url", "image_url": {"url": "…"}}',
    ),
    "no questions": (lambda _: agent().map(None), BadMessagesError, "Questions cannot be given as None. Give a list"),
    "one question for many": (lambda _: agent().map("Go"), BadMessagesError, "Questions cannot be given as str."),
    "no folder": (lambda _: Library.open(None), SettingsError, "folder cannot be given as None. Give the path of a"),  # type: ignore[arg-type]
    "bytes as a document": (
        lambda folder: library(folder).add(b"x"),  # type: ignore[arg-type]
        SettingsError,
        "A document cannot be given as bytes. Give its path or its address; a text goes to add_text.",
    ),
    "a text as parameters": (
        lambda _: with_parameters("x"),
        SettingsError,
        "The parameters of the tool 'own' cannot be str. Write {",
    ),
    "texts as parameters": (lambda _: with_parameters(["x"]), SettingsError, "has no name: 'x'. Write {"),
    "a parameter without a name": (lambda _: with_parameters([{"type": "string"}]), SettingsError, "has no name"),
    "None as a file": (
        lambda _: Assistant(llm=ScriptedModel("x"), files=[None]),  # type: ignore[list-item]
        SettingsError,
        "files[0] cannot be given as None. Give a path, or an address on the web.",
    ),
    "bytes as a file": (
        lambda _: Memory(files=[b"x"]),  # type: ignore[list-item]
        SettingsError,
        "files[0] cannot be given as bytes.",
    ),
    "a file that is not there": (
        lambda folder: Assistant(llm=ScriptedModel("x"), files=[str(folder / "gone.pdf")]),
        BrokenDocumentError,
        "There is no file 'gone.pdf' in '",
    ),
    "an empty folder": (
        lambda folder: Assistant(llm=ScriptedModel("x"), files=[str(folder)]),
        BrokenDocumentError,
        "has no files. Look at how it is written.",
    ),
    "a pattern that nothing matches": (
        lambda folder: Assistant(llm=ScriptedModel("x"), files=[str(folder / "*.pdf")]),
        BrokenDocumentError,
        "No file matches '",
    ),
    "another model to fall back on": (
        lambda _: get_chat_model({**OPENAI, "fallback": [OPENAI]}),
        SettingsError,
        (
            "A model has no setting 'fallback'. A dict is one model: give a list of models, and the next one answers "
            "where one cannot."
        ),
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_value_is_refused_in_a_sentence_that_says_what_to_give(what: str, tmp_path: Path) -> None:
    give, kind, said = WRONG[what]
    with pytest.raises(kind) as caught:
        give(tmp_path)
    assert said in str(caught.value)
    assert str(caught.value).endswith((".", "}"))


def test_what_was_never_sent_bears_no_code_of_a_service_and_programs_still_find_one() -> None:
    tool = {"name": "f", "parameters": {"type": "string"}}
    for ask in (lambda: asked(7), lambda: ScriptedModel("x").chat(ASKED, functions=[tool], stream=False)):
        with pytest.raises(ModelRefusedError) as caught:
            ask()
        assert (caught.value.code, "Error code" in str(caught.value)) == ("400", False)
    assert str(ModelServiceError(code="503", message="Busy.")) == "Error code: 503. Busy."


def test_an_unknown_name_is_shown_under_its_public_class() -> None:
    with pytest.raises(KeyError) as caught:
        LLM_REGISTRY["transformer"]
    assert type(caught.value) is UnknownNameError
    assert str(caught.value) == "There is no model type named 'transformer'. Did you mean 'transformers'?"


PARTS: list[Any] = [
    {"type": "text", "text": "see"},
    {"type": "image_url", "image_url": {"url": "http://x/a.png"}},
    {"type": "image_url", "image_url": "http://x/b.png"},
    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    {"type": "video_url", "video_url": {"url": "http://x/a.mp4"}},
    {"type": "file", "file": {"file_data": "data:text/plain;base64,YQ=="}},
]


def test_messages_in_openai_s_form_are_read_wherever_messages_are_given() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Ghent"}'}}
    conversation: list[Any] = [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": PARTS},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "rain"}]},
        {"role": "user", "content": ["and", "tomorrow?"]},
    ]
    before = json.dumps(conversation)
    model = ScriptedModel("Rain, too.")
    model.support_multimodal_input = model.support_audio_input = True
    assert BasicAgent(llm=model).run_nonstream(conversation) == [{"role": "assistant", "content": "Rain, too."}]
    model.chat(conversation, stream=False)
    for request in model.requests:
        system, first, called, answered, last = request.messages
        assert (system.role, system.get_text_content()) == ("system", "Be kind.")
        assert [item.type for item in first.items] == ["text", "text", "image", "image", "audio", "video"]
        assert called.function_call is not None
        assert called.function_call.arguments == '{"city": "Ghent"}'
        assert (answered.role, answered.name, answered.get_text_content()) == ("function", "weather", "rain")
        assert last.get_text_content().split() == ["and", "tomorrow?"]
    assert json.dumps(conversation) == before


def test_parts_with_a_type_keep_what_else_a_message_of_ours_has() -> None:
    model = ScriptedModel("fine")
    extra = {"function_id": "c1", "own": 1}
    content = [{"type": "text", "text": "rain"}]
    answered = {"role": "function", "name": "weather", "content": content, "extra": extra}
    call = {"name": "weather", "arguments": "{}"}
    said = {"role": "assistant", "content": "", "function_call": call, "extra": {"function_id": "c1"}}
    BasicAgent(llm=model).run_nonstream([*ASKED, said, answered, *ASKED])
    assert model.requests[0].messages[2].extra == extra


@pytest.mark.parametrize("made", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
@pytest.mark.parametrize("used", [False, True])
def test_an_agent_can_be_copied_and_pickled_before_and_after_it_was_used(
    made: Callable[[Any], Any], used: bool, tmp_path: Path
) -> None:
    (tmp_path / "sky.txt").write_text("The sky over Ghent is green.", encoding="utf-8")
    agent = Assistant(["calculator", "storage"], OPENAI, files=[str(tmp_path / "sky.txt")], name="Ann")
    if used:
        with pytest.raises(ModelServiceError):
            agent.run_nonstream(ASKED)
    other = made(agent)
    assert other.llm is not agent.llm
    assert (other.name, list(other.function_map), other.llm.model) == ("Ann", ["calculator", "storage"], "m")
    other.llm = ScriptedModel("Green [1].")
    reply = other.run_nonstream([{"role": "user", "content": "Which colour is the sky over Ghent?"}])
    assert "The sky over Ghent is green." in reply[1]["content"]


def test_a_model_of_one_s_own_answers_from_its_copy_and_not_from_where_it_was_copied() -> None:
    class Counts(BaseChatModel):
        asked = 0

        def _chat_no_stream(self, messages: list[Any], generate_cfg: dict[str, Any]) -> list[Any]:
            self.asked += 1
            return [{"role": "assistant", "content": str(self.asked)}]

    first = Counts({"model": "own"})
    first.quick_chat("?")
    second = copy.deepcopy(first)
    assert (second.quick_chat("?"), second.asked, first.asked) == ("2", 2, 1)


def test_a_library_is_shared_by_copies_of_an_agent_and_says_that_it_cannot_be_pickled(tmp_path: Path) -> None:
    with library(tmp_path) as opened:
        assert copy.deepcopy(opened) is opened
        with pytest.raises(TypeError, match=r"cannot be pickled: open it again with Library.open"):
            pickle.dumps(opened)


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        (float("nan"), '"NaN"'),
        ({"a": [float("inf"), 1.5], "b": -float("inf")}, {"a": ["Infinity", 1.5], "b": "-Infinity"}),
    ],
)
def test_what_is_no_number_in_json_is_told_as_text(returned: Any, told: Any) -> None:
    class Odd(BaseTool):
        name = "odd"
        description = "Odd."

        def call(self, params: str | dict[str, Any], **kwargs: Any) -> Any:
            return returned

    reply = FnCallAgent([Odd()], ScriptedModel(Reply(calls=[("odd", {})]), "after")).run_nonstream(ASKED)

    def refuse(name: str) -> Any:
        raise AssertionError(name)

    text = reply[1]["content"]
    assert json.loads(text, parse_constant=refuse) == (told if isinstance(told, dict) else json.loads(told))
