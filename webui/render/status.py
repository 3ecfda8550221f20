"""The state of the page's run, as attributes that the style and the script read: nothing is shown by it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from webui.render.html import escaped
from webui.words import Words

_ENDED = {status: f"reply.ended_{status}" for status in ("error", "stopped", "interrupted", "paused")}

State: TypeAlias = Literal["idle", "running", "stopping", "error"]


def status_html(  # noqa: PLR0913 - each is an attribute of its own
    state: State,
    conversation_id: str = "",
    *,
    lang: str = "",
    empty: bool = False,
    ended: str = "complete",
    asks: str = "",
    hears: bool = False,
) -> str:
    """Markup for `#status`.

    Args:
        state: Of the run in this conversation.
        conversation_id: What the address of the page names; empty for a new conversation.
        lang: The language of the page, `en` or `zh`.
        empty: Nothing was said yet: the room shows its greeting.
        ended: How the last reply ended, by its status.
        asks: What a tool waits to be allowed, or what the reply itself waits for, in words.
        hears: The model takes recordings: the composer shows the button that makes one.
    """
    room = "empty" if empty else "full"
    said = (asks or _said(state, ended, lang)) if conversation_id and not empty else ""
    attributes = f'data-state="{state}" data-conversation="{escaped(conversation_id)}" data-lang="{escaped(lang)}"'
    attributes += f' data-room="{room}" data-hears="{int(hears)}"'
    return f'<div class="p-status" role="status" {attributes}>{escaped(said)}</div>'


def _said(state: State, ended: str, lang: str) -> str:
    """What a screen reader says when it changes; the reply itself is not read out word by word."""
    words = Words("zh" if lang == "zh" else "en")
    now = {"running": "reply.writing", "stopping": "reply.stopping"}.get(state)
    return words(now or _ENDED.get(ended, "reply.done"))
