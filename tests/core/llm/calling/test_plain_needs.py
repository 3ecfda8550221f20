"""Questions that plainly need a tool are told so to a small model, and no others."""

from __future__ import annotations

import pytest

from core.agents.react import with_instructions
from core.llm.calling.json_schema import CODE, JsonSchemaTemplate, needed
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


CHARTS = (
    "Roll two dice a thousand times and plot the sums.",
    "Toss a coin 500 times and chart how often heads came up.",
    "Take the numbers 3, 9, 27 and make a bar chart of them.",
    "Generate 200 random points and draw them as a scatter plot.",
    "Compute the first 20 Fibonacci numbers and graph them.",
    "Simulate a random walk and visualise it.",
    "Load the CSV and then plot sales by month.",
    "Show me the sine curve.",
    "Show me the graph of the cosine function.",
    "Draw the parabola y = x^2.",
    "Sort these numbers with a Python script: 4, 2, 9.",
    "Sketch sin(x) and cos(x) together.",
    "Write a program that prints primes below 50 and run it.",
    "Draw a histogram of 1000 normal samples.",
    "Estimate pi by throwing random points and show a plot of it.",
    "Execute this snippet: print(2**10)",
    "Please plot exp(-x) between 0 and 5.",
    "Count the letters in this text and plot the frequencies: hello world",
    "Can you roll a die 600 times and graph the results?",
    "Fit a line to (1,2), (2,4.1), (3,5.9) and plot it.",
    "给我余弦函数的图像",
    "掷两个骰子一千次，把点数之和画出来。",
    "掷两个骰子，把结果画出来",
    "把这组数据画成折线图：1, 4, 9",
    "抛硬币一百次，画出正面次数的分布。",
    "给我看看 y = x^2 的曲线",
    "帮我绘制正弦函数",
    "随机生成一百个点并绘图",
    "把每月的销售额可视化：1月 3，2月 5",
    "用 Python 排序：4, 2, 9",
    "展示一下对数函数的图象",
    "生成一千个正态随机数，画直方图",
    "画一下 sin(x)",
    "模拟随机游走并把路径画出来",
    "写一段程序算质数并运行",
    "请把上面的数字做成柱状图",
    "来一张房价的箱线图：3, 5, 9",
    "执行：print(3)",
    "给我一张抛物线的图",
    "统计这些字母出现的次数，然后绘成图表",
)
WORDS_OF_CHARTS = (
    "Draw me a picture of a cat.",
    "Draw a conclusion from these two reports.",
    "Roll the dough and let it rest.",
    "The plot of the film is thin; tell me the ending.",
    "Read chapter two and summarise the plot.",
    "Find the document and tell me the plot of it.",
    "Tell me a story about two dice.",
    "Show me the way to the station.",
    "Write a story with a plot twist.",
    "Make a list of ten fruits and sort them.",
    'Translate "plot the course" into French.',
    "Give me an outline of the charter.",
    "Who invented the graph?",
    "Describe the curve of the river in the text.",
    "How many times must I roll two dice to get a six?",
    "Compare the two plots of land in the contract.",
    "Explain the scatter plot on page three.",
    "Give me the image of a sunset.",
    "Should we chart a new course?",
    "Draw up a contract for the sale and sign the plot over.",
    "画一只猫",
    "画家梵高出生在荷兰",
    "给我讲个故事，关于两个骰子",
    "给我余弦定理的公式",
    "这幅图像里有一只狗",
    "图像识别的原理是什么？",
    "给我一张猫的图片",
    "把这段话翻译成英文：请画出来",
    "掷骰子的规则是怎样的？",
    "请总结这份文件中的图表",
    "他把心里话画出来了吗？",
    "要点归纳：画展的影响",
    "动画图书推荐三本",
    "给我推荐一本图画书",
    "这条曲线公路在哪里？",
    "地图上哪里有湖？",
    "给我介绍一下图像处理",
    "看图写话：一只小猫",
    "描述一下这张图",
    "把文件里的计划画重点",
    "我要一幅企鹅的图像",
    "Show me the log.",
    "Make a log file of the day.",
    "I need the sine of 30 degrees.",
    "Give me the cosine rule.",
    "Compare the characters and plot structure of both films.",
    "Give me a single sentence.",
    "Draw attention to the function of the liver.",
    "给我讲一个画家的故事",
    "这个人画了一幅画，讲讲它",
    "统计学家的画像描述一下",
    "给我解释一下函数",
    "把图像的背景描述出来",
    "我要看图书",
    "请介绍可视化",
)


@pytest.mark.parametrize("question", CHARTS)
def test_what_is_worked_out_first_or_has_a_curve_is_drawn_by_code(question: str) -> None:
    assert needed(question, WITH_CODE) == "code_interpreter"


@pytest.mark.parametrize("question", WORDS_OF_CHARTS)
def test_stories_pictures_and_courses_are_not_drawn_by_code(question: str) -> None:
    assert needed(question, WITH_CODE) != "code_interpreter"


def test_of_a_long_text_only_the_ends_are_looked_at() -> None:
    pasted = "draw a " * 8000
    assert needed(f"Plot this: {pasted}", WITH_CODE) == needed(f"{pasted}. Please plot it.", WITH_CODE) == CODE
    assert needed(f"{pasted}. Please plot it. {pasted}", WITH_CODE) == ""


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
    assert with_instructions(asked, small=True)[-1].get_text_content() == "Thought: I need calculator.\nAction:"
    assert [message.role for message in with_instructions(asked)] == ["system", "user"]
    assert asked.messages[0].content == "What is 12 * 7?"
    chinese = request(Message(USER, "现在几点？"))
    assert JsonSchemaTemplate().prepare(chinese).messages[-1].content == "现在几点？\n（请用 current_time。）"


def test_once_a_tool_has_answered_it_is_not_asked_for_again() -> None:
    call = Message(ASSISTANT, "", function_call=FunctionCall("calculator", '{"expression": "12*7"}'))
    found = Message(FUNCTION, "84", name="calculator", extra={"function_id": "1"})
    asked = request(Message(USER, "What is 12 * 7?"), call, found)
    assert with_instructions(asked, small=True)[-1].get_text_content().endswith("Thought:")
