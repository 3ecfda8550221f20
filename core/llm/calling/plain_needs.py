"""Questions that plainly need the clock or the calculator: a small model is told so, for it would make up an answer."""

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
_SAID: Final[Mapping[Lang, str]] = {"en": "{question}\n(Use {name}.)", "zh": "{question}\n（请用 {name}。）"}


def needed(question: str, names: Collection[str]) -> str:
    """The one of these tools that a question plainly needs; "" where that is not plain.

    Args:
        question: What is asked.
        names: The tools on offer.
    """
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
