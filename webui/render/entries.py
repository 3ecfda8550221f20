"""The entries of Gradio's Chatbot, as plain dicts."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

Entry: TypeAlias = dict[str, Any]
BubbleState: TypeAlias = Literal["pending", "done"]


def said(role: Literal["user", "assistant"], markdown: str) -> Entry:
    """A message. The text goes in a part of its own: Gradio would re-indent a plain string."""
    return {"role": role, "content": [{"type": "text", "text": markdown}]}


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
