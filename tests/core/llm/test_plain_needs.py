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


WITH_CODE = (*TOOLS, "code_interpreter")


@pytest.mark.parametrize(
    "question",
    [
        "Plot the first ten squares.",
        "Use Python to compute 17 factorial.",
        "Compute 3 * 4 in Python.",
        "Could you graph y = x^3 - 2x?",
        "I need a pie chart: rent 50, food 30.",
        "Run this: print(1)",
        "Simulate 1000 rolls with Python and show the mean.",
        "Use the code interpreter to reverse a word.",
        "画出前十个平方数的图。",
        "用 Python 计算 17 的阶乘。",
        "运行这段代码：print(1)",
        "写一个脚本并运行，列出质数。",
        "我要一个饼图：房租 50，吃饭 30。",
    ],
)
def test_code_is_plainly_asked_for(question: str) -> None:
    assert needed(question, WITH_CODE) == "code_interpreter"
    assert needed(question, TOOLS) != "code_interpreter"


@pytest.mark.parametrize(
    "question",
    [
        "What is Python?",
        "How do I reverse a list in Python?",
        "What is the plot of Hamlet?",
        "Summarise the plot of Romeo and Juliet.",
        "Which chart is best for shares?",
        "Is Python a compiled language?",
        "Write a haiku about snakes.",
        "Python 是什么？",
        "Python 里怎么反转列表？",
        "散点图有什么用？",
        "写一首关于春天的诗。",
    ],
)
def test_who_speaks_of_code_or_charts_does_not_ask_for_code(question: str) -> None:
    assert needed(question, WITH_CODE) == ""


def choices(question: str, *names: str, **generate: str) -> list[str]:
    """What a small model may choose from."""
    functions = tuple({"name": name, "description": "", "parameters": {}} for name in names)
    asked = ChatRequest((Message(USER, question),), functions=functions, generate=generate)
    schema = JsonSchemaTemplate().prepare(asked).generate["response_format"]["json_schema"]["schema"]
    return [option["properties"]["name"]["const"] for option in schema.get("anyOf", [schema])]


def test_a_small_model_runs_code_where_that_is_plainly_asked_for_and_nowhere_else() -> None:
    assert choices("Plot the first ten squares.", *WITH_CODE) == ["code_interpreter"]
    assert choices("What is Python?", *WITH_CODE) == ["respond", *TOOLS]
    assert choices("What is Python?", "code_interpreter") == ["respond", "code_interpreter"]
    assert choices("Plot it.", *TOOLS) == ["respond", *TOOLS]
    assert choices("Hello!", *WITH_CODE, function_choice="code_interpreter") == ["code_interpreter"]


def test_a_call_for_code_that_is_plainly_asked_for_is_read() -> None:
    asked = ChatRequest(
        (Message(USER, "Plot the first ten squares."),),
        functions=tuple({"name": name, "description": "", "parameters": {}} for name in WITH_CODE),
    )
    reader = JsonSchemaTemplate().reader(asked)
    events = [*reader.feed('{"name": "code_interpreter", "arguments": {"code": "print(1)"}}'), *reader.close()]
    assert reader.calls == 1
    assert any("print(1)" in str(event) for event in events)


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
