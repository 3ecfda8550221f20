"""The small note on invisible characters that were taken out of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webui.words import Words


def invisible(extra: Mapping[str, object] | None, words: Words) -> str:
    """What is said of them; empty where none were taken out.

    Args:
        extra: Of the message that the text stands in.
        words: The reader's.
    """
    removed = (extra or {}).get("invisible")
    return said(removed, words) if isinstance(removed, int) else ""


def said(removed: int, words: Words) -> str:
    """The same of so many."""
    return words("invisible.removed" if removed > 1 else "invisible.removed_one", n=removed) if removed > 0 else ""
