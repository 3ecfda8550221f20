"""Prompts of the template for small models, in both languages, and the questions that plainly need a tool."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from core.messages.json_text import compact
from core.messages.message import ASSISTANT, USER, Message

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from core.languages import Lang


ROUTER: Mapping[Lang, str] = {
    "en": """You reply with one JSON object. Choose a tool only if it is needed to answer, else choose "respond".
Tools:
- respond: answer in your own words {{"text": "the whole answer"}}
{tools}

{examples}""",
    "zh": """你用一个 JSON 对象回复。只有在需要时才选择工具，否则选择 "respond"。
工具：
- respond: 用自己的话回答 {{"text": "完整的回答"}}
{tools}

{examples}""",
}

FACTS: Mapping[Lang, str] = {
    "en": "Facts:\n{facts}\n\nQuestion: {question}\nAnswer the question from the facts, briefly.",
    "zh": "资料：\n{facts}\n\n问题：{question}\n请根据资料用中文简要回答问题。",
}

TASK: Mapping[Lang, str] = {
    "en": "Text:\n{facts}\n\nTask: {question} Use nothing but the text above, and write the result only.",
    "zh": "文字：\n{facts}\n\n任务：{question}只根据以上文字，用中文，只写结果。",
}
LETTER: Mapping[Lang, str] = {
    "en": "Text:\n{facts}\n\nTask: {question} Use every line of the text, in whole sentences. Add nothing.",
    "zh": "文字：\n{facts}\n\n任务：{question}写成通顺的句子，每一条都要写到，不要添加别的内容。",
}

# A model of half a billion parameters invents a letter unless it has just seen one made from a few lines.
_EXAMPLE: Mapping[Lang, tuple[str, str, str]] = {
    "en": (
        """- To: the parents of Park School.
- Because the floor will be cleaned, the library will be closed on 3 June, from 8:00 to 10:00.
- Please return books at the side door.
- Questions? Ask Mr Lind, the librarian.""",
        "Turn this into a short letter to the parents.",
        """Dear parents of Park School,

Because the floor will be cleaned, the library will be closed on 3 June, from 8:00 to 10:00. \
Please return books at the side door.

If you have questions, please ask Mr Lind, the librarian.

Kind regards""",
    ),
    "zh": (
        """- 收信人：阳光小学的各位家长。
- 因清洗地板，6 月 3 日 8:00 至 10:00 图书馆闭馆。
- 请从侧门还书。
- 有问题请找图书管理员林先生。""",
        "把这些写成一封给家长的简短的信。",
        """阳光小学的各位家长：

您好！因清洗地板，6 月 3 日 8:00 至 10:00 图书馆闭馆。请从侧门还书。

如有问题，请找图书管理员林先生。

谢谢配合！""",
    ),
}

_A_LETTER = re.compile(
    r"\b(letter|e-?mail|message|notice|invitation|announcement)s?\b|信|邮件|通知|公告|邀请|启事", re.IGNORECASE
)
_PASSAGE_HEAD = re.compile(r"^\[\d+\] \(.*\)\n", re.MULTILINE)

_A_TASK = re.compile(
    r"\s*(please\s+)?(turn|write|rewrite|draft|compose|translate|convert|make|list|create|reply|shorten|extract)\b"
    r"|\s*(请|请你|帮我|帮忙)?(把|将|写|改写|起草|翻译|列出|整理|生成|拟)",
    re.IGNORECASE,
)

_HELLO = {"en": ("Hello!", "Hello! How can I help you?"), "zh": ("你好！", "你好！有什么可以帮你？")}
_FACT = {
    "en": ("Why is the sky blue?", "Air scatters blue light more than red light."),
    "zh": ("天空为什么是蓝色的？", "因为空气散射蓝光比红光多。"),
}

Example = tuple[str, str, "Mapping[str, str]"]

EXAMPLES: Mapping[Lang, Sequence[Example]] = {
    "en": [
        (_HELLO["en"][0], "respond", {"text": _HELLO["en"][1]}),
        ("What is 17% of 240?", "calculator", {"expression": "17% of 240"}),
        (_FACT["en"][0], "respond", {"text": _FACT["en"][1]}),
        ("What time is it in Rome?", "current_time", {"timezone": "Rome"}),
        ("What day is it today?", "current_time", {"timezone": "here"}),
        (
            "Draw a bar chart of 3 pens and 5 cups.",
            "code_interpreter",
            {"code": "import matplotlib.pyplot as plt\nplt.bar(['pens', 'cups'], [3, 5])\nplt.show()"},
        ),
        ("Use Python to sort 2, 9, 4.", "code_interpreter", {"code": "print(sorted([2, 9, 4]))"}),
        ("What does my contract say about rent?", "ask_documents", {"query": "contract rent"}),
    ],
    "zh": [
        (_HELLO["zh"][0], "respond", {"text": _HELLO["zh"][1]}),
        ("240 的 17% 是多少？", "calculator", {"expression": "240 的 17%"}),
        (_FACT["zh"][0], "respond", {"text": _FACT["zh"][1]}),
        ("罗马现在几点？", "current_time", {"timezone": "罗马"}),
        ("今天星期几？", "current_time", {"timezone": "本地"}),
        (
            "画一张柱状图：笔 3，杯子 5。",
            "code_interpreter",
            {"code": "import matplotlib.pyplot as plt\nplt.bar(['笔', '杯子'], [3, 5])\nplt.show()"},
        ),
        ("用 Python 给 2、9、4 排序。", "code_interpreter", {"code": "print(sorted([2, 9, 4]))"}),
        ("我的合同里房租怎么规定？", "ask_documents", {"query": "合同 房租"}),
    ],
}


def asked_about(facts: str, question: str, lang: Lang) -> list[Message]:
    """The question or task together with the tools' results; a letter gets an example before it.

    For a task, passage headings are removed from the results: they would be copied.
    """
    if not _A_TASK.match(question):
        return [Message(USER, FACTS[lang].format(facts=facts, question=question))]
    facts = _PASSAGE_HEAD.sub("", facts)
    if not _A_LETTER.search(question):
        return [Message(USER, TASK[lang].format(facts=facts, question=question))]
    lines, asked, letter = _EXAMPLE[lang]
    return [
        Message(USER, LETTER[lang].format(facts=lines, question=asked)),
        Message(ASSISTANT, letter),
        Message(USER, LETTER[lang].format(facts=facts, question=question)),
    ]


def example_lines(examples: Sequence[Example], names: Collection[str]) -> str:
    """The examples for the tools on offer: questions with their JSON."""
    shown = [example for example in examples if example[1] == "respond" or example[1] in names]
    return "\n".join(
        f"{question}\n{compact({'name': name, 'arguments': arguments})}" for question, name, arguments in shown
    )


_NOW_EN: Final = r"(?:time|date|day(?: of the week)?|weekday|month|year)"
_NOW_ZH: Final = r"(?:几点|几号|几月|几日|星期几|周几|礼拜几|哪一?[年月天]|什么(?:日期|时间|时候)|多少号|日期|时间)"
_THIS_ZH: Final = r"(?:现在|今天|今日|今年|本月|目前|当前|此刻)"
_END: Final = r"(?=\s*(?:[?.!,]|$|in |now\b|right now\b|today\b|there\b|here\b|at the moment\b|please\b))"
CODE: Final = "code_interpreter"
_CHART_EN: Final = r"(?:plot|graph|histogram|diagram|heat\s?map|(?:\w+\s+)?chart|scatter(?:\s?plot)?|box\s?plot)s?"
_MAKE_EN: Final = r"(?:make|draw|create|show|give|produce|generate|render|need|want|do|build|sketch)"
_CHART_ZH: Final = r"(?:图表|图形|曲线|[折线柱状形直方饼散点条箱热力雷达函数的]{1,4}图(?![片书画像象]))"
# Names of curves, in words or as formulas.
_FORMULA: Final = r"(?:sin|cos|tan|log|ln|exp)\s*[(（x]|[yf](?:\(x\))?\s*="
_CURVE_EN: Final = rf"(?:(?:co)?sine|tangent|parabola|hyperbola|{_FORMULA})"
_CURVE_ZH: Final = rf"(?:函数|正弦|余弦|正切|抛物线|双曲线|{_FORMULA})"
_DRAW_ZH: Final = r"(?:(?<![动漫油国版壁插书字图])画(?![家展面廊像])|绘)"
# Computed or random numbers that are plotted next, not the plot of a story.
_NUMBERS_EN: Final = (
    r"(?:times|rolls?|toss|flip|random|numbers|values|simulate|generate|compute|count|fit|load|csv|data)"
)
_NUMBERS_ZH: Final = r"(?:骰子|硬币|随机|数据|统计|模拟|计算|生成)"
_THEN_EN: Final = (
    r"\b(?:and|then)\s+(?:plot|graph|chart|visuali[sz]e)\s+"
    r"(?:the|it|them|this|that|these|those|their|its|how|each|all|both|results?|sums?|counts?|sales)\b"
)
_ASKS_ABOUT: Final = re.compile(
    r"^\s*(?:and\s+|so\s+)?(?:how|what|why|which|who|when|where|is|are|do|does|did|explain|tell\s+me\s+about)\b(?!.*\brun\b)"
    r"|怎么|怎样|如何|什么|为何|是谁|哪",
    re.IGNORECASE,
)
_CODE: Final = re.compile(
    # Named means: with Python, by a script, in the code interpreter …
    r"\b(?:use|using|with|via|through|let|have|open|start)\s+(?:(?:some|a|the|your|bit|of)\s+)*(?:python|code[\s_]interpreter|numpy|pandas|matplotlib)\b"
    r"|\b(?:run|execute|evaluate)\b.*\b(?:code|python|script|program|snippet|print)\b"
    r"|\b(?:calculate|compute|work\s+out|solve|simulate|plot|draw|do)\b.*\bin\s+python\b"
    # … or results that only code can make.
    r"|(?:^|[.!?:,]\s*|\b(?:please|can\s+you|could\s+you|would\s+you|let's|let\s+us|i\s+want\s+to|i'd\s+like\s+to)\s+)"
    r"(?:please\s+)?(?:plot|graph|chart|visuali[sz]e)\s+(?!of\b|twist)\S"
    rf"|\b{_MAKE_EN}\b(?:\s+\S+){{0,5}}?\s+{_CHART_EN}\b(?!\s*(?:twist|summary))"
    rf"|\b{_NUMBERS_EN}\b.{{0,120}}?{_THEN_EN}"
    r"|\b(?:draw|show|give|display|sketch)\b(?:\s+\S+){0,3}?\s+(?:sine|cosine|tangent|bell|exponential)\s+(?:curve|wave)\b"
    rf"|\b(?:draw|sketch|render)\b(?:\s+\S+){{0,3}}?\s+{_CURVE_EN}"
    r"|\bwrite\b.{0,60}?\b(?:code|program|script|snippet)\b.{0,120}?\band\s+(?:then\s+)?(?:run|execute)\s+(?:it|them|this|that)\b"
    r"|[用让请叫]\s*(?:一下|一段|一点)?\s*(?:python|代码|程序|脚本|numpy|pandas|matplotlib)"
    r"|(?:运行|执行|跑)(?:一下|一段|这段|下面的?|以下的?|下列)*[^。！？?]{0,8}(?:代码|脚本|程序|python|print)"
    r"|(?:代码|脚本|程序)[^。！？?]{0,6}(?:并|然后|再)(?:运行|执行)"
    rf"|(?:画|绘|作|做|要|看|生成|输出|来|显示|展示)[^。！？?]{{0,60}}{_CHART_ZH}"
    rf"|{_DRAW_ZH}[^。！？?]{{0,40}}图(?![片书画])|{_DRAW_ZH}[^。！？?]{{0,20}}{_CURVE_ZH}"
    rf"|[给画绘看要示][^。！？?]{{0,20}}{_CURVE_ZH}[^。！？?]{{0,8}}(?:图(?![片书画])|曲线)"
    rf"|{_NUMBERS_ZH}[^。！？?]{{0,60}}?(?:画[出成一]|绘[制出成图]|作图)|[把将][^。！？?]{{1,40}}可视化",
    re.IGNORECASE,
)
_NEEDS: Final[Mapping[str, re.Pattern[str]]] = {
    "current_time": re.compile(
        rf"\b(?:what|which)\s+{_NOW_EN}\s+(?:is\s+(?:it|today)|(?:do|have)\s+we|are\s+we)\b"
        rf"|\b(?:what's|what\s+is|tell\s+me|know)\s+(?:the\s+)?(?:current\s+|local\s+|exact\s+)?{_NOW_EN}\b{_END}"
        rf"|\b(?:current|local|today's)\s+{_NOW_EN}\b{_END}"
        r"|\bis\s+(?:it|today)\s+(?:an?\s+)?(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\bhow\s+late\s+is\s+it\b"
        rf"|{_THIS_ZH}[^。！？?\d]{{0,10}}{_NOW_ZH}|几点钟?了[？?]*$",
        re.IGNORECASE,
    ),
    "calculator": re.compile(
        r"\d\s*[+*/×÷^]\s*\(?\d|\d\s+[-−–]\s+\(?\d|\d\s*(?:[%％]|percent)\s*(?:of|off|的)"
        # From a line's first number on: from each number it would take the square of the length.
        r"|^[^\d\n]*\d.*\b(?:plus|minus|times|multiplied\s+by|divided\s+by|to\s+the\s+power\s+of)\b.*\d"
        r"|\b(?:add|sum|subtract|multiply|divide)\b.*\d.*\d|\broot\s+of\s+\d"
        r"|(?:\A|[。！？?])[^\d。！？?]*\d[^。！？?]*[加减乘除][^。！？?]*\d|\d\s*的\s*(?:平方|立方|\S{1,3}次方|\d+\s*[%％])|百分之",
        re.IGNORECASE | re.MULTILINE,
    ),
}
_SEARCHED: Final = 1000  # characters: the question comes before or after pasted text, which takes minutes to search
_SAID: Final[Mapping[Lang, str]] = {"en": "{question}\n(Use {name}.)", "zh": "{question}\n（请用 {name}。）"}


def needed(question: str, names: Collection[str]) -> str:
    """The tool that a question plainly needs; empty if that is unclear.

    Small models answer such questions without their tools unless they are told.

    Args:
        question: The user's.
        names: The tools on offer.
    """
    if len(question) > 2 * _SEARCHED:
        question = f"{question[:_SEARCHED]}\n{question[-_SEARCHED:]}"
    if CODE in names and _CODE.search(question) and not _ASKS_ABOUT.search(question):
        return CODE  # a named means wins over other tools
    found = [name for name, pattern in _NEEDS.items() if name in names and pattern.search(question)]
    return found[0] if len(found) == 1 else ""


def with_need(messages: Sequence[Message], names: Collection[str], lang: Lang) -> list[Message]:
    """The conversation, with a hint to the tool that its last question plainly needs."""
    last = messages[-1] if messages else None
    if last is None or last.role != USER or not isinstance(last.content, str):
        return list(messages)
    name = needed(last.content, names)
    return (
        [*messages[:-1], Message(USER, _SAID[lang].format(question=last.content, name=name))] if name else [*messages]
    )
