"""`VirtualMemoryAgent`: the model calls for what it needs, and what was found stands in its system message."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from core.agents.compat.articles import ArticleAgent
from core.agents.compat.virtual_memory import VirtualMemoryAgent
from core.messages.events import TextDelta
from core.messages.message import Message
from core.messages.transcript import Transcript, call_message
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import Policy
from core.tools.from_function import tool

ASKED = [Message("user", "What is the harbour made of?")]


def looks_up(what: str) -> Reply:
    return Reply(calls=[("ask_documents", {"query": what})])


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    texts = {"harbour.txt": "The harbour is made of granite.", "bridge.txt": "The bridge is made of cedar."}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return [str(tmp_path / name) for name in texts]


def asked(files: list[str], *turns: Any, messages: Any = ASKED, **options: Any) -> tuple[list[Message], ScriptedModel]:
    model = ScriptedModel(*turns)
    return VirtualMemoryAgent(llm=model, files=files, **options).run_nonstream(messages), model


def read(model: ScriptedModel, turn: int) -> list[str]:
    return [message.get_text_content() for message in model.requests[turn].messages]


def test_nothing_is_searched_until_the_model_calls(files: list[str]):
    reply, model = asked(files, "Good morning.", messages=[Message("user", "Say good morning to the crew.")])
    assert len(reply) == 1
    assert "- harbour.txt" in read(model, 0)[0]
    assert "granite" not in "".join(read(model, 0))
    assert [function["name"] for function in model.requests[0].functions] == ["ask_documents"]


def test_what_was_found_stands_in_the_system_message_and_is_cited(files: list[str]):
    reply, model = asked(files, looks_up("harbour granite"), "The harbour is made of granite.")
    told, question, _, result = read(model, 1)
    assert "The harbour is made of granite." in told
    assert "granite" not in question + result
    assert "system message" in result
    call, shown, answer = reply
    assert call.function_call is not None
    assert "granite" in shown.get_text_content(), "the user sees what was found"
    assert (shown.extra or {})["passages"][0]["document"] in {"harbour.txt", "bridge.txt"}
    assert "[1]" in answer.get_text_content() or "[2]" in answer.get_text_content()


def test_what_was_found_first_is_let_go_where_there_is_no_more_room(tmp_path: Path):
    for name in ("north", "south", "west"):
        (tmp_path / f"{name}.txt").write_text(
            f"The {name} tower has a bell. " + f"About the {name} all is known. " * 60
        )
    files = [str(path) for path in sorted(tmp_path.glob("*.txt"))]
    searches = [looks_up(f"{name} tower bell") for name in ("north", "south", "west")]
    config = {"max_ref_token": 150, "whole_documents": False, "top_k": 1}
    reply, model = asked(files, *searches, "Three bells.", rag_cfg=config)
    told, *rest = read(model, 3)
    assert "west tower" in told
    assert "north tower" not in told
    assert "search again" in rest[2]
    assert len([message for message in reply if message.role == "function"]) == 3


def test_a_model_that_can_read_little_is_not_told_more_than_that(tmp_path: Path):
    for name in ("north", "south"):
        (tmp_path / f"{name}.txt").write_text(
            f"The {name} tower has a bell. " + f"About the {name} all is known. " * 80
        )
    paths = [str(path) for path in sorted(tmp_path.glob("*.txt"))]
    config = {"whole_documents": False, "top_k": 1}
    for most, told_of in ((1000, ["south"]), (400, [])):
        turns = [looks_up("north tower bell"), looks_up("south tower bell"), "Two bells."]
        model = ScriptedModel({"script": turns, "generate_cfg": {"max_input_tokens": most}})
        reply = VirtualMemoryAgent(llm=model, files=paths, rag_cfg=config).run_nonstream(ASKED)
        assert reply[-1].content == "Two bells."
        assert [name for name in ("north", "south") if f"The {name} tower" in read(model, 2)[0]] == told_of
        assert "The south tower" in "".join(read(model, 2))


def test_the_words_are_in_the_language_of_the_question(files: list[str]):
    _, model = asked(files, looks_up("harbour"), "花岗岩。", messages=[Message("user", "港口是用什么建造的？")])
    assert "用户有以下文档" in read(model, 0)[0]
    assert read(model, 1)[-1].startswith("已找到")


def test_a_small_model_has_to_call_unless_it_is_greeted(files: list[str]):
    for question, choice in (("What is the harbour made of?", "ask_documents"), ("Hello!", None)):
        model = ScriptedModel(looks_up("harbour"), "Granite.")
        model.small = True
        VirtualMemoryAgent(llm=model, files=files).run_nonstream([Message("user", question)])
        assert model.requests[0].generate.get("function_choice") == choice
        assert model.requests[1].generate.get("function_choice") in {None, "auto"}


def test_a_search_that_is_forbidden_is_not_made_and_what_was_read_is_known_to_whoever_decides(files: list[str]):
    reply, model = asked(files, looks_up("harbour"), "I may not look.")
    assert "granite" in reply[1].get_text_content()
    model = ScriptedModel(looks_up("harbour"), "I may not look.")
    denied = VirtualMemoryAgent(llm=model, files=files)
    reply = denied.run_nonstream(ASKED, approval=Policy(deny=("ask_documents",)))
    assert "granite" not in "".join(read(model, 1))

    private: list[bool] = []

    @tool
    def post(text: str) -> str:
        """Send a text."""
        return text

    class Watching(Policy):
        def verdict(self, tool: Any, arguments: Any, seen: Any) -> Any:
            private.append(seen.private)
            return "refuse"

    model = ScriptedModel(Reply(calls=[("post", {"text": "x"})]), "Not sent.")
    VirtualMemoryAgent([post], model, files=files).run_nonstream(ASKED, approval=Watching())
    assert private == [True]


@pytest.mark.anyio
async def test_leaving_early_stops_the_model(files: list[str]):
    model = ScriptedModel(looks_up("harbour"), Reply(text="granite " * 50, pace=0.001))
    async with aclosing(VirtualMemoryAgent(llm=model, files=files).stream(ASKED)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break
    assert model.closed == 1


@pytest.mark.anyio
@pytest.mark.parametrize("kind", [VirtualMemoryAgent, ArticleAgent])
async def test_a_reply_that_was_broken_off_in_its_search_goes_on_with_it(files: list[str], kind: Any):
    model = ScriptedModel("Of granite.")
    broken_off = [*ASKED, call_message("c1", "ask_documents", '{"query": "harbour granite"}')]
    reply = Transcript()
    async with aclosing(kind(llm=model, files=files).stream(broken_off, may_have_run=())) as events:
        async for event in events:
            reply.apply(event)
    assert len(model.requests) == 1
    assert "made of granite" in "".join(read(model, 0))
    assert [message.role for message in reply.messages()] == ["function", "assistant"]
