"""The marks of a reply's sentences: those in its text, and those that only the check of its claims found."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from core.rag.claims import sentences_of
from core.runs.reply import TextBlock

if TYPE_CHECKING:
    from core.runs.log import Checked
    from core.runs.reply import Reply

_MARKED = re.compile(r"\[\d{1,3}\]\W{0,3}\Z")


def is_marked(claim: Checked, text: str) -> bool:
    """Whether the sentence has a mark of its own in the text."""
    return bool(_MARKED.search(text, max(0, claim.end - 12), claim.end))


def marked_texts(reply: Reply) -> dict[int, str]:
    """The texts of a reply by the indices of their blocks, with the marks that supported sentences lack."""
    texts: dict[int, str] = {}
    for at, block in enumerate(reply.blocks):
        if not isinstance(block, TextBlock):
            continue
        claims = [one for one in reply.claims if one.block == at and one.verdict == "supported"]
        ends = {end for _, end in sentences_of(block.text)} if claims else set[int]()
        text = block.text
        for claim in sorted(claims, key=lambda one: one.end, reverse=True):
            if claim.end in ends and not is_marked(claim, block.text):
                text = text[: claim.end] + "".join(f" [{number}]" for number in claim.numbers) + text[claim.end :]
        texts[at] = text
    return texts
