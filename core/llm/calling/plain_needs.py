"""Questions that plainly need the clock, the calculator or code: a small model is told so, or it makes up an answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from core.messages.message import USER, Message

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from core.llm.request import Lang

_NOW_EN: Final = r"(?:time|date|day(?: of the week)?|weekday|month|year)"
_NOW_ZH: Final = r"(?:几点|几号|几月|几日|星期几|周几|礼拜几|哪一?[年月天]|什么(?:日期|时间|时候)|多少号|日期|时间)"
_THIS_ZH: Final = r"(?:现在|今天|今日|今年|本月|目前|当前|此刻)"
_END: Final = r"(?=\s*(?:[?.!,]|$|in |now\b|right now\b|today\b|there\b|here\b|at the moment\b|please\b))"
CODE: Final = "code_interpreter"
_CHART_EN: Final = r"(?:plot|graph|histogram|diagram|heat\s?map|(?:\w+\s+)?chart|scatter(?:\s?plot)?|box\s?plot)s?"
_MAKE_EN: Final = r"(?:make|draw|create|show|give|produce|generate|render|need|want|do|build|sketch)"
_CHART_ZH: Final = r"(?:图表|图形|曲线|[折线柱状形直方饼散点条箱热力雷达函数的]{1,4}图(?![片书画像象]))"
# What has a curve: its name, in words or as a formula.
_FORMULA: Final = r"(?:sin|cos|tan|log|ln|exp)\s*[(（x]|[yf](?:\(x\))?\s*="
_CURVE_EN: Final = rf"(?:(?:co)?sine|tangent|parabola|hyperbola|{_FORMULA})"
_CURVE_ZH: Final = rf"(?:函数|正弦|余弦|正切|抛物线|双曲线|{_FORMULA})"
_DRAW_ZH: Final = r"(?:(?<![动漫油国版壁插书字图])画(?![家展面廊像])|绘)"
# What is drawn by lot, counted or worked out first is plotted next, unless it is the plot of a story.
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
    # The means are named: with Python, by a script, in the code interpreter …
    r"\b(?:use|using|with|via|through|let|have|open|start)\s+(?:(?:some|a|the|your|bit|of)\s+)*(?:python|code[\s_]interpreter|numpy|pandas|matplotlib)\b"
    r"|\b(?:run|execute|evaluate)\b.*\b(?:code|python|script|program|snippet|print)\b"
    r"|\b(?:calculate|compute|work\s+out|solve|simulate|plot|draw|do)\b.*\bin\s+python\b"
    # … or what only code can make.
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
        r"|\d.*\b(?:plus|minus|times|multiplied\s+by|divided\s+by|to\s+the\s+power\s+of)\b.*\d"
        r"|\b(?:add|sum|subtract|multiply|divide)\b.*\d.*\d|\broot\s+of\s+\d"
        r"|\d[^。！？?]*[加减乘除][^。！？?]*\d|\d\s*的\s*(?:平方|立方|\S{1,3}次方|\d+\s*[%％])|百分之",
        re.IGNORECASE,
    ),
}
_ENDS: Final = 1000  # signs: what is asked stands before or after what was pasted, through which a search takes minutes
_SAID: Final[Mapping[Lang, str]] = {"en": "{question}\n(Use {name}.)", "zh": "{question}\n（请用 {name}。）"}


def needed(question: str, names: Collection[str]) -> str:
    """The one of these tools that a question plainly needs; "" where that is not plain.

    Args:
        question: What is asked.
        names: The tools on offer.
    """
    if len(question) > 2 * _ENDS:
        question = f"{question[:_ENDS]}\n{question[-_ENDS:]}"
    if CODE in names and _CODE.search(question) and not _ASKS_ABOUT.search(question):
        return CODE  # whoever names the means is not answered by others
    found = [name for name, pattern in _NEEDS.items() if name in names and pattern.search(question)]
    return found[0] if len(found) == 1 else ""


def with_need(messages: Sequence[Message], names: Collection[str], lang: Lang) -> list[Message]:
    """The conversation; a question at its end is followed by the tool that it plainly needs."""
    last = messages[-1] if messages else None
    if last is None or last.role != USER or not isinstance(last.content, str):
        return list(messages)
    name = needed(last.content, names)
    return (
        [*messages[:-1], Message(USER, _SAID[lang].format(question=last.content, name=name))] if name else [*messages]
    )
