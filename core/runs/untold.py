"""What was counted or computed by program for a reply that does not tell its figure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from core.messages.computed import COMPUTED
from core.rag.citations import without_marks
from core.rag.claims.figures import figures_of
from core.runs.reply import TextBlock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.runs.reply import Reply

_MOST: Final = 6  # as many as are counted for one question
_EMPHASIS: Final = re.compile(r"[*_`]+")


def untold(reply: Reply) -> list[dict[str, Any]]:
    """The passages that hold such sentences, with their numbers; at most six.

    A small model may write another number than the one that it was given, such as the total. So what counts is whether
    the figure stands in the text of the reply, apart from marks and the names of documents.
    """
    computed = [one for one in reply.passages if isinstance(one.get(COMPUTED), str) and one[COMPUTED]]
    if not computed:
        return []
    names = {str(one.get("document") or "") for one in reply.passages}
    said = "\n".join(block.text for block in reply.blocks if isinstance(block, TextBlock))
    cleaned = without_names(without_marks(said), names)
    there, plain = figures_of(cleaned), _plain(cleaned)

    def is_told(figure: str) -> bool:
        wanted, rest = figures_of(figure), figure
        for one in wanted:
            rest = rest.replace(one.words, " ")
        if wanted and not any(letter.isalpha() for letter in rest):
            return all(any(one.equals(other) for one in there) for other in wanted)
        # What a row is called: as it is written, and not within another word or number.
        return re.search(rf"(?<![^\W_]){re.escape(_plain(figure))}(?![^\W_])", plain) is not None

    return [one for one in computed if not is_told(one[COMPUTED])][:_MOST]


def without_names(text: str, names: Iterable[str]) -> str:
    """The text without names of files, whole and without their endings, however they are written."""
    stems = (name.rpartition(".")[0] for name in names)
    every = {name for name in (*names, *stems) if any(letter.isalpha() for letter in name)}
    for name in sorted(every, key=len, reverse=True):
        text = re.sub(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", " ", text, flags=re.IGNORECASE | re.ASCII)
    return text


def _plain(text: str) -> str:
    return " ".join(_EMPHASIS.sub("", text).split()).casefold()
