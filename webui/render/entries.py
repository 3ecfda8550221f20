"""The entries of Gradio's Chatbot, as plain dicts."""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

from core.messages.invisible import without_invisible

Entry: TypeAlias = dict[str, Any]
BubbleState: TypeAlias = Literal["pending", "done"]

_HALVES = re.compile("[\ud800-\udfff]")


def said(role: Literal["user", "assistant"], markdown: str) -> Entry:
    """A message. The text goes in a part of its own: Gradio would re-indent a plain string.

    What nobody sees is taken out of what a model wrote, too. Half a surrogate pair would end the page's stream.
    """
    seen = _HALVES.sub("\ufffd", without_invisible(markdown).text)
    return {"role": role, "content": [{"type": "text", "text": seen}]}


def bubble(title: str, markdown: str, state: BubbleState, *, bubble_id: str = "", parent_id: str = "") -> Entry:
    """A line that opens. `pending` opens it, `done` closes it, until the reader decides.

    Args:
        title: Markup that was escaped.
        markdown: What is inside.
        state: Gradio knows these two; ours is in the title.
        bubble_id: Needed where others belong to this one.
        parent_id: The bubble that this one belongs to; it comes before.
    """
    metadata: dict[str, Any] = {"title": title, "status": state}
    if bubble_id:
        metadata["id"] = bubble_id
    if parent_id:
        metadata["parent_id"] = parent_id
    return {**said("assistant", markdown), "metadata": metadata}


def within(markdown: str, parent_id: str) -> Entry:
    """Words inside a bubble, among the bubbles there: always open, without a line of their own.

    Args:
        markdown: The words.
        parent_id: The bubble; it comes before.
    """
    return bubble('<span class="p-words"></span>', markdown, "pending", parent_id=parent_id)
