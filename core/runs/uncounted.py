"""Whether a reply tells figures of several rows of a table that no program counted or computed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from core.messages.computed import COMPUTED
from core.rag.citations import without_marks
from core.rag.claims.figures import figures_of
from core.rag.several_rows import asks_of_several_rows, is_told_by_a_row, rows_of
from core.runs.reply import CallBlock, TextBlock
from core.runs.untold import without_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from core.runs.log import Checked
    from core.runs.reply import Reply

_MARK: Final = re.compile(r"\[(\d{1,3})\]")
_DENIES: Final = re.compile(r"\b(?:no|not|none|cannot)\b|n['’]t\b|[不没未无]", re.IGNORECASE)
# They find and read, and compute nothing of what they read. Any other tool may have counted.
_READERS: Final = frozenset({
    "amap_weather", "ask_documents", "current_time", "doc_parser", "extract_doc_vocabulary", "front_page_search",
    "hybrid_search", "image_gen", "image_search", "image_zoom_in_tool", "keyword_search", "retrieval",
    "simple_doc_parser", "storage", "use_skill", "vector_search", "web_extractor", "web_search",
})  # fmt: skip


def is_uncounted(reply: Reply, asked: str, claims: Iterable[Checked], earlier: Sequence[str] = ()) -> bool:
    """Whether the question wants several rows, the reply rests on rows, and no program counted anything for it.

    Args:
        asked: The question.
        claims: What the check found of the reply's sentences.
        earlier: The questions before it, oldest first: "and in the West?" asks what the one before it asked.
    """
    if not asks_of_several_rows(asked, earlier) or _was_computed(reply):
        return False
    text = "\n".join(block.text for block in reply.blocks if isinstance(block, TextBlock))
    said = without_names(without_marks(text), {str(one.get("document") or "") for one in reply.passages})
    borne_out = [one for one in claims if one.verdict == "supported"]
    if not figures_of(said) and (not borne_out or _DENIES.search(said)):
        return False  # it says that it does not know
    numbers = {int(number) for number in _MARK.findall(text)}.union(*(one.numbers for one in borne_out))
    cited = [one for one in reply.passages if one.get("number") in numbers]
    tables = [_rows(one) for one in cited or reply.passages]
    # One cited passage of prose may tell the figure itself.
    rests_on_rows = all(tables) if cited else any(tables)
    return rests_on_rows and not is_told_by_a_row(asked, said, [one for one in tables if one])


def _rows(passage: dict[str, Any]) -> list[str]:
    return rows_of(str(passage.get("text") or ""), str(passage.get("document") or ""))


def _was_computed(reply: Reply) -> bool:
    """Whether a program gave a figure: as a passage, or as the result of a call, also of an agent that was called."""
    if any(one.get(COMPUTED) or one.get("rows") for one in reply.passages):
        return True
    calls = [block for block in reply.blocks if isinstance(block, CallBlock)]
    return any(
        _was_computed(one.inner) if one.inner is not None else one.state == "done" and one.name not in _READERS
        for one in calls
    )
