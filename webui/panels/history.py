"""The list of conversations with their state, folders and pins, and the buttons below it."""

from __future__ import annotations

import time
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from webui.render.markup import escaped
from webui.words import Words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from core.storage.base import ConversationRecord, Folder, History
    from core.toolbox.server_form import Trouble

_DAY = 24 * 3600.0
_TROUBLES = {"failed": "p-bad", "waits": "p-ask"}
_RINGS = {"asks": "p-ask", "unread": "p-ok", "running": "p-run"}
"""The marks of a row, the most urgent first: a folded folder shows one of its conversations'."""


class _List(NamedTuple):
    """What every row is made with."""

    current: str
    states: dict[str, str]
    words: Words


def history_html(  # noqa: PLR0913 - each is a part of the list
    history: History,
    current: str,
    running_ids: Collection[str],
    unread: Collection[str],
    words: Words,
    *,
    now: float | None = None,
    asking: Collection[str] = (),
    trouble: Trouble = "",
    warned: str = "",
) -> str:
    """Markup for `#history`.

    Args:
        history: The conversations, the one used last first, and the folders.
        current: The open one; empty for a new one.
        running_ids: Those in which a reply is being written.
        unread: Those with an unseen reply.
        now: Unix seconds; the clock's if left out.
        asking: Those of `running_ids` in which a tool waits for approval.
        trouble: Whether an MCP server failed, or waits for the reader.
        warned: A warning above the list.
    """
    states = dict.fromkeys(unread, "unread") | {one: "asks" if one in asking else "running" for one in running_ids}
    given = _List(current, states, words)
    shown = history.conversations
    at = time.time() if now is None else now
    rows = _archive(shown, given) if history.archived else _pinned(shown, given) + _folders(history, given)
    loose = [one for one in shown if one.pinned_at is None and one.folder_id is None]
    rows += "" if history.archived else _by_age(loose, at, given)
    if history.has_more:
        rows += f'<a class="p-more p-do" role="button" href="#do-older">{escaped(words("history.older"))}</a>'
    if history.has_archive and not history.archived:
        rows += _button("archived", "p-archive", words("history.archived"), on="1")
    told = f'<p class="p-behind" role="note">{escaped(warned)}</p>' if warned else ""
    none = f'<p class="p-none">{escaped(words("history.none"))}</p>'
    return (
        f'<nav aria-label="{escaped(words("history.label"))}">{told}{rows or none}</nav>'
        f'<div class="p-side-foot"><button class="p-shelf" type="button" data-do="libraries" aria-haspopup="dialog">'
        f"<span>{escaped(words('libraries.open'))}</span></button>"
        f'<button class="p-shelf p-open-tools" type="button" data-do="tools" aria-haspopup="dialog">'
        f"<span>{escaped(words('tools.open'))}</span>{_mark(trouble, words)}</button>"
        f'<a class="p-shelf p-open-settings" href="./settings" data-do="settings">'
        f"<span>{escaped(words('history.settings'))}</span></a></div>"
    )


def _pinned(shown: Sequence[ConversationRecord], given: _List) -> str:
    pinned = sorted((one for one in shown if one.pinned_at is not None), key=lambda one: -(one.pinned_at or 0.0))
    return _group(given.words("history.pinned"), pinned, given)


def _folders(history: History, given: _List) -> str:
    if not history.folders:
        return ""
    inside: dict[str, list[ConversationRecord]] = {}
    for one in history.conversations:
        if one.folder_id is not None and one.pinned_at is None:
            inside.setdefault(one.folder_id, []).append(one)
    rows = "".join(_folder(folder, inside.get(folder.id, []), given) for folder in history.folders)
    return f'<h2>{escaped(given.words("history.folders"))}</h2><ul role="list" class="p-folders">{rows}</ul>'


def _folder(folder: Folder, inside: Sequence[ConversationRecord], given: _List) -> str:
    words, is_open = given.words, folder.settings.get("open") is True
    name, address = escaped(folder.name), escaped(folder.id)
    menu, empty = escaped(words("history.menu", title=folder.name)), escaped(words("folder.empty"))
    states = [given.states.get(one.id, "") for one in inside]
    state = "" if is_open else next((state for state in _RINGS if state in states), "")
    children = "".join(_row(one, given) for one in inside) or f'<li class="p-none">{empty}</li>'
    expanded, closed = ("true", "") if is_open else ("false", " data-closed hidden")
    return (
        f'<li class="p-folder"><div><a role="button" href="#do-fold-{address}" class="p-do" data-folder="{address}" '
        f'aria-expanded="{expanded}" title="{name}" dir="auto">{name}</a>'
        f'{_ring(state, words)}<span class="p-many">{len(inside)}</span>'
        f'<button type="button" class="p-menu" data-do="menu" data-of="{address}" data-title="{name}" '
        f'aria-label="{menu}" aria-haspopup="menu"></button></div>'
        f'<ul role="list"{closed}>{children}</ul></li>'
    )


def _archive(shown: Sequence[ConversationRecord], given: _List) -> str:
    back = _button("archived", "p-back", given.words("history.back"))
    return back + (_group(given.words("history.archived"), shown, given))


def _by_age(shown: Iterable[ConversationRecord], at: float, given: _List) -> str:
    """Under Today, Yesterday, Last week, and each month before."""
    groups: dict[str, list[ConversationRecord]] = {}
    for one in shown:
        groups.setdefault(_age(one.updated_at, at, given.words), []).append(one)
    return "".join(_group(name, group, given) for name, group in groups.items())


def _age(then: float, at: float, words: Words) -> str:
    """The group of a time. Days are counted in twenty-four hours: the reader's midnight is not known here."""
    for days, key in ((1, "today"), (2, "yesterday"), (7, "week")):
        if at - then < days * _DAY:
            return words(f"history.{key}")
    month = datetime.fromtimestamp(then).astimezone()
    return words("history.month", month=words(f"history.month_{month.month}"), year=month.year)


def _group(name: str, shown: Sequence[ConversationRecord], given: _List) -> str:
    if not shown:
        return ""
    return f'<h2>{escaped(name)}</h2><ul role="list">{"".join(_row(one, given) for one in shown)}</ul>'


def _button(act: str, kind: str, label: str, *, on: str = "") -> str:
    return f'<button type="button" class="{kind}" data-do="{act}" data-on="{on}">{escaped(label)}</button>'


def _mark(trouble: Trouble, words: Words) -> str:
    if not trouble:
        return ""
    said = escaped(words(f"tools.server_{trouble}"))
    return f'<span class="p-st {_TROUBLES[trouble]}" role="img" aria-label="{said}" title="{said}"></span>'


def _ring(state: str, words: Words) -> str:
    if not state:
        return ""
    return f'<span class="p-st {_RINGS[state]}" role="img" aria-label="{escaped(words(f"history.{state}"))}"></span>'


def _row(one: ConversationRecord, given: _List) -> str:
    kept = {"pinned": one.pinned_at, "archived": one.archived_at, "filed": one.folder_id}
    marks = " ".join(name for name, there in kept.items() if there)
    state = given.states.get(one.id, "")
    return _made_row(one.id, one.title, state, given.words.lang, marks, is_here=one.id == given.current)


@lru_cache(maxsize=4096)  # many tabs show the same rows, frame after frame
def _made_row(conversation_id: str, said: str, state: str, lang: str, marks: str, *, is_here: bool) -> str:
    words = Words(lang)
    title, address = escaped(said or words("top.untitled")), escaped(conversation_id)
    here, form = (' aria-current="page"', ' class="p-here"') if is_here else ("", "")
    menu = escaped(words("history.menu", title=said or words("top.untitled")))
    return (
        f'<li{form}><a href="./?c={address}" data-open="{address}"{here} '
        f'title="{title}" dir="auto">{title}</a>{_ring(state, words)}'
        f'<button type="button" class="p-menu" data-do="menu" data-id="{address}" data-title="{title}" '
        f'data-marks="{marks}" aria-label="{menu}" aria-haspopup="menu"></button></li>'
    )
