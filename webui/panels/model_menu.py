"""The data of the menu under the model's name: models side by side, what each can do and costs. Never a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from core.llm.local_files import BUILT_IN
from core.models.menu import MENU, kind_of
from core.models.model_name import INSTALLED, ModelName
from webui.panels.weight_files import size_said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.models.choices import Choosable, ServiceChoices
    from core.storage.model_services import ModelService
    from webui.words import Words

_MB = 1_000_000
SHAPES = {
    "ready": "ok",
    "untried": "off",
    "loading": "open",
    "here": "ok",
    "absent": "ask",
    "no_answer": "bad",
    "no_key": "ask",
}
"""What stands before the state of a model, besides its word."""
_LATELY = 5  # models that were used, beside the favourites
_CENTS = 0.1  # dollars: what costs less needs more figures


def choices_data(
    services: Sequence[ServiceChoices],
    favourites: Sequence[ModelName],
    used: Sequence[ModelName],
    default: str,
    words: Words,
) -> dict[str, Any]:
    """The menu's contents.

    Args:
        services: With their models.
        favourites: In the order of their keys.
        used: Those that wrote replies, the newest first; the installation's and those that are gone are left out.
        default: The label of the installation's model.
    """
    twins = {ModelName(BUILT_IN, model.twin) for one in services for model in one.models if model.twin}
    rows: dict[ModelName, dict[str, Any]] = {}
    groups: list[dict[str, Any]] = []
    for one in services:
        rows |= {model.name: _row(model, one, default, favourites, words) for model in one.models}
        shown = [rows[model.name] for model in one.models if model.name not in twins]
        groups += [{"label": service_label(one, words), "models": shown}] if shown else []
    starred = [rows[one] for one in favourites if one in rows]
    first = {*favourites, *twins, INSTALLED}  # the installation's model stands first among the groups
    others = [rows[one] for one in used if one not in first and one in rows]
    costs = any(not model.free and model.state != "no_key" for one in services for model in one.models)
    return {"favourites": starred, "lately": others[:_LATELY], "groups": groups, "costs": costs}


def service_label(one: ServiceChoices, words: Words) -> str:
    """What a service is called, with its place where there may be several of its kind."""
    if not one.service:
        return words("models.default_unnamed")
    if one.lender:
        return words("lending.models_of", lender=one.lender)
    kind = kind_of(one.service)
    service = MENU[kind]
    if service.typed and one.address:
        name = service.label or words("models.own_server")
        return words("models.at", label=name, host=urlsplit(one.address).netloc)
    return service.label or words(f"models.{kind}")


def kept_label(kept: ModelService, words: Words) -> str:
    """A service that somebody set up, with its model, for whoever shares it or uses it."""
    service = MENU.get(kind_of(kept.service))
    label = service.label if service is not None else ""
    return " · ".join(part for part in (label or words("models.own_server"), kept.model) if part)


def _row(
    model: Choosable, of: ServiceChoices, default: str, favourites: Sequence[ModelName], words: Words
) -> dict[str, Any]:
    name = model.name
    return {
        "service": name.service,
        "model": name.model,
        "label": words.model(default) if not name.service else _model_label(name),
        "can": _can(model, service_label(of, words), words),
        "room": model.listed.context or 0,
        "price": _price(model, words),
        "state": model.state,
        "shape": SHAPES[model.state],
        "said": state_said(model, words),
        "star": favourites.index(name) + 1 if name in favourites else 0,
        "twin": {"service": BUILT_IN, "model": model.twin} if model.twin else None,
    }


def _model_label(name: ModelName) -> str:
    if name.service == BUILT_IN:
        from core.llm.weights_catalog import on_offer

        if (weights := on_offer().get(name.model)) is not None:
            return weights.label
    return name.model


def _can(model: Choosable, place: str, words: Words) -> str:
    """Where it is, and what it can do, in words."""
    able = [words(f"models.{what}") for what in ("sees", "hears", "calls") if getattr(model, what)]
    able += [_size(model.listed.context)] if model.listed.context else []
    return f"{place} · {words('lang.comma').join(able)}" if able else place


def _size(tokens: int) -> str:
    """How many tokens fit, as makers write it: 32k, 128k, 1M."""
    unit = 1000 if tokens % 1000 == 0 else 1024
    return f"{round(tokens / unit)}k" if tokens < unit * 1000 else f"{round(tokens / unit**2, 1):g}M"


def _price(model: Choosable, words: Words) -> str:
    asked, answered = model.listed.asked, model.listed.answered
    if model.free or (asked == 0 and answered == 0):
        return words("models.free")
    if asked is None or answered is None:
        return words("models.no_price")
    return f"{_dollars(asked)} / {_dollars(answered)}"


def _dollars(price: float) -> str:
    return f"${price:.2f}" if price >= _CENTS else f"${price:.3g}"


def state_said(model: Choosable, words: Words) -> str:
    """Whether a model would answer, in a word; of one that is being fetched, how much is there, or is yet to come."""
    if model.state == "loading" and model.total:
        return words("models.part", done=model.done // _MB, total=model.total // _MB)
    if model.state == "absent" and model.total:
        size = size_said(max(model.total - model.done, 1))
        return words("models.to_download_about" if model.estimated else "models.to_download", size=size)
    return words(f"models.state_{model.state}")
