"""The list of conversations with their state, folders and pins, part by part, and the buttons below it."""

from __future__ import annotations

import json
import time
from datetime import datetime
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from webui.render.markup import escaped
from webui.words import Words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from core.storage.base import ConversationRecord, Folder, History, ListedRow, Section
    from core.storage.conversation_list import Place
    from core.toolbox.server_form import Trouble

_DAY = 24 * 3600.0
_TROUBLES = {"failed": "p-bad", "waits": "p-ask"}
_RINGS = {"asks": "p-ask", "unread": "p-ok", "running": "p-run"}
"""The marks of a row, the most urgent first: a folded folder shows one of its conversations'."""


class _List(NamedTuple):
    """What every row is made with."""

    current: str
    states: Mapping[str, str]
    words: Words
    at: float


def states_of(running_ids: Collection[str], unread: Collection[str], asking: Collection[str]) -> dict[str, str]:
    """What happens in conversations, by their ids.

    Args:
        running_ids: Those in which a reply is being written.
        unread: Those with an unseen reply.
        asking: Those of `running_ids` in which a tool waits for approval.
    """
    return dict.fromkeys(unread, "unread") | {one: "asks" if one in asking else "running" for one in running_ids}


def history_html(  # noqa: PLR0913 - each is a part of the list
    history: History,
    current: str,
    states: Mapping[str, str],
    words: Words,
    *,
    now: float | None = None,
    trouble: Trouble = "",
    warned: str = "",
    version: str = "",
    signs_in: bool = False,
) -> str:
    """Markup for `#history`.

    Args:
        history: The beginning of the list; what follows it is fetched by the page when it is scrolled to.
        current: The open conversation; empty for a new one.
        states: What happens in conversations, as of `states_of`.
        now: Unix seconds; the clock's if left out.
        trouble: Whether an MCP server failed, or waits for the reader.
        warned: A warning above the list.
        version: Changes whenever anything of the list may have changed: what follows is then fetched again.
        signs_in: Whether the reader is a guest where people have accounts.
    """
    given = _List(current, states, words, time.time() if now is None else now)
    rows = _button("archived", "p-back", words("history.back")) if history.archived else ""
    rows += _rows(history, given)
    archive = "" if history.archived or not history.has_archive else _archive(words)
    told = f'<p class="p-behind" role="note">{escaped(warned)}</p>' if warned else ""
    none = f'<p class="p-none">{escaped(words("history.none"))}</p>'
    return (
        f'<nav aria-label="{escaped(words("history.label"))}"{_about(history, given, version)}>'
        f"{told}{rows + archive or none}</nav>"
        f'<div class="p-side-foot"><button class="p-shelf" type="button" data-do="libraries" aria-haspopup="dialog">'
        f"<span>{escaped(words('libraries.open'))}</span></button>"
        f'<button class="p-shelf p-open-tools" type="button" data-do="tools" aria-haspopup="dialog">'
        f"<span>{escaped(words('tools.open'))}</span>{_mark(trouble, words)}</button>"
        f'<a class="p-shelf p-open-settings" href="./settings" data-do="settings">'
        f"<span>{escaped(words('history.settings'))}</span></a>{_sign_in(words) if signs_in else ''}</div>"
    )


def _sign_in(words: Words) -> str:
    return f'<a class="p-shelf p-sign-in" href="./sign-in"><span>{escaped(words("account.sign_in"))}</span></a>'


def rows_html(
    history: History,
    after: Place,
    current: str,
    states: Mapping[str, str],
    words: Words,
    *,
    now: float | None = None,
) -> str:
    """Markup of a further part of the list; its parameters as of `history_html`.

    Args:
        after: The place of the row before it: under the same heading, none is repeated.
    """
    given = _List(current, states, words, time.time() if now is None else now)
    return _rows(history, given, _heading(after.name, -after.age, given))


def _about(history: History, given: _List, version: str) -> str:
    """What the page's script is told of the list as a whole."""
    names = json.dumps([[one.id, one.name] for one in history.folders], ensure_ascii=False)
    worst = next((state for state in _RINGS if state in given.states.values()), "")
    told = {
        "folders": names if history.folders else "",
        "archived": "on" if history.archived else "",
        "state": _RINGS.get(worst, ""),
        "said": given.words(f"history.{worst}") if worst else "",
        "end": history.end,
        "version": version if history.end else "",
    }
    return "".join(f' data-{name}="{escaped(value)}"' for name, value in told.items() if value)


def _rows(history: History, given: _List, heading: str = "") -> str:
    """The rows, under their headings; `heading` is the one that they begin under."""
    made: list[str] = []
    for stands, rows in groupby(history.rows, lambda row: _heading(row.section, _time(row), given)):
        if stands != heading:
            made.append(f"<h2>{escaped(stands)}</h2>")
        those = list(rows)
        if those[0].section == "filed":
            made.append(f'<ul role="list" class="p-folders">{_folders(those, history, given)}</ul>')
        else:
            made.append(f'<ul role="list">{_conversations(those, given)}</ul>')
    return "".join(made)


def _time(row: ListedRow) -> float:
    return row.conversation.updated_at if row.conversation is not None else 0.0


def _heading(section: Section, then: float, given: _List) -> str:
    if section == "loose":
        return _age(then, given.at, given.words)
    return given.words("history.folders" if section == "filed" else f"history.{section}")


def _conversations(rows: Iterable[ListedRow], given: _List) -> str:
    return "".join(_row(row.conversation, given) for row in rows if row.conversation is not None)


def _folders(rows: Sequence[ListedRow], history: History, given: _List) -> str:
    made: list[str] = []
    for folder_id, those in groupby(rows, lambda row: row.folder.id if row.folder is not None else ""):
        first, *inside = those
        if first.folder is None:
            continue
        if first.conversation is not None:  # its own row stands in the part before
            head, inside = "", [first, *inside]
        else:
            head = _folder(first.folder, history, given)
        is_open = first.folder.settings.get("open") is True
        is_empty = not history.sizes.get(folder_id)
        empty = f'<li class="p-none">{escaped(given.words("folder.empty"))}</li>' if is_empty else ""
        children = f'<ul role="list">{empty}{_conversations(inside, given)}</ul>' if is_open else ""
        made.append(f'<li class="p-folder" data-in="{escaped(folder_id)}">{head}{children}</li>')
    return "".join(made)


def _folder(folder: Folder, history: History, given: _List) -> str:
    """A folder's own row; a folded one shows the most urgent mark of what is in it."""
    words, is_open = given.words, folder.settings.get("open") is True
    name, address = escaped(folder.name), escaped(folder.id)
    menu = escaped(words("history.menu", title=folder.name))
    states = [state for one, state in given.states.items() if history.homes.get(one) == folder.id]
    state = "" if is_open else next((state for state in _RINGS if state in states), "")
    return (
        f'<div><a role="button" href="#do-fold-{address}" class="p-do" data-folder="{address}" '
        f'aria-expanded="{str(is_open).lower()}" title="{name}" dir="auto">{name}</a>'
        f'{_ring(state, words)}<span class="p-many">{history.sizes.get(folder.id, 0)}</span>'
        f'<button type="button" class="p-menu" data-do="menu" data-of="{address}" data-title="{name}" '
        f'aria-label="{menu}" aria-haspopup="menu"></button></div>'
    )


def _archive(words: Words) -> str:
    return _button("archived", "p-archive", words("history.archived"), on="1")


def _age(then: float, at: float, words: Words) -> str:
    """The group of a time. Days are counted in twenty-four hours: the reader's midnight is not known here."""
    for days, key in ((1, "today"), (2, "yesterday"), (7, "week")):
        if at - then < days * _DAY:
            return words(f"history.{key}")
    month = datetime.fromtimestamp(then).astimezone()
    return words("history.month", month=words(f"history.month_{month.month}"), year=month.year)


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
    folder = one.folder_id or ""
    return _made_row(one.id, one.title, state, given.words.lang, marks, folder, is_here=one.id == given.current)


@lru_cache(maxsize=4096)  # many tabs show the same rows, frame after frame
def _made_row(  # noqa: PLR0913 - each is something that a row shows
    conversation_id: str, said: str, state: str, lang: str, marks: str, folder: str, *, is_here: bool
) -> str:
    words = Words(lang)
    title, address = escaped(said or words("top.untitled")), escaped(conversation_id)
    here, form = (' aria-current="page"', ' class="p-here"') if is_here else ("", "")
    menu = escaped(words("history.menu", title=said or words("top.untitled")))
    filed = f' data-in="{escaped(folder)}"' if folder else ""
    return (
        f'<li{form}><a href="./?c={address}" data-open="{address}"{here} '
        f'title="{title}" dir="auto">{title}</a>{_ring(state, words)}'
        f'<button type="button" class="p-menu" data-do="menu" data-id="{address}" data-title="{title}" '
        f'data-marks="{marks}"{filed} aria-label="{menu}" aria-haspopup="menu"></button></li>'
    )
