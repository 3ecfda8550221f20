"""The data of the services in the settings: one row for each, with its place, its models and its state. Never a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.models.menu import MENU, OWN_SERVER, kind_of, menu, next_of
from webui.panels.model_menu import SHAPES, service_label, state_said

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from core.models.choices import Choosable, ServiceChoices
    from core.storage.model_services import ModelService
    from webui.words import Words

_BEST = ("ready", "loading", "here")  # of several models of this process, the state of one that is there tells most


def services_data(
    services: Iterable[ServiceChoices], kept: Sequence[ModelService], default: str, words: Words, *, local: bool
) -> dict[str, Any]:
    """The rows, and which service is offered first to whoever adds one.

    A service that wants a key and has none has a row only where it was set up.

    Args:
        services: All that could answer, with their models.
        kept: Those that the reader set up.
        default: The label of the installation's model.
        local: Whether the reader is the owner of this machine.
    """
    mine = {one.service: one for one in kept}
    used = next((one.service for one in kept if one.in_use), "")
    rows = [
        _row(one, mine.get(one.service), default, words, used=one.service == used)
        for one in services
        if not one.lender and (one.service in mine or any(model.state != "no_key" for model in one.models))
    ]
    shown = {row["service"] for row in rows}
    unset = (kind for kind, one in menu(local=local).items() if one.wants_key == "needed" and kind not in shown)
    return {"services": rows, "add": next(unset, next_of(OWN_SERVER, shown))}


def _row(
    service: ServiceChoices, kept: ModelService | None, default: str, words: Words, *, used: bool
) -> dict[str, Any]:
    model = next((one for state in _BEST for one in _inside(service) if one.state == state), service.models[0])
    key = words("models.key_ends", end=kept.key_end) if kept is not None and kept.key is not None else ""
    about = [key, _counted(service, words), words("models.answers_new") if used else ""]
    comma = words("lang.comma")
    return {
        "service": service.service,
        "label": service_label(service, words),
        "place": _place(service, default, words),
        "about": "".join(f"{comma}{one}" for one in about if one),
        "address": kept.address if kept is not None else "",
        "model": kept.model if kept is not None else service.models[0].name.model,
        "shape": SHAPES[model.state],
        "said": _said(service, model, words),
        "used": used,
        "kept": kept is not None,
    }


def _said(service: ServiceChoices, model: Choosable, words: Words) -> str:
    """The state of the model that the row stands for, or how many of its models are downloaded."""
    there = sum(one.state == "here" for one in service.models)
    if model.state != "here" or there == len(service.models):
        return state_said(model, words)
    return words("models.some_here", n=there)


def _inside(service: ServiceChoices) -> Sequence[Choosable]:
    kind = MENU.get(kind_of(service.service))
    return service.models if kind is not None and kind.inside else ()


def _place(service: ServiceChoices, default: str, words: Words) -> str:
    if not service.service:
        return words.model(default) if default else ""
    return service.address or words("models.inside")


def _counted(service: ServiceChoices, words: Words) -> str:
    """How many models it has; nothing where only one is known, or where each must be downloaded first."""
    if not service.service or _inside(service) or any(one.state == "no_key" for one in service.models):
        return ""
    count = len(service.models)
    return words("models.count_one" if count == 1 else "models.count", n=count)
