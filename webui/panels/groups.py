"""Groups on the page of the people: who is in which, what their members may use, and forms to change it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from core.people.people import LIMITED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.storage.groups import Group
    from core.storage.people import Person
    from webui.words import Words


def groups_html(groups: Sequence[Group], people: Sequence[Person], words: Words) -> str:
    """The groups, each with its people, and a form to make one."""
    rows = "".join(_row(one, people, words) for one in groups)
    heads = "".join(f"<th>{escape(words(key))}</th>" for key in ("groups.name", "groups.members"))
    table = (
        f'<table class="people"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'
        if rows
        else f"<p>{escape(words('groups.none'))}</p>"
    )
    name = escape(words("groups.new"))
    return (
        f"<p>{escape(words('groups.say'))}</p>{table}"
        '<form class="row" method="post" action="./people/group-make">'
        f'<input name="name" required autocomplete="off" placeholder="{name}" aria-label="{name}">'
        f"<button>{escape(words('groups.make'))}</button></form>"
    )


def limit_fields(limits: Mapping[str, float], words: Words) -> str:
    """Fields for limits; what is left empty is as usual."""
    usual = escape(words("people.limit_usual"))
    return "".join(
        f'<label>{escape(words(f"people.limit_{name}"))}<input name="{name}" inputmode="decimal" size="12" '
        f'value="{_typed(limits.get(name))}" placeholder="{usual}"></label>'
        for name in LIMITED
    )


def _typed(limit: float | None) -> str:
    return "" if limit is None else str(int(limit)) if limit == int(limit) else str(limit)


def _row(group: Group, people: Sequence[Person], words: Words) -> str:
    inside = [one for one in people if one.id in group.members]
    names = words("lang.comma").join(one.name for one in inside) or words("groups.nobody")
    return (
        f'<tr><td dir="auto">{escape(group.name)}</td><td dir="auto">{escape(names)}</td></tr>'
        f'<tr class="more"><td colspan="2"><details><summary>{escape(words("people.more_of", name=group.name))}'
        f"</summary><div>{_acts(group, people, inside, words)}</div></details></td></tr>"
    )


def _acts(group: Group, people: Sequence[Person], inside: Sequence[Person], words: Words) -> str:
    outside = [one for one in people if one.id not in group.members]
    name, sure = escape(words("groups.new")), escape(words("people.type_name", name=group.name))
    rename = _form(
        "rename",
        group,
        f'<input name="name" required autocomplete="off" value="{escape(group.name)}" aria-label="{name}">',
        words,
    )
    delete = _form(
        "delete",
        group,
        f'<input name="name" placeholder="{sure}" aria-label="{sure}" autocomplete="off" required>',
        words,
        kind="danger",
    )
    return (
        f"{_choice('add', group, outside, words)}{_choice('remove', group, inside, words)}{rename}"
        f"{_form('limits', group, limit_fields(group.limits, words), words)}{delete}"
    )


def _choice(act: str, group: Group, people: Sequence[Person], words: Words) -> str:
    """A form that names one of these people; nothing where there are none."""
    if not people:
        return ""
    options = "".join(f'<option value="{one.id}">{escape(one.name)}</option>' for one in people)
    label = escape(words("people.name"))
    return _form(act, group, f'<select name="person" aria-label="{label}">{options}</select>', words)


def _form(act: str, group: Group, fields: str, words: Words, *, kind: str = "") -> str:
    return (
        f'<form method="post" action="./people/group-{act}"><input type="hidden" name="group" value="{group.id}">'
        f'{fields}<button class="{kind}">{escape(words(f"groups.{act}"))}</button></form>'
    )
