"""Who did what: a name that a sentence gives for what a passage says of another one."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from core.rag.attribution import is_figure, words_of
from core.rag.claims.names import KnownNames, Name, is_person, names_of
from core.rag.prose import ideographs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_MOST = 600  # characters of a sentence that are looked at
MOST_SENTENCES: Final = 1_000
"""In so many it is looked for who does what."""
_CLAUSE = re.compile(
    r";\s|,? (?:while|whereas) |, (?:and|but) (?=(?:[a-z]+ ){0,3}(?:[A-Z]|by\b))|(?<=\w) and (?=by [A-Z])"
)
_HAN_CLAUSE = re.compile(r"[，,；;。]")
_BY = re.compile(r"\b(?:by|author(?: of [^,;.]{1,60})? (?:is|was))\s(?:the\s)?\Z")
_OPENING = re.compile(r"\W*(?:(?:yes|no|and|but|while|whereas|the|later|then|in \d{4}),? )*\Z", re.IGNORECASE)
_PRONOUN = re.compile(r"\b(?:he|she|they|his|her|their|it|its|who|whose)\b|[他她它其]", re.IGNORECASE)
_FORMS: Final = {
    form: group[0]
    for group in (
        one.split()
        for one in (
            "write wrote written author writer authored",
            "draw drew drawn",
            "make made maker",
            "build built builder",
            "take took taken",
            "give gave given",
            "found founded founder",
            "invent inventor",
            "discov discover",
            "paint painter",
            "compos composer",
            "direct director",
            "sing sang sung singer",
            "win won winner",
            "sell sold seller",
            "buy bought buyer",
            "lead led leader",
            "teach taught",
            "chose chosen choos",
            "speak spoke spoken",
            "design designer",
            "translat translator",
            "sign signer",
        )
    )
    for form in group
}
_HAN_FORMS: Final = (
    ("撰写", "编写", "编著", "创作", "作者", "所写", "所著", "写", "著"),
    ("发明", "发明者", "发明人"),
    ("发现", "发现者"),
    ("创立", "创办", "创建", "创始人"),
    ("设计", "设计者", "设计师"),
    ("导演",),
    ("绘制", "绘画", "画"),
    ("翻译", "译者"),
    ("签署", "签订", "签字"),
    ("主编",),
    ("提出",),
    ("起草",),
    ("开发", "研制", "研发"),
    ("批准", "审批"),
    ("负责",),
)
_HAN_VERBS: Final = {verb: group[0] for group in _HAN_FORMS for verb in group}
_HAN_VERB = "|".join(sorted(_HAN_VERBS, key=len, reverse=True))
_HAN_PERSON = r"[\u4e00-\u9fff·]{2,12}?"
_HAN_MADE: Final = re.compile(
    rf"(?:由|是|为)(?P<a>{_HAN_PERSON})(?:所|负责)?(?P<v>{_HAN_VERB})"
    rf"|(?P<w>作者|译者|导演|主编|设计者|设计师|发明者|发明人|发现者|创始人)(?:是|为|:|：)(?P<b>[\u4e00-\u9fff·]{{2,12}})"
    rf"|\A\s*(?P<c>{_HAN_PERSON})(?P<u>{_HAN_VERB})"
)


class Clause(NamedTuple):
    """A part of a sentence, with who does something in it.

    Args:
        words: Its content words, forms of the same verb as one.
        agents: The names of who does it.
        names: All its names.
        text: As it stands there.
        sentence: The sentence it is of, from 0.
        number: The number of that sentence's passage.
    """

    words: frozenset[str]
    agents: tuple[Name, ...]
    names: tuple[Name, ...]
    text: str
    sentence: int
    number: int


def _forms(text: str) -> frozenset[str]:
    return frozenset(_FORMS.get(word, word) for word in words_of(text))


def _agents(text: str, names: Sequence[Name]) -> tuple[Name, ...]:
    """The names of who does what a clause says: it begins with them, or "by" stands before them."""
    return tuple(
        one
        for one in names
        if one.words
        and (
            _BY.search(text[max(0, one.start - 90) : one.start])
            or (_OPENING.match(text[: one.start]) and re.match(r"\s[a-z]", text[one.start + len(one.words) :]))
        )
    )


def clauses_of(sentences: Iterable[tuple[str, int]]) -> list[Clause]:
    """The clauses of the first sentences in plain letters, each with the number of its passage."""
    found: list[Clause] = []
    for at, (sentence, number) in enumerate(islice(sentences, MOST_SENTENCES)):
        text = sentence[:_MOST]
        splits = _HAN_CLAUSE if _is_wide(text) else _CLAUSE
        for part in splits.split(text):
            if part.strip():
                names = tuple(names_of(part))
                found.append(Clause(_forms(part), _agents(part, names), names, part, at, number))
    return found


def misattributed(sentence: str, clauses: Sequence[Clause]) -> Iterator[tuple[str, str, int]]:
    """A name of who did it, with the one of the passage and its number, where all that is said is said of that one."""
    sentence = sentence[:_MOST]
    if _is_wide(sentence):
        yield from _made_by_another(sentence, clauses)
        return
    names = names_of(sentence)
    # A word that has a capital where a sentence begins, and nowhere else, is none.
    named = {part for clause in clauses for one in clause.names if not one.begins for part in one.parts}
    for name in _agents(sentence, names):
        mine = set(name.parts)
        if name.begins and not mine & named:
            continue
        said = _forms(sentence[: name.start] + " " + sentence[name.start + len(name.words) :])
        if len(said) < 2 or _is_his(mine, said, clauses):
            continue
        covering = [one for one in clauses if _covers(one.words, said)]
        others = [
            (rival, one.number)
            for one in covering
            for rival in one.agents
            if not mine & set(rival.parts)
            and not (rival.begins and named.isdisjoint(rival.parts))
            and not _is_short_for(name, rival)
            and not set(rival.parts) & {part for other in names for part in other.parts}
        ]
        if len(others) == len(covering) > 0 and not any(_points_to(mine, one, clauses) for one in covering):
            yield name.words, others[0][0].words, others[0][1]


def _is_short_for(one: Name, other: Name) -> bool:
    return KnownNames([one.words]).has(other) or KnownNames([other.words]).has(one)


def _covers(words: frozenset[str], said: frozenset[str]) -> bool:
    return len(said - words) <= len(said) // 5


def _is_his(mine: set[str], said: frozenset[str], clauses: Sequence[Clause]) -> bool:
    """Whether a clause with this name says most of it too, or all but a figure."""
    for one in clauses:
        if not any(mine & set(name.parts) for name in one.names):
            continue
        lacking = said - one.words
        if 2 * len(lacking) < len(said) or all(map(is_figure, lacking)):
            return True
    return False


def _points_to(mine: set[str], clause: Clause, clauses: Sequence[Clause]) -> bool:
    """Whether a clause may speak of this name by a pronoun: it has one, and the name stands in or before it."""
    if not _PRONOUN.search(clause.text):
        return False
    near = [one for one in clauses if clause.sentence - 2 <= one.sentence <= clause.sentence]
    return any(mine & set(name.parts) for one in near for name in one.names)


# ---- in Chinese


def _made(text: str) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Who, what is done and to what, in a clause."""
    for found in _HAN_MADE.finditer(text):
        who = found["a"] or found["b"] or found["c"]
        verb = found["v"] or found["w"] or found["u"]
        for end in ("一起", "共同", "先生", "女士", "所"):
            who = who.removesuffix(end)
        rest = text[: found.start()] + "，" + text[found.end() :]
        if is_person(who) or ("·" in who and len(who) > 3):
            yield who, _HAN_VERBS[verb], frozenset(words_of(rest))


def _made_by_another(sentence: str, clauses: Sequence[Clause]) -> Iterator[tuple[str, str, int]]:
    for who, verb, what in _made(sentence.strip("。.")):
        if not what:
            continue
        there = [
            (other, one.number, one.text)
            for one in clauses
            for other, same, of in _made(one.text)
            if same == verb and len(what - of) <= len(what) // 4
        ]
        if there and not any(who in text or other in who or who in other for other, _, text in there):
            yield who, *there[0][:2]


def _is_wide(text: str) -> bool:
    return 3 * ideographs(text) > len(text)
