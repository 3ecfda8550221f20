"""What the template for small models says, in both languages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from core.messages.json_text import compact
from core.messages.message import ASSISTANT, USER, Message

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from core.llm.request import Lang

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

# A model of half a billion parameters invents a letter unless it has just seen how one is made of a few lines.
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
    """The question, or the task, together with what the tools found; before a letter stands one as an example.

    What a task is done with has no numbers and names above it: they would be copied into the result.
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
    """The examples whose tool is on offer, as questions with the JSON that answers them."""
    shown = [example for example in examples if example[1] == "respond" or example[1] in names]
    return "\n".join(
        f"{question}\n{compact({'name': name, 'arguments': arguments})}" for question, name, arguments in shown
    )
