"""Titles by small models: made of words that stand in the exchange, in their order, and of nothing else.

A small model that is asked for a name answers the question, or repeats what it was told. Shown some examples, and held
to the question's own words by a grammar, it picks the subject.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from core.llm.calling.neutral import neutral
from core.messages.message import ASSISTANT, USER, Message

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from core.languages import Lang

_READ: Final = 600  # letters of the question
_READ_REPLY: Final = 240  # letters of the reply: what it is about stands at its beginning
_MOST_UNITS: Final = 60
_LEAST: Final[Mapping[Lang, int]] = {"en": 2, "zh": 4}  # words, or Chinese letters, where there are as many
_LONG: Final = 5  # words that name something: of so many three stay
_SCRIPT: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_FILE: Final = re.compile(r"[^\n/]{1,200}\.[A-Za-z0-9]{1,5}")
_WORD: Final = re.compile(r"[^\W_]+(?:['’.,:/+*&-]+[^\W_]+)*[%+#]*")
_ASKING: Final = """what which who whom whose where when how is are was were be been am do does did has have had can
could would should will shall may might please tell me you your yours i my mine we our us it its this that these those
there here explain give make show let say hello hi hey thanks thank if then so as many much any some mean means don't
doesn't didn't i'm it's what's whats who's how's let's called named than but not no yes ok okay help want need know
provides describes contains like just really"""
_JOINING: Final = "of in on at for to from by with and or into about between against because"
_POINTING: Final = """file files document documents text page pages pdf article attachment attached above below
following summarise summarize summary content contents"""
_ASKS: Final = frozenset(_ASKING.split())
"""Words that ask, and name nothing."""
_ARTICLES: Final = frozenset(("a", "an", "the"))
_BEGIN: Final = _ARTICLES | {"why"}
_JOIN: Final = _BEGIN | frozenset(_JOINING.split())
"""Words that join others: no title ends with one."""
_DOCUMENT: Final = frozenset(_POINTING.split())
"""Words that point to a document, and say nothing of it."""
_REFUSES: Final = re.compile(
    r"\b(?:sorry|apologi[sz]e|unfortunately|cannot|can't|can’t|unable)\b|抱歉|对不起|无法|不能", re.IGNORECASE
)
_ASKS_ZH: Final = re.compile(
    r"(?:是|由|被|叫做?|为|约?有|在|等于|于|约|发生)?"
    r"(?:什么时候|什么|多少[米年个人次天元岁倍名只条种]?|谁|哪一?[些个年位家种里]?|几)"
    r"|是?(?:为什么|怎么样|怎么办|怎么|怎样|如何)做?|吗|呢|请问|请|告诉|一下|是否|能否|可以|可能会?|你好|您好|谢谢"
    r"|[我你您它他她]们?|给|写|一[个份篇首件张本部]"
)
_DOCUMENT_ZH: Final = re.compile(r"总结|概括|看看|这[份篇个]|文件|文档|文章|附件|资料|内容|讲了?|介绍")
_UNIT_ZH: Final = re.compile(r"《[^《》\n]{1,20}》|[A-Za-z0-9]+(?:[.+#%-]+[A-Za-z0-9]+)*[%+#]*|[^\W_]")
_NAME_ZH: Final = re.compile(r"《|\d*[A-Za-z]{2}")
_JOIN_ZH: Final = frozenset("的了是有在和与及由被从会")
_TOLD: Final[Mapping[Lang, str]] = {
    "en": "You name conversations. Write only the subject, in two to six words.",
    "zh": "你给对话起标题。只写主题，不超过十二个字。",
}
_ASKED: Final[Mapping[Lang, tuple[tuple[str, str, str], ...]]] = {
    "en": (
        ("What year did the first railway in Japan open, and where did it run?", "", "First railway in Japan"),
        ("can you help me fix my bread, it does not rise", "", "Bread does not rise"),
        ("How much is 12% of 80?", "", "12% of 80"),
        ("Please tell me why leaves are red in autumn", "", "Why leaves are red in autumn"),
        ("Write a letter to the landlord about the broken heating", "", "Letter about the broken heating"),
    ),
    "zh": (
        ("日本的第一条铁路是哪一年开通的？", "", "日本第一条铁路"),
        ("我的面包总是发不起来，怎么办？", "", "面包发不起来"),
        ("80的百分之十二是多少？", "", "80的百分之十二"),
        ("怎样写信给房东说暖气坏了？", "", "给房东的信"),
    ),
}
"""Questions with their titles."""
_SAID: Final[Mapping[Lang, tuple[tuple[str, str, str], ...]]] = {
    "en": (
        ("Tell me what this says", "The document is a lease for a flat in Leeds, from June on.", "Lease for a flat"),
        ("Who wrote it?", "The authors of the cookbook are Ann Lee and Tom Wood.", "Authors of the cookbook"),
        ("Summarise it", "This report describes how the bridge over the Elbe was repaired.", "Bridge over the Elbe"),
    ),
    "zh": (
        ("请看看这份文件讲什么", "这是一份在上海租房的合同，规定了租金和期限。", "上海租房合同"),
        ("总结一下", "这份报告介绍了长江大桥的维修过程和费用。", "长江大桥维修"),
    ),
}
"""Replies about documents with their titles, where the question says no more than that there is one."""
_FORM: Final[Mapping[Lang, tuple[str, str, str]]] = {
    "en": ("Question: {question}", "\nReply: {reply}", "\nTitle:"),
    "zh": ("提问：{question}", "\n回答：{reply}", "\n标题："),
}


@dataclass(frozen=True, slots=True)
class Naming:
    """What a small model is asked, and what it may answer.

    Args:
        lang: By the letters of the exchange.
        messages: Examples, and the exchange.
        units: The words, or Chinese letters, of which a title is made, in their order.
        glued: Of each whether it belongs to the letter before it: a word has two or more.
        taken: The exchange's first line: what says the same is no better.
        wants_name: Of the proper names among the units a title has one at least.
    """

    lang: Lang
    messages: tuple[Message, ...]
    units: tuple[str, ...]
    glued: tuple[bool, ...]
    taken: str
    wants_name: bool = True

    @property
    def grammar(self) -> str:
        """All titles that may be, as llama.cpp reads a grammar."""
        return _Grammar(self).text()

    def title(self, line: str) -> str:
        """A line as a title: the part of it that is made of the units; empty where that names nothing."""
        found: list[tuple[str, _State]] = []
        state, left = self.begun, iter(self.units)
        for unit in _UNIT_ZH.findall(line) if self.lang == "zh" else _WORD.findall(line):
            same = next((one for one in left if one.casefold() == unit.casefold()), None)
            after = state.with_unit(same, self.lang, self.least, self.names) if same else None
            if after is None:
                break
            state = after
            found.append((unit, state))
        while found and self.joins(found[-1][0]):
            found.pop()
        if not found or not self.is_enough(found[-1][1]):
            return ""
        title = ("" if self.lang == "zh" else " ").join(unit for unit, _ in found)
        return "" if _bare(title) == _bare(self.taken) else title

    @property
    def begun(self) -> _State:
        """Before the first unit."""
        return _State(0, not self.names)

    @property
    def names(self) -> Set[str]:
        """The proper names among the units, of which a title has one at least."""
        if not self.wants_name:
            return frozenset()
        return frozenset(filter(_NAME_ZH.match if self.lang == "zh" else _is_name, self.units[1:]))

    @property
    def least(self) -> int:
        """How many units that join nothing a title has at least."""
        count = sum(not self.joins(one) for one in self.units)
        return min(_LEAST[self.lang] + (self.lang == "en" and count >= _LONG), count)

    def joins(self, unit: str) -> bool:
        """Whether a unit is no word of its own, but joins others."""
        return _joins(unit, self.lang)

    def is_enough(self, state: _State) -> bool:
        """Whether a title may end so."""
        return state.count >= self.least and state.named


def naming(question: str, reply: str) -> Naming | None:
    """How a small model names an exchange; `None` where that says nothing which is not in the first words.

    Args:
        question: With the names of its files, each on a line.
        reply: Of a question that only points to a file, it tells the subject.
    """
    lines = [line.strip() for line in question[: 2 * _READ].splitlines() if line.strip()]
    files = [line for line in lines[1:] if _FILE.fullmatch(line)]
    files += [line for line in lines[:1] if _FILE.fullmatch(line) and " " not in line and len(lines) == 1 + len(files)]
    text = "\n".join(line for line in lines if line not in files)[:_READ]
    lang, first = _lang_of(text), lines[0] if lines else ""
    units, named = _units(text, lang), _units(text, lang, points=False)
    count = sum(not _joins(one, lang) for one, _ in named)
    points = bool(files) or len(named) < len(units)
    if count > 1 or (count and not points):
        return Naming(lang, _messages(text, "", lang), *_trimmed(units, lang), first)
    said = reply.strip()[:_READ_REPLY]
    if not points or _REFUSES.search(said):
        return None
    lang = _lang_of(said)
    units = _units(said, lang, points=False)
    if sum(not _joins(one, lang) for one, _ in units) < _LEAST[lang]:
        return None
    # A small model's reply has names, its own among them, that say nothing of the document.
    return Naming(lang, _messages(text or first, said, lang), *_trimmed(units, lang), first, wants_name=False)


def _lang_of(text: str) -> Lang:
    return "zh" if _SCRIPT.search(text) else "en"


def _messages(question: str, reply: str, lang: Lang) -> tuple[Message, ...]:
    examples = (_SAID if reply else _ASKED)[lang]
    turns: list[Message] = []
    for asked, said, title in examples:
        turns += [Message(USER, _form(asked, said, lang)), Message(ASSISTANT, title)]
    turns[0] = Message(USER, f"{_TOLD[lang]}\n\n{turns[0].get_text_content()}")
    return (*turns, Message(USER, _form(neutral(question), neutral(reply), lang)))


def _form(question: str, reply: str, lang: Lang) -> str:
    asked, said, name = _FORM[lang]
    return asked.format(question=question) + (said.format(reply=reply) if reply else "") + name


# -- the units of a title ---------------------------------------------------------------------------------------------


def _units(text: str, lang: Lang, *, points: bool = True) -> list[tuple[str, bool]]:
    """The words that may stand in a title, or the Chinese letters with runs of Latin ones and figures.

    Args:
        points: Words that point to a document are among them.

    Returns:
        Each with whether it belongs to the one before it.
    """
    if lang == "zh":
        text = _ASKS_ZH.sub("\n", text)
        found, end = list[tuple[str, bool]](), -1
        for letter in _UNIT_ZH.finditer(text if points else _DOCUMENT_ZH.sub("\n", text)):
            found.append((letter[0], letter.start() == end))
            end = letter.end() if len(letter[0]) == 1 else -1
        return found[:_MOST_UNITS]
    words = _WORD.findall(text)[:_MOST_UNITS]
    why = next((place for place, word in enumerate(words) if word.casefold() == "why"), len(words))
    left_out = _ASKS if points else _ASKS | _DOCUMENT
    kept = [*(one for one in words[:why] if one.casefold() not in left_out), *words[why:]]
    return [(word, False) for word in kept]


def _trimmed(units: list[tuple[str, bool]], lang: Lang) -> tuple[tuple[str, ...], tuple[bool, ...]]:
    """The same without what only joins at both ends; the units, and what is glued."""
    found = [*units]
    while found and _joins(found[-1][0], lang):
        found.pop()
    while found and _joins(found[0][0], lang) and found[0][0].casefold() not in _BEGIN:
        del found[0]
    return tuple(unit for unit, _ in found), tuple(glued and place > 0 for place, (_, glued) in enumerate(found))


def _joins(unit: str, lang: Lang) -> bool:
    """Whether a unit is no word of its own, but joins others."""
    return unit in _JOIN_ZH if lang == "zh" else unit.casefold() in _JOIN or unit.casefold() in _ASKS


def _is_name(word: str) -> bool:
    return word[0].isupper() and not _joins(word, "en")


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


@dataclass(frozen=True, slots=True)
class _State:
    """What a title has so far.

    Args:
        count: How many units that join nothing, up to as many as there must be.
        named: Whether a proper name is among them, or there is none.
        after: What the last unit was: 2 of an article, 1 of a preposition, else 0.
    """

    count: int
    named: bool
    after: int = 0

    def with_unit(self, unit: str, lang: Lang, least: int, names: Set[str]) -> _State | None:
        """After one more; `None` where that cannot stand there."""
        fold, counts = unit.casefold(), not _joins(unit, lang)
        is_article = fold in _ARTICLES or lang == "zh"
        if not counts and (self.after == 2 or (self.after and not is_article)):
            return None
        joined = 0 if counts or fold in _ASKS else 2 if is_article else 1
        return _State(min(self.count + counts, least), self.named or unit in names, joined)


class _Grammar:
    """The rules for all titles of some units, in their order.

    Args:
        of: Whose they are.
    """

    def __init__(self, of: Naming) -> None:
        self._of = of
        self._gap = "" if of.lang == "zh" else '" " '
        self._rules: dict[str, list[str]] = {}
        self._names: dict[tuple[int, int, _State], str] = {}

    def text(self) -> str:
        """All of them, `root` first."""
        ways: list[str] = []
        for place, unit in enumerate(self._of.units):
            begins = not self._of.joins(unit) or unit.casefold() in _BEGIN
            if begins and not self._is_single(place - 1) and (rest := self._after(place, self._of.begun)):
                large = unit[:1].upper() + unit[1:]
                said = _quoted(unit) if large == unit else f"({_quoted(large)} | {_quoted(unit)})"
                ways.append(f"{said} {rest}")
        lines = [f"{name} ::= {' | '.join(one)}" for name, one in self._rules.items() if one]
        return "\n".join([f"root ::= {' | '.join(ways)}", *lines])

    def _after(self, place: int, before: _State) -> str:
        """What may follow a unit; "" where it cannot stand there, or no end can be reached."""
        state = before.with_unit(self._of.units[place], self._of.lang, self._of.least, self._of.names)
        if state is None:
            return ""
        is_end = not self._of.joins(self._of.units[place]) and self._of.is_enough(state)
        is_end = is_end and not (self._is_glued(place + 1) and self._is_last(place + 1))
        rest = self._on(place + 1, 0, state)
        ways = [*(['""'] if is_end else []), *([f"{self._gap}{rest}"] if rest else [])]
        return f"({' | '.join(ways)})" if ways else ""

    def _on(self, place: int, skipped: int, state: _State) -> str:
        """The rule for going on with the unit at a place, or a later one; "" where there is no way.

        Args:
            skipped: Units before it that were left out, two for more of them.
        """
        if place >= len(self._of.units):
            return ""
        key = (place, skipped, state)
        if key not in self._names:
            ways: list[str] = []
            if self._may_take(place, skipped) and (rest := self._after(place, state)):
                ways.append(f"{_quoted(self._of.units[place])} {rest}")
            tears = not skipped and self._is_glued(place) and self._is_last(place)
            if not tears and (later := self._on(place + 1, min(skipped + 1, 2), state)):
                ways.append(later)
            self._names[key] = f"a{len(self._names)}" if ways else ""
            if ways:
                self._rules[self._names[key]] = ways
        return self._names[key]

    # A Chinese word is not taken apart: no single letter is left of it.

    def _may_take(self, place: int, skipped: int) -> bool:
        before = place - 1
        inside = self._is_glued(place) and self._is_glued(before) and not self._of.joins(self._of.units[before])
        return not skipped or not (self._is_single(before) or (inside and skipped == 1))

    def _is_single(self, place: int) -> bool:
        """Whether a letter begins a run that goes on."""
        return place >= 0 and not self._is_glued(place) and self._is_glued(place + 1)

    def _is_glued(self, place: int) -> bool:
        """Whether a letter belongs to the one before it; one that joins others belongs to none."""
        of = self._of
        return (
            0 < place < len(of.units)
            and of.glued[place]
            and not (of.joins(of.units[place]) or of.joins(of.units[place - 1]))
        )

    def _is_last(self, place: int) -> bool:
        """Whether a run ends with a letter."""
        return not self._is_glued(place + 1)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
