"""What the page says of dictation: where a recording goes and what that costs, before there is one; what went wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.models.choices import ServiceChoices
from core.workspace.dictation import BROWSER, HERE
from webui.panels.model_menu import service_label
from webui.render.markup import escaped
from webui.render.price import money

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.workspace.dictation import Way
    from webui.words import Words


def way_data(way: Way, words: Words, *, local: bool) -> dict[str, str]:
    """What the button says before it records.

    Args:
        way: How a recording becomes text.
        local: Whether the reader is the owner of the machine that Parlour runs on.
    """
    if way.kind == HERE:
        own = "mine" if local else "house"
        return {
            "as": way.name,
            "title": words(f"dictation.here_{own}"),
            "first": words(f"dictation.first_{own}", model=way.model),
        }
    label = service_label(ServiceChoices(way.service, way.address, ()), words)
    where = label if way.host in label else words("dictation.at", label=label, host=way.host)
    cost = money(way.minute, words, free=way.free)
    price = cost if way.free or way.minute is None else words("dictation.minute", cost=cost)
    return {
        "as": way.name,
        "title": words("dictation.service", where=where),
        "first": words("dictation.first_service", where=where, model=way.model, price=price),
    }


def choice_html(chosen: str, services: Sequence[tuple[str, str]], words: Words, *, here: bool, labelled: str) -> str:
    """The list from which the way of dictation is chosen.

    Args:
        chosen: As it is kept.
        services: Names of those that can be chosen, with their addresses.
        here: Whether recordings can become text on Parlour's machine.
        labelled: The id of the element.
    """
    shown = [("", words("dictation.open")), (BROWSER, words("dictation.by_browser"))]
    shown += [(name, service_label(ServiceChoices(name, address, ()), words)) for name, address in services]
    if here or chosen == HERE:
        shown.append((HERE, words("dictation.by_machine")))
    if chosen not in {value for value, _ in shown}:
        shown.append((chosen, chosen))
    options = "".join(
        f'<option value="{escaped(value)}"{" selected" if value == chosen else ""}>{escaped(said)}</option>'
        for value, said in shown
    )
    return f'<select id="{labelled}" data-set="dictation" data-anew>{options}</select>'
