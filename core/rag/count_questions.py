"""Questions that ask how many rows, columns, sheets or pages there are, or for the sum of a column, and no condition.

Who counts for somebody must not count something else. So all words of a question have to be known: those that ask,
those that say what is counted, names of documents and of their tables, and general words. One word more ("over 100 €",
"from Berlin", "that are open") may be a condition, and the question is no such question.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Counted: TypeAlias = Literal["rows", "columns", "sheets", "pages", "things"]
Figure: TypeAlias = Literal["sum", "average", "median", "highest", "lowest"]

_LONGEST: Final = 200  # letters of a question without a condition
_SHORTEST: Final = 2  # letters of a name that is looked for


@dataclass(frozen=True, slots=True)
class CountQuestion:
    """What a question counts.

    Args:
        things: The word for it where rows stand for it, such as "orders" or "entries", in lower case; "" for a word
            that means rows and nothing else.
        different: Whether it asks for different ones.
        names: Those of the names given that stand in the question, besides the word for what is counted.
    """

    counted: Counted
    things: str = ""
    different: bool = False
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FigureQuestion:
    """Which figure of a column a question asks for.

    Args:
        columns: What the column may be called, in lower case; whether there is one is not known here.
        itself: What a column is called that holds the figure already, such as "total amount"; "" where it has no name.
        names: Those of the names given that stand in the question.
    """

    figure: Figure
    columns: tuple[str, ...]
    itself: str = ""
    names: frozenset[str] = frozenset()


_ASKS: Final = re.compile(
    r"\b(?:how many|number|count|sum|total|average|mean|median|highest|largest|maximum|lowest|smallest|minimum)\b"
    r"|\bwie ?viele\b|add up|多少|几|数|总|合计|之和|求和|加起来|平均|均值|最[大小高低]",
    re.IGNORECASE,
)


def may_count(question: str) -> bool:
    """Whether it is worth looking up names for `count_question` and `figure_question`: most ask for something else."""
    return len(question) <= _LONGEST and bool(_ASKS.search(question))


def count_question(question: str, names: Iterable[str]) -> CountQuestion | None:
    """What is counted; `None` where nothing is, or where it is not all of it.

    Args:
        names: Those of documents and tables, which may stand in the question.
    """
    if not may_count(question):
        return None
    text, known = _plain(question), _known(names)
    return _chinese(text, known) or _english(text, known) or _german(text, known)


def figure_question(question: str, names: Iterable[str]) -> FigureQuestion | None:
    """Which sum, average, median or extreme of all of a column is asked for; `None` where none is.

    Args:
        names: As of `count_question`.
    """
    if not may_count(question):
        return None
    text, known = _plain(question), _known(names)
    return _figure_chinese(text, known) or _figure_english(text, known)


def _plain(question: str) -> str:
    return " ".join(question.casefold().replace("’", "'").split()).strip(" ?？!.。！")


def _known(names: Iterable[str]) -> list[str]:
    return sorted({plain_name(one) for one in names}, key=len, reverse=True)


def plain_name(name: str) -> str:
    """A name as questions are searched for it: in lower case, with spaces between its words."""
    return " ".join(re.sub(r"[_\-\s]+", " ", name.casefold()).split())


def _without(text: str, known: Iterable[str]) -> tuple[str, frozenset[str]]:
    """The text without the names in it, and these; of names within each other the longest."""
    found: set[str] = set()
    for name in known:
        if len(name) < _SHORTEST:
            continue
        begins, ends = (r"(?<!\w)" if name[0] < "\u3400" else ""), (r"(?!\w)" if name[-1] < "\u3400" else "")
        parts = r"[_\-\s]+".join(map(re.escape, name.split()))
        text, times = re.subn(rf"{begins}[\"“'「『《]?{parts}[\"”'」』》]?{ends}", " ", text)
        if times:
            found.add(name)
    return text, frozenset(found)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# ---- English

_HOW_MANY: Final = re.compile(
    r"(?:(?:so|and|ok|okay|hi|hello|please|now)\W+)*"
    r"(?:(?:(?:can|could|would) you )?(?:please )?(?:tell me|count|say)\W+|do you know\W+|i want to know\W+"
    r"|(?:what(?:'s| is| are)|give me) )?"
    r"(?:how many|(?P<of>(?:the )?(?:total |exact |overall |whole )?(?:number|count) of)|count)(?: of)?"
    r"(?: (?:the|all|my|our))* (?P<rest>.+)"
)
_WORDS_BEFORE: Final = _words("total data single separate individual")
_DIFFERENT: Final = _words("different distinct unique")
_ENDS_THING: Final = _words(
    "are is was were do does did can has have there in on of within it contain contains listed recorded stored "
    "altogether total"
)
_THEY_HAVE: Final = _words("have contain")
_ARE: Final = _words("are is was were")
_WHO_HAVE: Final = _words("i we you they")
_WHERE: Final = _words(
    "there in on of within inside altogether total overall contained included listed recorded stored attached uploaded"
) | {""}
_GENERAL: Final = _words(
    "are is was were do does did can has have there in on of within inside the this that these those my our your "
    "its it they we i you a all altogether total overall whole entire full long see find count contain contains "
    "contained hold holds include includes included listed recorded stored attached uploaded please data called named "
    "file files document documents doc docs pdf pdfs report paper book deck presentation slideshow spreadsheet "
    "workbook sheet sheets table tables worksheet tab excel csv xlsx list database dataset attachment upload 's"
)
_KINDS: Final[Mapping[str, Counted]] = {
    **dict.fromkeys(_words("row rows record records entry entries"), "rows"),
    **dict.fromkeys(_words("column columns"), "columns"),
    **dict.fromkeys(_words("sheet sheets worksheet worksheets tab tabs"), "sheets"),
    **dict.fromkeys(_words("page pages slide slides"), "pages"),
}
_FILES: Final = _words("file files document documents attachment attachments pdf pdfs table tables")
_PLURAL: Final = re.compile(r"s$|men$|^(?:people|children)$")
_MOST_THING: Final = 3  # words
_WORD: Final = re.compile(r"[^\s,;:()\"“”?]+")


def _english(text: str, known: list[str]) -> CountQuestion | None:
    asked = _HOW_MANY.fullmatch(text)
    if asked is None:
        return None
    words = _WORD.findall(asked["rest"].replace("'s", " 's"))
    end = next((at for at, word in enumerate(words) if word in _ENDS_THING and at), len(words))
    thing = [word for word in words[:end] if word not in _WORDS_BEFORE and word not in _DIFFERENT]
    if not thing or len(thing) > _MOST_THING or (asked["of"] and not _PLURAL.search(thing[-1])):
        return None  # the number of an order is its name
    if _is_condition(words[end:]):
        return None
    left, names = _without(" ".join(words[end:]), known)
    if not _GENERAL.issuperset(_WORD.findall(left)):
        return None
    return _of(" ".join(thing), names, different=not _DIFFERENT.isdisjoint(words[:end]))


def _is_condition(words: Sequence[str]) -> bool:
    """Whether what follows the word that is counted says which of them: "pages have tables", "sheets are lists"."""
    verb, then = (*words, "", "")[:2]
    if verb in _THEY_HAVE:  # of "has" the document is the subject: "how many pages has the report"
        return then not in _WHO_HAVE | _WHERE
    return verb in _ARE and then not in _WHERE


def _of(thing: str, names: frozenset[str], *, different: bool) -> CountQuestion | None:
    if thing in _FILES:
        return None
    if kind := _KINDS.get(thing):
        word = thing if kind == "rows" and not thing.startswith("row") else ""
        return None if different else CountQuestion(kind, word, different, names)
    return CountQuestion("things", thing, different, names)


# ---- German

_HOW_MANY_DE: Final = re.compile(
    r"wie ?viele (?P<thing>[^\W\d_]+) (?:(?:gibt|gab|sind) es|sind|hat|enthält|stehen|haben wir)(?P<rest>(?: .*)?)"
)
_GENERAL_DE: Final = _words(
    "insgesamt in im der die das dem den diesem dieser dieses hier darin drin enthalten aufgeführt tabelle liste datei "
    "blatt tabellenblatt mappe arbeitsmappe dokument bericht bitte es"
)
_KINDS_DE: Final[Mapping[str, Counted]] = {
    **dict.fromkeys(_words("zeilen einträge datensätze"), "rows"),
    **dict.fromkeys(_words("spalten"), "columns"),
    **dict.fromkeys(_words("blätter tabellenblätter arbeitsblätter"), "sheets"),
    **dict.fromkeys(_words("seiten folien"), "pages"),
}
_FILES_DE: Final = _words("dateien dokumente anhänge tabellen")


def _german(text: str, known: list[str]) -> CountQuestion | None:
    asked = _HOW_MANY_DE.fullmatch(text)
    if asked is None or asked["thing"] in _FILES_DE:
        return None
    left, names = _without(asked["rest"], known)
    if not _GENERAL_DE.issuperset(_WORD.findall(left)):
        return None
    kind = _KINDS_DE.get(asked["thing"])
    if kind is None:
        return CountQuestion("things", asked["thing"], names=names)
    return CountQuestion(kind, "" if asked["thing"] == "zeilen" or kind != "rows" else asked["thing"], names=names)


# ---- Chinese

_UNITS: Final = "个条行列页份张项笔位名款种"
_LEAD_ZH: Final = (
    r"(?:请问|请|麻烦)?(?:你)?(?:告诉我|帮我|替我)?"
    r"(?:数一?数|数一?下|统计一?下?|计算一?下?|看一?下|算一?下|查一?下)?[,，]?"
)
_HOW_MANY_ZH: Final = re.compile(
    rf"{_LEAD_ZH}(?P<where>.*?)(?:有|是|包含|包括|含有|含|列了|记录了)?(?:多少|几)(?P<unit>[{_UNITS}]?)(?P<thing>[^多少几]*?)"
    r"(?:呢|啊|呀|吗)?"
)
_NUMBER_ZH: Final = re.compile(
    rf"{_LEAD_ZH}(?P<where>.*?)(?P<thing>[^的]+?)的?(?:总数量|总数|数量|数目|数)(?:一共|总共|共)?(?:是|有|为)?(?:多少|几)?"
)
_GENERAL_ZH: Final = re.compile(
    r"(?:这|该|此|那|我们|我|你|的|里面|里|中|内|当中|一共|总共|总计|共计|合计|共|总|全部|所有|整|都|到底|究竟|现在"
    r"|个|份|张|本|篇|表格|工作表|工作簿|数据表|电子表格|表|文件|文档|报告|书|论文|pdf|excel|csv|数据|附件|幻灯片|ppt"
    r"|演示文稿|清单|列表|名单|上传|有|[\s,，、:：\"“”'《》「」])*+"
)
_CONDITION_ZH: Final = re.compile(r"(?<!所)有.*的")  # "pages that have tables"
_KINDS_ZH: Final[Mapping[str, Counted]] = {
    **dict.fromkeys(("行", "数据行", "记录", "行记录", "数据", "行数据", "条记录", "条数据", "条"), "rows"),
    **dict.fromkeys(("列", "数据列"), "columns"),
    **dict.fromkeys(("页", "张幻灯片", "页幻灯片", "幻灯片", "页面"), "pages"),
    **dict.fromkeys(("个工作表", "张工作表", "工作表", "个sheet", "张sheet", "张表"), "sheets"),
}
_FILES_ZH: Final = frozenset(("文件", "文档", "附件", "表格", "表", "个", "份"))
_DIFFERENT_ZH: Final = re.compile(r"(?:不同|不一样|不重复)的?")


def _chinese(text: str, known: list[str]) -> CountQuestion | None:
    for pattern in (_HOW_MANY_ZH, _NUMBER_ZH):
        if found := pattern.fullmatch(text):
            unit = found["unit"] if pattern is _HOW_MANY_ZH else ""
            if question := _asked_in(found["where"], unit, found["thing"], known):
                return question
    return None


def _asked_in(where: str, unit: str, thing: str, known: list[str]) -> CountQuestion | None:
    left, names = _without(where, known)
    if not _GENERAL_ZH.fullmatch(left) or _CONDITION_ZH.search(where):
        return None
    word, times = _DIFFERENT_ZH.subn("", "".join(thing.split()).removeprefix("的"))
    different = bool(times) or unit == "种"
    kind = _KINDS_ZH.get(unit + word)
    if kind is not None:
        loose = (word or unit) if kind == "rows" and "行" not in unit + word else ""
        return None if different else CountQuestion(kind, loose, different, names)
    return None if not word or word in _FILES_ZH else CountQuestion("things", word, different, names)


# ---- figures of a column

_FIGURES: Final[Mapping[str, Figure]] = {
    **dict.fromkeys(_words("sum total"), "sum"),
    **dict.fromkeys(_words("average mean"), "average"),
    "median": "median",
    **dict.fromkeys(_words("highest largest biggest greatest maximum max"), "highest"),
    **dict.fromkeys(_words("lowest smallest least minimum min"), "lowest"),
}
_FIGURE: Final = re.compile(
    r"(?:(?:so|and|ok|okay|hi|hello|please|now)\W+)*"
    r"(?:(?:(?:can|could|would) you )?(?:please )?(?:tell me|calculate|compute|find|work out|say|show me|give me)"
    r"(?: what)?|do you know|i want to know|what(?:'s| is| are| was| were)"
    r"|how (?:much|high|large|big|low|small) (?:is|are))?"
    rf"\W*(?:the )?(?:(?:grand|overall|whole) )?(?P<figure>{'|'.join(_FIGURES)})(?: (?P<more>sum|total|value))?"
    r"(?: (?:of|for|in))?(?: (?:the|all|my|our|these|those|this))* (?P<rest>.+)"
)
_SUMMED: Final = re.compile(
    r"(?:(?:can|could|would) you )?(?:please )?(?:add|sum|total) up (?:(?:the|all|my|our) )*(?P<rest>.+)"
)
_CELLS: Final = re.compile(r"^(?:values?|numbers?|figures?|entries|cells)(?: (?:in|of|from))?(?: the)? (?=\S)")
_COLUMN_WORD: Final = re.compile(r"^column (?P<after>.+)$|^(?P<before>.+?) columns?$")
_VALUES_WORD: Final = re.compile(r" (?:values?|figures?)$")


def _figure_english(text: str, known: list[str]) -> FigureQuestion | None:
    asked = _SUMMED.fullmatch(text) or _FIGURE.fullmatch(text)
    if asked is None:
        return None
    said = asked.groupdict().get("figure")
    words = _WORD.findall(_CELLS.sub("", asked["rest"]).replace("'s", " 's"))
    more = asked.groupdict().get("more") or "value"
    if more != "value" and _FIGURES[said or "sum"] != "sum":
        words.insert(0, more)  # "the highest total amount" is no highest amount
    end = next((at for at, word in enumerate(words) if word in _ENDS_THING and at), len(words))
    left, names = _without(" ".join(words[end:]), known)
    if not 0 < end <= _MOST_THING + 1 or not _GENERAL.issuperset(_WORD.findall(left)):
        return None
    called = " ".join(words[:end])
    column = _COLUMN_WORD.fullmatch(called)
    called = (column["after"] or column["before"]) if column is not None else _VALUES_WORD.sub("", called)
    return FigureQuestion(_FIGURES[said or "sum"], (called,), f"{said} {called}" if said else "", names)


_FIGURES_ZH: Final[Mapping[Figure, str]] = {
    "sum": "总和|合计|总计|总额|之和|总数|求和|加起来",
    "average": "平均值|平均数|均值|平均",
    "median": "中位数",
    "highest": "最大值|最高值|最大|最高",
    "lowest": "最小值|最低值|最小|最低",
}
_BEFORE_ZH: Final[Mapping[Figure, str]] = {
    "sum": "总",
    "average": "平均",
    "highest": "最高|最大",
    "lowest": "最低|最小",
}
_COLUMN_ZH: Final = re.compile(r"(?:这|那)?一?列?的?(?:所有)?(?:值|数值)?的?$")


def _figure_chinese(text: str, known: list[str]) -> FigureQuestion | None:
    tail = r"(?:一共|总共|共)?(?:是|有|为|等于)?(?:多少|几)?(?:呢|啊|呀|吗)?"
    for figure, words in _FIGURES_ZH.items():
        if found := re.fullmatch(rf"{_LEAD_ZH}(?P<of>.+?)(?:{words}){tail}", text):
            return _column_zh(figure, found["of"], known)
    for figure, words in _BEFORE_ZH.items():
        if found := re.fullmatch(rf"{_LEAD_ZH}(?P<where>.*?)(?P<said>{words})的?(?P<of>[^多少几总]+?){tail}", text):
            left, names = _without(found["where"], known)
            if _GENERAL_ZH.fullmatch(left):
                return FigureQuestion(figure, (found["of"],), found["said"] + found["of"], names)
    return None


def _column_zh(figure: Figure, of: str, known: list[str]) -> FigureQuestion | None:
    left, names = _without(of, known)
    whole = _COLUMN_ZH.sub("", "".join(left.split()))
    general = _GENERAL_ZH.match(whole)
    called = whole[general.end() :] if general is not None else whole
    columns = tuple(dict.fromkeys(one for one in (called, whole) if one))
    return FigureQuestion(figure, columns, names=names) if columns else None
