"""Answers that leave out a condition, and answers that tell it or have none beside them.

Two kinds of omission are made of passages of `questions/`. `clause`: a sentence with a condition in it ("…, unless …",
"除…外，…") is answered without it. `beside`: behind a sentence of a passage, at once or after the next one, stands an
exception that was put there, made of the words of another passage, and the answer is that sentence alone. For each
there is an answer that tells it. `plain`: sentences of passages as they are, in other words, with nothing put beside
them; what is told of those is counted as a false alarm, also where the passage does have a condition there.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from bench.false_sentences import in_other_words, texts

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind: TypeAlias = Literal["clause", "beside", "told", "plain"]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer from passages.

    Args:
        text: As an answer might say it.
        passages: What it rests on.
        kind: `clause` and `beside` leave out what limits it; `told` says it; `plain` has nothing put beside it.
    """

    text: str
    passages: tuple[str, ...]
    kind: Kind


_CLAUSE: Final = re.compile(
    r"([A-Z][^.;:]{30,200}?),? ((?:unless|except|provided that|excluding|only if|only when|as long as|so long as"
    r"|with the exception of|but not|but only|subject to|on condition that|save for) [^.;:,]{8,120})\."
)
_HAN_CLAUSE: Final = re.compile(
    r"(?P<before>除(?:了)?[^，。；]{2,25}(?:以外|之外|外)，)(?P<main>[^。；也还亦均都]{10,80})。"
    r"|(?P<first>[^。；，]{8,60})(?P<after>，(?:但不|但是不|但必须|但须|但仅|但只|除非|不包括|不含|否则)[^。；]{3,50})。"
)
_BESIDE: Final = (
    "This does not apply to {thing}.",
    "It holds only if {thing} has been seen before.",
    "An exception is made for {thing}.",
    "{subject} is excluded where {thing} comes first.",
    "Unless {thing} is named, {subject} does not count.",
    "However, {subject} is limited to {thing}.",
    "That is the rule for {subject}, except for {thing}.",
    "In the case of {thing}, this is not so.",
)
_HAN_BESIDE: Final = (
    "但{thing}除外。",
    "这不适用于{thing}。",
    "只有涉及{thing}时，{subject}才有效。",
    "除非另有{thing}，否则{subject}不算。",
    "{thing}例外。",
    "{subject}不包括{thing}。",
    "{subject}仅限于{thing}。",
    "涉及{thing}的，{subject}不在此列。",
)
_NAME: Final = re.compile(r"(?<=[a-z,] )(?:the )?[A-Z][a-z]+(?: [A-Z][a-z]+)+")
_SUBJECT: Final = re.compile(r"(?:The |A |An )?(?:[A-Z]?[a-z]+ ){1,3}?(?=is |was |are |were |has |had )")
_HAN_THING: Final = re.compile(r"《[^》]{2,10}》|[\u4e00-\u9fff]{2,4}(?=位于|是一|成立|出生)")
_HAN_SUBJECT: Final = re.compile(r"[\u4e00-\u9fff]{3,8}?(?=[是为在有于])")


def answers(lang: Literal["en", "zh"], count: int, seed: int) -> list[Answer]:
    """Answers of all kinds from `count` passages, each resting on its own and two others."""
    lots = random.Random(seed)
    drawn = texts("squad_dev" if lang == "en" else "cmrc2018", count, seed)
    made: list[Answer] = []
    for at, text in enumerate(drawn):
        others = (drawn[at - 1], drawn[(at + 1) % count])
        whole = _whole(text, lang)
        made += _with_clause(whole, text, others, lang)
        if whole:
            made += _with_beside(whole, text, others, lang, lots)
            plain = lots.sample(whole, min(2, len(whole)))
            made += [Answer(in_other_words(said, lots, lang), (others[0], text, others[1]), "plain") for said in plain]
    return made


def _whole(text: str, lang: str) -> list[str]:
    parts = re.split(r"(?<=[a-z\d)]\.)\s(?=[A-Z])", text) if lang == "en" else re.findall(r"[^。！？\n]+。", text)
    return [one.strip() for one in parts if (40 if lang == "en" else 15) < len(one) < 260]


def _with_clause(whole: list[str], text: str, others: tuple[str, str], lang: str) -> Iterator[Answer]:
    given = (others[0], text, others[1])
    for said in whole:
        found = (_CLAUSE if lang == "en" else _HAN_CLAUSE).fullmatch(said)
        if found is None:
            continue
        if lang == "en":
            main, told = f"{found[1]}.", f"{found[2][0].upper()}{found[2][1:]}, {found[1][0].lower()}{found[1][1:]}."
        else:
            main = f"{found['main'] or found['first']}。"
            told = f"{found['main']}（{found['before'].rstrip('，')}）。" if found["main"] else said
        yield Answer(main, given, "clause")
        yield Answer(told, given, "told")


def _with_beside(
    whole: list[str], text: str, others: tuple[str, str], lang: str, lots: random.Random
) -> Iterator[Answer]:
    names, subjects, forms = (_NAME, _SUBJECT, _BESIDE) if lang == "en" else (_HAN_THING, _HAN_SUBJECT, _HAN_BESIDE)
    things = sorted({one for one in names.findall(others[0]) if one not in text})
    said = lots.choice(whole)
    subject = subjects.match(said)
    if not things or subject is None:
        return
    form = lots.choice(forms)
    limit = form.format(thing=lots.choice(things), subject=subject[0].strip())
    limit = f"{limit[0].upper()}{limit[1:]}"
    gap = "" if lang == "zh" else " "
    end = text.index(said) + len(said)
    given = (others[1], f"{text[:end]}{gap}{limit}{text[end:]}")
    yield Answer(in_other_words(said, lots, lang), given, "beside")
    yield Answer(f"{in_other_words(said, lots, lang)}{gap}{limit}", given, "told")
