"""The first Qwen template: one running answer with marks, in English and Chinese, one call at a time or several."""

from __future__ import annotations

from typing import Any

import pytest

from core.agents.basic import FnCallAgent
from core.languages import Lang
from core.llm.calling.qwen import QwenTemplate
from core.llm.request import ChatRequest
from core.messages.content import ContentItem
from core.messages.events import MessageFinished
from core.messages.message import Message
from core.messages.transcript import Transcript, call_message
from core.testing.scripted_model import ScriptedModel
from core.tools.from_function import tool

WEATHER = {"name": "get_weather", "description": "Weather", "parameters": {"type": "object", "properties": {}}}
CODE = {"name": "code_interpreter", "description": "Python", "parameters": {"type": "object"}}
ASKED = Message("user", "w?")
CALL = "✿FUNCTION✿: get_weather\n✿ARGS✿: "


def call(call_id: str = "1", arguments: str = '{"city": "A"}', name: str = "get_weather") -> Message:
    return call_message(call_id, name, arguments)


def result(call_id: str = "1", text: str = "sunny", name: str = "get_weather") -> Message:
    return Message("function", text, name=name, extra={"function_id": call_id})


def sent(*messages: Message, lang: Lang = "en", **generate: Any) -> list[str]:
    request = ChatRequest(messages, (WEATHER, CODE), generate, lang)
    prepared = QwenTemplate().prepare(request).messages
    return ["".join(item.text or f"({item.type})" for item in message.items) for message in prepared]


def read(text: str, *messages: Message, **generate: Any) -> list[tuple[str, str, str]]:
    reader = QwenTemplate().reader(ChatRequest(messages or (ASKED,), (WEATHER, CODE), generate))
    events = [event for character in text for event in reader.feed(character)]
    said = Transcript([*events, *reader.close(), MessageFinished("stop")]).messages()
    calls = [(m.function_call.name, m.function_call.arguments) if m.function_call else ("", "") for m in said]
    return [(message.get_text_content(), *call) for message, call in zip(said, calls, strict=True)]


@pytest.mark.parametrize(
    ("lang", "parallel", "words"),
    [
        ("en", False, "zero or multiple times"),
        ("en", True, "N tools in parallel"),
        ("zh", False, "零次、一次或多次"),
        ("zh", "True", "并行调用N个工具"),
    ],
)
def test_the_prompt_speaks_the_language_and_of_one_call_or_several(lang: Lang, parallel: object, words: str) -> None:
    system, _ = sent(ASKED, lang=lang, parallel_function_calls=parallel)
    assert words in system
    assert "[get_weather,code_interpreter]" in system
    assert ("### get_weather\n\nget_weather: Weather Parameters: " if lang == "en" else "输入参数：") in system
    assert ("triple backticks" if lang == "en" else "Markdown代码块") in system


def test_an_answer_after_its_result_is_one_text_with_it() -> None:
    said = sent(ASKED, call(), result(), Message("assistant", "It is sunny."), Message("user", "Thanks."))
    assert said[1:] == [
        "w?",
        CALL + '{"city": "A"}\n✿RESULT✿: sunny\n✿RETURN✿: It is sunny.',
        "Thanks.",
    ]


def test_calls_at_once_have_their_results_one_after_the_other() -> None:
    said = sent(ASKED, call("1"), call("2", '{"city": "B"}'), result("1", "a"), result("2", "b"))
    assert said[2] == (
        CALL + '{"city": "A"}\n' + CALL + '{"city": "B"}\n✿RESULT✿: a\n✿RESULT✿: b\n✿RETURN✿'
    )  # fmt: skip


def test_a_second_call_goes_on_in_the_same_answer() -> None:
    said = sent(ASKED, Message("assistant", "Let me see."), call("1"), result("1"), call("2"), result("2", ""))
    assert said[2] == (
        f'Let me see.\n{CALL}{{"city": "A"}}\n✿RESULT✿: sunny\n✿RETURN✿: \n{CALL}{{"city": "A"}}\n✿RESULT✿: \n✿RETURN✿'
    )


def test_a_result_without_a_call_and_one_with_a_picture_are_no_obstacle() -> None:
    items = [ContentItem(text="pic:"), ContentItem(image="http://x/a.png")]
    picture = Message("function", items, name="get_weather", extra={"function_id": "1"})
    assert sent(result())[1] == "✿RESULT✿: sunny\n✿RETURN✿"
    assert sent(ASKED, call(), picture)[2].endswith("\n✿RESULT✿: pic:(image)\n✿RETURN✿")


def test_code_goes_out_in_a_fence_and_comes_back_as_an_argument() -> None:
    ran = call("1", '{"code": "print(1)"}', "code_interpreter")
    text = sent(ASKED, ran, result("1", "1", "code_interpreter"))[2]
    assert text.startswith("✿FUNCTION✿: code_interpreter\n✿ARGS✿: \n```py\nprint(1)\n```\n✿RESULT✿: 1")
    body = '✿FUNCTION✿: code_interpreter\n✿ARGS✿: \n```py\nd = {"a": "✿x"}\n```\n'
    assert read(body) == [("", "code_interpreter", '{"code": "d = {\\"a\\": \\"✿x\\"}"}')]


def test_a_named_choice_begins_the_call_and_its_arguments_are_read() -> None:
    assert sent(ASKED, function_choice="get_weather")[-1] == "✿FUNCTION✿: get_weather"
    expected = [("", "get_weather", '{"city": "A"}')]
    for reply in (
        '\n✿ARGS✿: {"city": "A"}',
        f'{CALL}{{"city": "A"}}',
        '{"name": "get_weather", "arguments": {"city": "A"}}',
    ):
        assert read(reply, function_choice="get_weather") == expected
    assert read("No.", function_choice="get_weather") == [("No.", "", "")]


def test_the_colon_of_a_mark_that_the_prompt_ended_with_is_not_shown() -> None:
    answered = (ASKED, call(), result())
    assert read(": It is sunny.", *answered) == [("It is sunny.", "", "")]
    assert read("✿RETURN✿: It is sunny.", *answered) == [("It is sunny.", "", "")]
    assert read(":) hello") == [(":) hello", "", "")]
    assert read("✿RETURN✿: Hello.") == [("Hello.", "", "")]


def test_the_name_is_read_however_it_is_dressed() -> None:
    for start in (
        "✿FUNCTION✿: `get_weather`\n✿ARGS✿: ",
        "✿FUNCTION✿:get_weather ✿ARGS✿:",
        "✿FUNCTION✿: get_weather\n\n",
    ):
        assert read(start + '{"x": 1} <!-- so -->\nThen.') == [("", "get_weather", '{"x": 1}'), ("Then.", "", "")]
    assert read("✿FUNCTION✿: ") == [("✿FUNCTION✿:", "", "")]


def test_an_agent_works_with_it_through_a_whole_reply() -> None:
    @tool
    def double(n: int) -> int:
        """Twice a number.

        Args:
            n: The number.
        """
        return 2 * n

    first = "I reckon.\n✿FUNCTION✿: double\n✿ARGS✿: {'n': 2,}\n✿FUNCTION✿: double\n✿ARGS✿: {\"n\": 3}\n✿RESULT✿: 9"
    model = ScriptedModel(first, ": 4 and 6.", native=False)
    model.generate_cfg = {"fncall_prompt_type": "qwen", "parallel_function_calls": True}
    said = FnCallAgent([double], model).run_nonstream([{"role": "user", "content": "q"}])
    assert [message["content"] for message in said] == ["I reckon.", "", "", "4", "6", "4 and 6."]
    assert model.requests[1].messages[-1].items[-1].text == "\n✿RETURN✿"
    assert model.requests[0].generate["stop"] == ["✿RESULT✿", "✿RETURN✿"]
