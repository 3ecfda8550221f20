"""Titles by small models: words that stand together in the exchange, and nothing else.

A small model that is asked for a name answers the question, or repeats what it was told. Shown some examples, and held
to phrases of the question by a grammar, it picks the subject.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from core.agents.title_phrases import ASKS_ZH, DOCUMENT_ZH, LONGEST_PHRASE, SCRIPT, WORD, phrases, tongue_of
from core.llm.calling.neutral import neutral
from core.messages.message import ASSISTANT, USER, Message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.languages import Lang

_READ: Final = 600  # letters of the question
_READ_REPLY: Final = 240  # letters of the reply: what it is about stands at its beginning
_MOST_UNITS: Final = 60
_LEAST: Final[Mapping[Lang, int]] = {"en": 2, "zh": 4}  # words, or Chinese letters, where there are as many
_LONG: Final = 5  # words that name something: of so many three stay
_FILE: Final = re.compile(r"[^\n/]{1,200}\.[A-Za-z0-9]{1,5}")
_ASKING: Final = """what which who whom whose where when how is are was were be been am do does did has have had can
could would should will shall may might please tell me you your yours i my mine we our us it its this that these those
there here explain give make show let say hello hi hey thanks thank if then so as many much any some mean means don't
doesn't didn't i'm it's what's whats who's how's let's called named than but not no yes ok okay help want need know
provides describes contains like just really"""
_JOINING: Final = """a an the why of in on at for to from by with and or into about between against because within
without during before after under over through since until"""
_POINTING: Final = """file files document documents text page pages pdf article attachment attached above below
following summarise summarize summary content contents"""
_ASKS: Final = frozenset(_ASKING.split())
"""Words that ask, and name nothing."""
_JOIN: Final = frozenset(_JOINING.split())
"""Words that join others, and name nothing by themselves."""
_DOCUMENT: Final = frozenset(_POINTING.split())
"""Words that point to a document, and say nothing of it."""
_REFUSES: Final = re.compile(
    r"\b(?:sorry|apologi[sz]e|unfortunately|cannot|can't|can’t|unable)\b|抱歉|对不起|无法|不能", re.IGNORECASE
)
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
        ("can you help me fix my bread, it does not rise", "", "Fix my bread"),
        ("How much is 12% of 80?", "", "12% of 80"),
        ("Please tell me why leaves are red in autumn", "", "Why leaves are red in autumn"),
        ("Write a letter to the landlord about the broken heating", "", "Letter to the landlord"),
    ),
    "zh": (
        ("日本的第一条铁路是哪一年开通的？", "", "日本的第一条铁路"),
        ("我的面包总是发不起来，怎么办？", "", "面包总是发不起来"),
        ("80的百分之十二是多少？", "", "80的百分之十二"),
        ("怎样写信给房东说暖气坏了？", "", "写信给房东说暖气坏了"),
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
        ("请看看这份文件讲什么", "这是一份在上海租房的合同，规定了租金和期限。", "上海租房的合同"),
        ("总结一下", "这份报告介绍了长江大桥的维修过程和费用。", "长江大桥的维修过程和费用"),
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
        titles: All that it may answer, one at least.
    """

    lang: Lang
    messages: tuple[Message, ...]
    titles: tuple[str, ...]

    @property
    def grammar(self) -> str:
        """All titles that may be, as llama.cpp reads a grammar."""
        groups: dict[str, list[str]] = {}
        for title in self.titles:
            head, gap, rest = title.partition(" ")
            groups.setdefault(head, []).append(gap + rest)
        ways: list[str] = []
        for head, rests in groups.items():
            large = _begun_large(head)
            first = _quoted(head) if large == head else f"({_quoted(large)} | {_quoted(head)})"
            ways.append(f"{first} ({' | '.join(map(_quoted, rests))})")
        return f"root ::= {' | '.join(ways)}"

    def title(self, line: str) -> str:
        """A line as one of the titles; empty where it is none."""
        wanted = " ".join(line[: 2 * LONGEST_PHRASE].casefold().split())  # what is longer is none
        return _begun_large(next((one for one in self.titles if one.casefold() == wanted), ""))


def naming(question: str, reply: str) -> Naming | None:
    """How a small model names an exchange; `None` where no phrase of it would say more than the first words.

    Args:
        question: With the names of its files, each on a line.
        reply: Of a question that only points to a file, it tells the subject; of others, which words stand together.
    """
    lines = [line.strip() for line in question[: 2 * _READ].splitlines() if line.strip()]
    files = [line for line in lines[1:] if _FILE.fullmatch(line)]
    files += [line for line in lines[:1] if _FILE.fullmatch(line) and " " not in line and len(lines) == 1 + len(files)]
    text = "\n".join(line for line in lines if line not in files)[:_READ]
    lang, first = _lang_of(text), lines[0] if lines else ""
    units, named = _units(text, lang), _units(text, lang, points=False)
    count = sum(not _joins(one, lang) for one in named)
    points = bool(files) or len(named) < len(units)
    if count > 1 or (count and not points):
        return _named(lang, _messages(text, "", lang), _titles(phrases(text, reply), units, lang, first))
    said = reply.strip()[:_READ_REPLY]
    if not points or _REFUSES.search(said):
        return None
    lang = _lang_of(said)
    units = _units(said, lang, points=False)
    if sum(not _joins(one, lang) for one in units) < _LEAST[lang]:
        return None
    # A small model's reply has names, its own among them, that say nothing of the document.
    told = [one for one in phrases(said, points=False) if not _points(one, lang)]
    return _named(lang, _messages(text or first, said, lang), _titles(told, units, lang, first, wants_name=False))


def _named(lang: Lang, messages: tuple[Message, ...], titles: tuple[str, ...]) -> Naming | None:
    return Naming(lang, messages, titles) if titles else None


def _lang_of(text: str) -> Lang:
    return "zh" if SCRIPT.search(text) else "en"


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


# -- what a title has at least -----------------------------------------------------------------------------------------


def _titles(
    found: Sequence[str], units: Sequence[str], lang: Lang, first: str, *, wants_name: bool = True
) -> tuple[str, ...]:
    """The phrases that say enough of a text with these units, and more than its first line.

    Args:
        wants_name: Of the proper names among the units a title has one at least.
    """
    count = sum(not _joins(one, lang) for one in units)
    is_english = lang == "en" and tongue_of(" ".join(units)) == "en"
    least = min(_LEAST[lang] + (is_english and count >= _LONG), count)
    is_name = _NAME_ZH.match if lang == "zh" else _is_name
    names = {one for one in units[1:] if is_name(one)} if wants_name else set[str]()
    return tuple(
        one
        for one in found
        if sum(not _joins(unit, lang) for unit in _parts(one, lang)) >= least
        and (not names or not names.isdisjoint(_parts(one, lang)))
        and _bare(one) != _bare(first)
    )


def _parts(text: str, lang: Lang) -> list[str]:
    return _UNIT_ZH.findall(text) if lang == "zh" else WORD.findall(text)


def _units(text: str, lang: Lang, *, points: bool = True) -> list[str]:
    """The words of a text that name something, or join what does; of Chinese the letters, runs of Latin ones, figures.

    Args:
        points: Words that point to a document are among them.
    """
    if lang == "zh":
        text = ASKS_ZH.sub("\n", text)
        return _parts(text if points else DOCUMENT_ZH.sub("\n", text), lang)[:_MOST_UNITS]
    left_out = _ASKS if points else _ASKS | _DOCUMENT
    return [one for one in WORD.findall(text)[:_MOST_UNITS] if one.casefold() not in left_out]


def _points(text: str, lang: Lang) -> bool:
    """Whether a phrase has a word that points to a document."""
    return lang == "en" and not _DOCUMENT.isdisjoint(WORD.findall(text.casefold()))


def _joins(unit: str, lang: Lang) -> bool:
    """Whether a unit is no word of its own, but joins others."""
    return unit in _JOIN_ZH if lang == "zh" else unit.casefold() in _JOIN or unit.casefold() in _ASKS


def _is_name(word: str) -> bool:
    return word[0].isupper() and not _joins(word, "en")


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def _begun_large(title: str) -> str:
    """A title whose first word begins with a large letter, unless that word has one elsewhere ("iPhone")."""
    return title[:1].upper() + title[1:] if title.partition(" ")[0].islower() else title


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
