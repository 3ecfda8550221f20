"""Questions that plainly need a tool are told so to a small model, and no others."""

from __future__ import annotations

import pytest

from core.agents.react_prompt import instructed
from core.llm.calling.json_schema import JsonSchemaTemplate
from core.llm.calling.plain_needs import needed
from core.llm.request import ChatRequest
from core.messages.message import ASSISTANT, FUNCTION, USER, FunctionCall, Message

TOOLS = ("calculator", "current_time")
FUNCTIONS = tuple({"name": name, "description": "", "parameters": {}} for name in TOOLS)


@pytest.mark.parametrize(
    ("question", "tool"),
    [
        ("What is 12 * 7?", "calculator"),
        ("30 percent of 90?", "calculator"),
        ("Please add 4, 5 and 6.", "calculator"),
        ("7 乘 8 得多少？", "calculator"),
        ("64 的平方是多少？", "calculator"),
        ("What time is it in Rome?", "current_time"),
        ("What's the date today?", "current_time"),
        ("Is today a Friday?", "current_time"),
        ("现在是几月？", "current_time"),
        ("马德里几点了？", "current_time"),
        ("What is the time complexity of a search?", ""),
        ("In which year did the war end?", ""),
        ("What is the date of the contract?", ""),
        ("战争是哪一年结束的？", ""),
        ("商店几点开门？", ""),
        ("停电从几点到几点？", ""),
        ("会议是几点？", ""),
        ("Summarise the report of 2024-05-01.", ""),
        ("Hello!", ""),
        ("What time is it in Rome, and what is 3 * 4?", ""),
    ],
)
def test_a_plain_need_is_seen(question: str, tool: str) -> None:
    assert needed(question, TOOLS) == tool
    assert not needed(question, ("web_search",))


def request(*messages: Message) -> ChatRequest:
    chinese = not messages[0].get_text_content().isascii()
    return ChatRequest(messages, functions=FUNCTIONS, lang="zh" if chinese else "en")


def test_it_stands_in_the_models_prompt_alone() -> None:
    asked = request(Message(USER, "What is 12 * 7?"))
    assert JsonSchemaTemplate().prepare(asked).messages[-1].content == "What is 12 * 7?\n(Use calculator.)"
    assert instructed(asked, small=True)[-1].get_text_content() == "Thought: I need calculator.\nAction:"
    assert [message.role for message in instructed(asked)] == ["system", "user"]
    assert asked.messages[0].content == "What is 12 * 7?"
    chinese = request(Message(USER, "现在几点？"))
    assert JsonSchemaTemplate().prepare(chinese).messages[-1].content == "现在几点？\n（请用 current_time。）"


def test_once_a_tool_has_answered_it_is_not_asked_for_again() -> None:
    call = Message(ASSISTANT, "", function_call=FunctionCall("calculator", '{"expression": "12*7"}'))
    found = Message(FUNCTION, "84", name="calculator", extra={"function_id": "1"})
    asked = request(Message(USER, "What is 12 * 7?"), call, found)
    assert instructed(asked, small=True)[-1].get_text_content().endswith("Thought:")
