"""The entries of Gradio's Chatbot as plain dicts, and the line that names a speaker."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Literal, TypeAlias

from core.messages.invisible import without_invisible
from webui.render.markup import escaped

Entry: TypeAlias = dict[str, Any]
BubbleState: TypeAlias = Literal["pending", "done"]

_HALVES = re.compile("[\ud800-\udfff]")


def message_entry(role: Literal["user", "assistant"], markdown: str) -> Entry:
    """A message. Its text is a content part, for Gradio would re-indent a plain string.

    What nobody sees is taken out of what a model wrote, too. Half a surrogate pair would end the page's stream.
    """
    seen = _HALVES.sub("\ufffd", without_invisible(markdown).text)
    return {"role": role, "content": [{"type": "text", "text": seen}]}


def bubble(title: str, markdown: str, state: BubbleState, *, bubble_id: str = "", parent_id: str = "") -> Entry:
    """A line that unfolds. `pending` unfolds it and `done` folds it, until the reader does.

    Args:
        title: Markup, escaped already.
        state: Gradio's; the state of a call is in the title.
        bubble_id: Needed where other bubbles are inside this one.
        parent_id: The bubble that this one is inside; it comes before.
    """
    metadata: dict[str, Any] = {"title": title, "status": state}
    if bubble_id:
        metadata["id"] = bubble_id
    if parent_id:
        metadata["parent_id"] = parent_id
    return {**message_entry("assistant", markdown), "metadata": metadata}


def inside_bubble(markdown: str, parent_id: str) -> Entry:
    """Text inside a bubble, among the bubbles there: always unfolded, without a line of its own.

    Args:
        parent_id: The bubble; it comes before.
    """
    return bubble('<span class="p-words"></span>', markdown, "pending", parent_id=parent_id)


def time_html(at: float, *, then: bool = False) -> str:
    """Markup of a time, which the page tells in the reader's own.

    Args:
        at: In Unix seconds.
        then: Whether more follows in its line.
    """
    told = datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
    return f'<span class="p-time{" p-then" if then else ""}" title="{told}"></span>'


_TINTS = 8
_PARTS = re.compile(r"[^\W_]+")
# Scripts that write a word as one character, which suffices.
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")


def face(name: str) -> str:
    """Markup of a speaker's avatar: initials, unless the style of the page puts a program's own picture there.

    The tint depends on the name alone.
    """
    tint = int(_digest(name)[:8], 16) % _TINTS
    return f'<span class="p-face p-tint-{tint} {face_class(name)}" aria-hidden="true">{escaped(initials(name))}</span>'


def face_class(name: str) -> str:
    """The CSS class of this name's avatar."""
    return f"p-face-{_digest(name)[:10]}"


def initials(name: str) -> str:
    """One or two characters for a name: "Data Analyst" is DA, "研究员" is 研."""
    parts = _PARTS.findall(name)
    if not parts:
        return name.strip()[:1] or "?"
    if _WIDE.match(parts[0]):
        return str(parts[0][0])
    letters = [str(part[0]) for part in parts[:2] if not _WIDE.match(part)]
    return "".join(letters).upper()[:2]


def speaker(name: str) -> str:
    """The line that names a speaker, where there are several."""
    return f'<p class="p-speaker p-faced">{face(name)}<span>{escaped(name)}</span></p>'


def _digest(name: str) -> str:
    return sha256(name.strip().casefold().encode()).hexdigest()
