"""The template for small models: a choice constrained by a JSON schema, then plain questions about results."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final, cast

from core.llm.calling.call_text import CallText, call_events, read_calls
from core.llm.calling.neutral import Restored, neutral, restored
from core.llm.calling.nous import with_system
from core.llm.request import call_ids, named_choice
from core.messages.events import Event, TextDelta
from core.messages.json_text import compact
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, USER, Message

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from core.languages import Lang
    from core.llm.request import ChatRequest


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

# A text to be written: inside JSON a model this small writes far worse, greets, refuses, or stops after a line.
_A_TEXT = re.compile(
    r"\s*(please\s+|can\s+you\s+|could\s+you\s+)?"
    r"(write|rewrite|rephrase|draft|compose|translate|explain|describe|tell\s+me\s+(a|an|another)\b)"
    r"|\s*(请|请你|帮我|帮忙|你能)?(给我|替我)?(写|改写|起草|翻译|解释|描述|讲个|讲一个|编个|编一个)",
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


RESPOND = "respond"
_KEPT = ("type", "properties", "required", "enum", "items", "description")


class JsonSchemaTemplate:
    """Tools as a choice that the back end's `response_format` constrains."""

    def prepare(self, request: ChatRequest) -> ChatRequest:
        """The request with tools as a schema; after results, a plain question about them."""
        if not _routes(request):
            return replace(request, messages=tuple(facts_messages(request.messages, request.lang)), functions=())
        functions = _offered(request)
        names = {str(function["name"]) for function in functions}
        messages = with_need(_without_calls(request.messages), names, request.lang)
        messages = with_system(messages, router_text(functions, request.lang))
        only = named_choice(request) or (CODE if names == {CODE} and len(request.functions) > 1 else "")
        generate = {**request.generate, "response_format": response_format(functions, only)}
        return replace(request, messages=tuple(messages), functions=(), generate=generate)

    def reader(self, request: ChatRequest) -> RouterReader | PlainReader:
        """Parses the choice; a reply about facts is plain text."""
        if not _routes(request):
            return PlainReader()
        return RouterReader(request)


class PlainReader:
    """Passes text through, without calls."""

    calls = 0

    def __init__(self) -> None:
        self._restored = Restored()

    def feed(self, text: str) -> list[Event]:
        """The text itself."""
        text = self._restored.feed(text)
        return [TextDelta(text)] if text else []

    def close(self, *, cut: bool = False) -> list[Event]:
        """Nothing remains."""
        del cut
        return []


class RouterReader:
    """Parses the constrained JSON: the answer's text as it streams, or the call once it is complete.

    Args:
        request: As it was before the template prepared it.
    """

    def __init__(self, request: ChatRequest) -> None:
        self.calls = 0
        self._request = request
        taken = call_ids(request.messages)
        self._ids = (str(number) for number in count(1) if str(number) not in taken)
        self._respond = RespondReader()
        self._restored = Restored()

    def feed(self, text: str) -> list[Event]:
        """More of the answer's text."""
        said = self._restored.feed(self._respond.feed(text))
        return [TextDelta(said)] if said else []

    def close(self, *, cut: bool = False) -> list[Event]:
        """The call, if it is one; invalid JSON is shown as text."""
        if self._respond.found:
            return []
        whole = self._respond.seen
        calls = [call for call in read_calls(_unfenced(whole), mend=not cut) if call.name]
        if not calls:
            return [TextDelta(restored(whole))] if whole.strip() else []
        if calls[0].name == RESPOND:
            return [TextDelta(restored(_response(calls[0]) or whole))]
        if not (calls[0].readable or self._request.answers_calls):
            return [TextDelta(restored(whole))]
        self.calls += 1
        return call_events([CallText(calls[0].name, restored(calls[0].arguments), calls[0].readable)], self._ids)


def _unfenced(text: str) -> str:
    found = re.fullmatch(r"\s*```\w*\s*\n(.*?)(?:```)?\s*", text, re.DOTALL)
    return found.group(1) if found else text


def _response(call: CallText) -> str:
    """The text of a `respond` choice that was not streamed."""
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        return ""
    return str(cast("dict[str, Any]", arguments).get("text") or "") if isinstance(arguments, dict) else ""


def response_format(functions: Sequence[Mapping[str, Any]], only: str = "") -> dict[str, Any]:
    """The schema of the choice, as OpenAI's `response_format`.

    Args:
        only: The one tool that must be called; empty if the model may choose or answer.
    """
    chosen = [f for f in functions if not only or f.get("name") == only]
    options = [_option(str(f["name"]), _simple(f.get("parameters") or {})) for f in chosen]
    if not only:
        text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        options.insert(0, _option(RESPOND, text))
    schema = options[0] if len(options) == 1 else {"anyOf": options}
    return {"type": "json_schema", "json_schema": {"name": "choice", "strict": True, "schema": schema}}


def router_text(functions: Sequence[Mapping[str, Any]], lang: Lang) -> str:
    """The block of the system message that explains the choice, with a few examples."""
    lines = [
        neutral(f"- {f['name']}: {f.get('description', '')} {_fields(f.get('parameters') or {})}").rstrip()
        for f in functions
    ]
    names = {str(f["name"]) for f in functions}
    return ROUTER[lang].format(tools="\n".join(lines), examples=example_lines(EXAMPLES[lang], names))


def facts_messages(messages: Sequence[Message], lang: Lang) -> list[Message]:
    """The conversation, with its last question asked about the tools' results."""
    last = max((index for index, message in enumerate(messages) if message.role == USER), default=0)
    results = [neutral(message.get_text_content()).strip() for message in messages[last:] if message.role == FUNCTION]
    if not results or messages[last].role != USER:  # no results since the question, or no question
        return _without_calls(messages)
    said = [m for m in messages[last + 1 :] if m.role == ASSISTANT and not m.function_call and m.get_text_content()]
    question = neutral(messages[last].get_text_content())
    asked = asked_about("\n".join(filter(None, results)), question, lang)
    return [*_without_calls(messages[:last]), *asked, *said]


def _offered(request: ChatRequest) -> Sequence[Mapping[str, Any]]:
    """The tools of the choice; the code interpreter only if code is plainly needed, and then alone.

    A small model would run code for "What is Python?", and plot with the calculator.
    """
    others = [function for function in request.functions if function["name"] != CODE]
    if named_choice(request) or not others or len(others) == len(request.functions):
        return request.functions
    last = request.messages[-1] if request.messages else None
    asked = last.get_text_content() if last is not None and last.role == USER else ""
    if needed(asked, {CODE}):
        return [function for function in request.functions if function["name"] == CODE]
    return others


def _routes(request: ChatRequest) -> bool:
    """Whether the model chooses a tool: not once there are results after the last question, nor to write a text.

    Nor to go on with a text of its own, which no choice begins with.
    """
    after: list[Message] = []
    for message in reversed(request.messages):
        if message.role == USER:
            break
        after.append(message)
    has_results = any(message.role == FUNCTION for message in after)
    goes_on = bool(after) and after[0].role == ASSISTANT and not after[0].function_call
    return bool(request.functions) and not has_results and not goes_on and not _is_to_write(request)


def _is_to_write(request: ChatRequest) -> bool:
    """Whether a text is asked for that needs none of the tools on offer, all of which are known here."""
    last = request.messages[-1] if request.messages else None
    names = {str(function["name"]) for function in request.functions}
    if last is None or last.role != USER or named_choice(request) or not names <= {*_NEEDS, CODE}:
        return False
    asked = last.get_text_content()
    return bool(_A_TEXT.match(asked)) and not needed(asked, names)


def _without_calls(messages: Iterable[Message]) -> list[Message]:
    """The messages without calls and results of earlier turns, which would confuse a small model."""
    spoken: list[Message] = []
    for message in messages:
        if message.role == SYSTEM:
            spoken.append(message)
        elif message.role in {USER, ASSISTANT} and not message.function_call and message.items:
            text = neutral(message.get_text_content())
            spoken.append(Message(message.role, text) if not message.is_multimodal() else message)
    return spoken


def _option(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    properties = {"name": {"const": name}, "arguments": arguments}
    return {"type": "object", "properties": properties, "required": ["name", "arguments"]}


def _simple(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of a schema that every grammar compiler supports."""
    kept: dict[str, Any] = {key: schema[key] for key in _KEPT if key in schema and key != "description"}
    if "properties" in kept:
        kept["properties"] = {name: _simple(field) for name, field in kept["properties"].items()}
    if isinstance(kept.get("items"), dict):
        kept["items"] = _simple(kept["items"])
    return kept or {"type": "object"}


def _fields(schema: Mapping[str, Any]) -> str:
    fields: Mapping[str, Any] = schema.get("properties") or {}
    return compact({name: field.get("description") or field.get("type", "") for name, field in fields.items()})


_BEFORE = ("{", '"name"', ":", '"respond"', ",", '"arguments"', ":", "{", '"text"', ":", '"')
"""The tokens before the text, with any white space between."""
_SPACE = re.compile(r"\s*+")
_SPECIAL = re.compile(r'["\\]')
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^u])")
_LONGEST_ESCAPE = 12


@dataclass(slots=True)
class RespondReader:
    """Streams the text of `{"name": "respond", "arguments": {"text": "…"}}` while the JSON is being written."""

    found: bool = False
    _kept: list[str] = field(default_factory=list[str])
    _rest: str = ""  # an unfinished token or escape
    _part: int = 0  # index of the next of `_BEFORE`
    _ended: bool = False

    @property
    def seen(self) -> str:
        """All JSON so far, until the string begins."""
        return "".join(self._kept)

    def feed(self, text: str) -> str:
        """The string's new characters, unescaped."""
        if not self.found:
            self._kept.append(text)
        if self._ended:
            return ""
        text, at = self._rest + text, 0
        if not self.found:
            at = self._begin(text)
            if not self.found:
                return ""
        return self._unescape(text, at)

    def _begin(self, text: str) -> int:
        """Consume the tokens before the string; returns where they end."""
        at = 0
        while self._part < len(_BEFORE):
            space = _SPACE.match(text, at)
            at = space.end() if space else at
            part = _BEFORE[self._part]
            if not text.startswith(part, at):
                self._rest = text[at : at + len(part)]
                self._ended = not part.startswith(self._rest)  # other JSON
                return at
            at += len(part)
            self._part += 1
        self.found, self._kept = True, []
        return at

    def _unescape(self, text: str, at: int) -> str:
        """Unescape what is complete; an unfinished escape waits."""
        pieces: list[str] = []
        while at < len(text):
            special = _SPECIAL.search(text, at)
            stop = special.start() if special else len(text)
            pieces.append(text[at:stop])
            at = stop
            if special is None:
                break
            if text[at] == '"':
                self._ended = True
                break
            escape = _ESCAPE.match(text, at)
            if escape is None or _may_be_half_a_pair(escape.group(), len(text) - escape.end()):
                self._ended = escape is None and len(text) - at >= _LONGEST_ESCAPE  # not an escape
                break
            pieces.append(_resolved(escape.group()))
            at = escape.end()
        self._rest = text[at:] if not self._ended else ""
        return "".join(pieces)


def _may_be_half_a_pair(escape: str, following: int) -> bool:
    return len(escape) == 6 and escape[2:4].lower() in {"d8", "d9", "da", "db"} and following < 6


def _resolved(escape: str) -> str:
    try:
        text: str = json.loads(f'"{escape}"')
    except ValueError:
        return escape[1:]
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
