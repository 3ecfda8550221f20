"""Amounts that a sentence gives for one year and a passage for another."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from core.rag.claims.figures import ROMAN, VERSION
from core.rag.claims.paired import is_same_kind
from core.rag.claims.said import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.claims.figures import Figure
    from core.rag.claims.said import Said

_MOST = 40  # figures of a sentence
_NEAR = 60  # characters between an amount and its year
# "3 % in 2010", "310 members by the end of 2010", "$5 million in March 2011".
_THEN = re.compile(
    r"(?:\s[a-z-]+){0,3}?\s(?:in|by|during|for|im|en)\s(?:the (?:year|end of) |early |late |[A-Z][a-z]{2,8}\.? )?"
)
_BEFORE = re.compile(r"\b(?:in|by|during|for|of|im|en)\s(?:the (?:year|end of) |early |late )?\Z", re.IGNORECASE)
_LONGEST_BEFORE = 24
_TOLD = re.compile(r",?(?:\s[A-Za-z-]+){0,9}\s[$€£¥]?")  # "In 2010, the club had 310"
_TOLD_HAN = re.compile(r"[，,]?\s?[\u4e00-\u9fff]{0,12}\s?")


class _Dated(NamedTuple):
    """An amount and the year that it is given for."""

    amount: Figure
    year: Figure


def other_year(claim: Said, near: Said, around: Sequence[Said]) -> list[Reason]:
    """Amounts that this sentence of a passage gives for another year, with those that it gives for theirs.

    Args:
        around: The sentences of the passages that are alike, and those beside them; what one of them gives is right.
    """
    mine = dated(claim)
    if not mine:
        return []
    theirs = dated(near)
    given = [*theirs, *(each for one in around for each in dated(one))]
    found: list[Reason] = []
    for amount, year in mine:
        if any(year.number == one.year.number and amount.equals(one.amount) for one in given):
            continue
        is_of_another = any(amount.equals(one.amount) for one in theirs if one.year.number != year.number)
        rivals = [one.amount for one in theirs if one.year.number == year.number and is_same_kind(amount, one.amount)]
        if is_of_another and rivals:
            found.append(Reason("amount", amount.words, rivals[0].words, near.number))
    return found


def dated(said: Said) -> list[_Dated]:
    """The amounts of a sentence that stand beside their year: "3 % in 2010"; "In 2010 it had 310"; "2010年的3%"."""
    text, figures = said.plain, said.figures[:_MOST]
    years = [one for one in figures if _is_year(one)]
    found: list[_Dated] = []
    for one in figures if years else ():
        if one.kind != "amount" or one.unit in {ROMAN, VERSION}:
            continue
        year = _year_after(one, years, text) or _year_before(one, figures, text)
        found += [_Dated(one, year)] if year else []
    return found


def _is_year(one: Figure) -> bool:
    return one.kind == "date" and one.unit == ""


def _year_after(amount: Figure, years: Sequence[Figure], text: str) -> Figure | None:
    end = amount.start + len(amount.words)
    after = next((one for one in years if one.start >= end), None)
    return after if after and after.start - end <= _NEAR and _THEN.fullmatch(text, end, after.start) else None


def _year_before(amount: Figure, figures: Sequence[Figure], text: str) -> Figure | None:
    """The year before, with no figure in between."""
    before = max((one for one in figures if one.start < amount.start), key=lambda one: one.start, default=None)
    if before is None or not _is_year(before):
        return None
    end = before.start + len(before.words)
    if amount.start - end > _NEAR:
        return None
    if before.words.endswith("年"):
        return before if _TOLD_HAN.fullmatch(text, end, amount.start) else None
    is_begun = _BEFORE.search(text[max(0, before.start - _LONGEST_BEFORE) : before.start]) is not None
    return before if is_begun and _TOLD.fullmatch(text, end, amount.start) else None
