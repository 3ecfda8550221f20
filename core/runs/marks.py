"""The marks of a reply's sentences: those in its text, and those that only the check of its claims found."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from core.rag.attribution import sentences_of
from core.runs.reply import TextBlock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.runs.log import Checked
    from core.runs.reply import Reply

_MARK = re.compile(r"\[(\d{1,3})\]")
_MARKED = re.compile(r"\[\d{1,3}\]\W{0,3}\Z")


def missing_marks(claims: Iterable[Checked], text: str) -> dict[int, tuple[int, ...]]:
    """The passages of supported sentences that have no mark in the text.

    A sentence that ends in a mark has what its author wanted; one that has a mark further in gets no equal one.

    Args:
        claims: Of one text.
        text: That text, with the marks it has.

    Returns:
        Numbers of passages, by where the sentence ends; sentences that lack none are left out.
    """
    supported = [one for one in claims if one.verdict == "supported"]
    ends = [end for _, end in sentences_of(text)] if supported else []
    starts = dict(zip(ends, [0, *ends], strict=False))
    missing: dict[int, tuple[int, ...]] = {}
    for claim in supported:
        sentence = text[starts.get(claim.end, claim.end) : claim.end]
        marked = {int(number) for number in _MARK.findall(sentence)}
        numbers = tuple(number for number in claim.numbers if number not in marked)
        if numbers and sentence and not _MARKED.search(sentence):
            missing[claim.end] = numbers
    return missing


def marked_texts(reply: Reply) -> dict[int, str]:
    """The texts of a reply by the indices of their blocks, with the marks that supported sentences lack."""
    texts: dict[int, str] = {}
    for at, block in enumerate(reply.blocks):
        if not isinstance(block, TextBlock):
            continue
        text = block.text
        missing = missing_marks((one for one in reply.claims if one.block == at), text)
        for end, numbers in sorted(missing.items(), reverse=True):
            text = text[:end] + "".join(f" [{number}]" for number in numbers) + text[end:]
        texts[at] = text
    return texts
