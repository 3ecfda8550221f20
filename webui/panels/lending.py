"""The page on what somebody shares with groups, and what others share with them. It needs no script."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from core.storage.lending import KINDS, WRITABLE
from webui.panels.people import house_page, told_html

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.storage.lending import Kind, Loan
    from webui.words import Words


@dataclass(frozen=True, slots=True)
class Shareable:
    """Something of one's own that can be shared.

    Args:
        thing: Its id; of a service its name.
        loans: With whom it is shared.
    """

    kind: Kind
    thing: str
    name: str
    loans: Sequence[Loan] = ()


@dataclass(frozen=True, slots=True)
class Borrowed:
    """Something of somebody else that one may use."""

    kind: Kind
    name: str
    lender: str
    writes: bool


@dataclass(frozen=True, slots=True)
class ShownLending:
    """What the page shows.

    Args:
        groups: Those that may be shared with.
        problem: What could not be done.
    """

    groups: Sequence[Loan] = ()
    mine: Sequence[Shareable] = ()
    others: Sequence[Borrowed] = ()
    problem: str = ""


def lending_page(shown: ShownLending, words: Words) -> str:
    """What is one's own, with whom it is shared; and what others share."""
    parts = [f"<p>{escape(words('lending.say'))}</p>{told_html(shown.problem, '')}"]
    if not shown.groups:
        parts.append(f"<p>{escape(words('lending.no_groups'))}</p>")
    for kind in KINDS:
        rows = "".join(_row(one, shown.groups, words) for one in shown.mine if one.kind == kind)
        if rows and shown.groups:
            parts.append(f"<h2>{escape(words(f'lending.{kind}'))}</h2><table><tbody>{rows}</tbody></table>")
    others = "".join(_borrowed(one, words) for one in shown.others)
    none = f"<p>{escape(words('lending.none'))}</p>"
    table = f"<table><tbody>{others}</tbody></table>" if others else none
    parts.append(f"<h2>{escape(words('lending.others'))}</h2>{table}")
    return house_page(words("lending.title"), "".join(parts), words)


def _row(one: Shareable, groups: Sequence[Loan], words: Words) -> str:
    to_read = "lending.to_read" if one.kind in WRITABLE else "lending.to_use"
    said = words("lang.comma").join(
        words("lending.to_write" if loan.writes else to_read, group=loan.group) for loan in one.loans
    )
    forms = "".join(_form(one, group, words) for group in groups)
    opened = " open" if one.loans else ""
    return (
        f'<tr id="{one.kind}-{escape(one.thing)}"><td><b dir="auto">{escape(one.name)}</b>'
        f"<small>{escape(said or words('lending.with_nobody'))}</small>"
        f"<details{opened}><summary>{escape(words('lending.share', name=one.name))}</summary>"
        f'<div class="groups">{forms}</div></details></td></tr>'
    )


def _form(one: Shareable, group: Loan, words: Words) -> str:
    loan = next((known for known in one.loans if known.group_id == group.group_id), None)
    chosen = "none" if loan is None else "write" if loan.writes else "read"
    ways = ("none", "read", "write") if one.kind in WRITABLE else ("none", "read")
    labels = {way: words(f"lending.way_{'use' if way == 'read' and len(ways) == 2 else way}") for way in ways}
    options = "".join(
        f'<option value="{way}"{" selected" if way == chosen else ""}>{escape(label)}</option>'
        for way, label in labels.items()
    )
    hidden = "".join(
        f'<input type="hidden" name="{name}" value="{escape(value)}">'
        for name, value in (("kind", one.kind), ("thing", one.thing), ("group", group.group_id))
    )
    label = escape(words("lending.share_with", name=one.name, group=group.group))
    return (
        f'<form method="post" action="./lending/set">{hidden}<label><span dir="auto">{escape(group.group)}</span>'
        f'<select name="how" aria-label="{label}">{options}</select></label>'
        f"<button>{escape(words('lending.set'))}</button></form>"
    )


def _borrowed(one: Borrowed, words: Words) -> str:
    of = "lending.of" if one.kind in WRITABLE else "lending.of_use"
    whose = words("lending.of_writes" if one.writes else of, lender=one.lender)
    kind = words(f"lending.one_{one.kind}")
    return f'<tr><td><span dir="auto">{escape(one.name)}</span><small>{escape(f"{kind} · {whose}")}</small></td></tr>'
