"""The list of conversations with their state, and the buttons below it."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING

from webui.render.markup import escaped
from webui.words import Words

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from core.storage.base import ConversationRecord
    from core.toolbox.server_form import Trouble

_DAY = 24 * 3600.0
_TROUBLES = {"failed": "p-bad", "waits": "p-ask"}
_RINGS = {"running": "p-run", "asks": "p-ask", "unread": "p-ok"}


def history_html(  # noqa: PLR0913 - each is a part of the list
    conversations: Sequence[ConversationRecord],
    current: str,
    running_ids: Collection[str],
    unread: Collection[str],
    words: Words,
    *,
    now: float | None = None,
    asking: Collection[str] = (),
    trouble: Trouble = "",
    more: bool = False,
    warned: str = "",
) -> str:
    """Markup for `#history`.

    Args:
        conversations: The newest first.
        current: The open one; empty for a new one.
        running_ids: Those in which a reply is being written.
        unread: Those with an unseen reply.
        words: The reader's.
        now: Unix seconds; the clock's if left out.
        asking: Those of `running_ids` in which a tool waits for approval.
        trouble: Whether an MCP server failed, or waits for the reader.
        more: Whether there are older ones.
        warned: A warning above the list.
    """
    at = time.time() if now is None else now
    groups = {
        "history.today": [one for one in conversations if at - one.updated_at < _DAY],
        "history.earlier": [one for one in conversations if at - one.updated_at >= _DAY],
    }
    rows = "".join(
        f'<h2>{escaped(words(key))}</h2><ul role="list">'
        + "".join(_row(one, current, _state(one.id, running_ids, unread, asking), words) for one in group)
        + "</ul>"
        for key, group in groups.items()
        if group
    )
    if more:
        rows += f'<a class="p-more" role="button" href="#do-older">{escaped(words("history.older"))}</a>'
    told = f'<p class="p-behind" role="note">{escaped(warned)}</p>' if warned else ""
    none = f'<p class="p-none">{escaped(words("history.none"))}</p>'
    return (
        f'<nav aria-label="{escaped(words("history.label"))}">{told}{rows or none}</nav>'
        f'<div class="p-side-foot"><button class="p-shelf" type="button" data-do="libraries" aria-haspopup="dialog">'
        f"<span>{escaped(words('libraries.open'))}</span></button>"
        f'<button class="p-shelf p-open-tools" type="button" data-do="tools" aria-haspopup="dialog">'
        f"<span>{escaped(words('tools.open'))}</span>{_mark(trouble, words)}</button>"
        f'<button class="p-shelf p-open-keys" type="button" data-do="keys" aria-haspopup="dialog">'
        f"<span>{escaped(words('history.keys'))}</span><kbd>?</kbd></button>"
        f'<button class="p-theme" type="button" data-do="theme"><span></span></button></div>'
    )


def _mark(trouble: Trouble, words: Words) -> str:
    if not trouble:
        return ""
    said = escaped(words(f"tools.server_{trouble}"))
    return f'<span class="p-st {_TROUBLES[trouble]}" role="img" aria-label="{said}" title="{said}"></span>'


def _state(one: str, running_ids: Collection[str], unread: Collection[str], asking: Collection[str]) -> str:
    if one in running_ids:
        return "asks" if one in asking else "running"
    return "unread" if one in unread else ""


def _row(one: ConversationRecord, current: str, state: str, words: Words) -> str:
    return _made_row(one.id, one.title, state, words.lang, is_here=one.id == current)


@lru_cache(maxsize=4096)  # many tabs show the same rows, frame after frame
def _made_row(conversation_id: str, said: str, state: str, lang: str, *, is_here: bool) -> str:
    words = Words(lang)
    title, address = escaped(said or words("top.untitled")), escaped(conversation_id)
    here, form = (' aria-current="page"', ' class="p-here"') if is_here else ("", "")
    ring = (
        f'<span class="p-st {_RINGS[state]}" role="img" aria-label="{escaped(words(f"history.{state}"))}"></span>'
        if state
        else ""
    )
    menu = escaped(words("history.menu", title=said or words("top.untitled")))
    return (
        f'<li{form}><a href="./?c={address}" data-open="{address}"{here} '
        f'title="{title}" dir="auto">{title}</a>{ring}'
        f'<button type="button" class="p-menu" data-do="menu" data-id="{address}" data-title="{title}" '
        f'aria-label="{menu}" aria-haspopup="menu"></button></li>'
    )
