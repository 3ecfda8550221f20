"""The data of the dialog of model settings: services to choose, those that are set up, failures. Never a key."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from core.errors import ModelServiceError
from core.models.menu import kind_of, menu, next_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.errors import ParlourError
    from core.models.menu import MenuService
    from core.models.model_name import Abilities, ModelName
    from core.storage.model_services import ModelService
    from webui.words import Words

_LONGEST_SAID = 240
_SAID = frozenset({"model_refused", "model_misbehaved", "model_service"})
"""Errors that are best explained in the service's own words, if any."""


def menu_data(
    kept: Sequence[ModelService],
    default: str,
    used: str,
    words: Words,
    *,
    local: bool,
    said: Mapping[ModelName, Abilities] = MappingProxyType({}),
) -> dict[str, Any]:
    """The dialog's contents.

    Args:
        kept: The services that the reader set up.
        default: The label of the installation's model.
        used: The chosen service; empty for the installation's model.
        local: Whether the reader is the owner of this machine.
        said: What models can do, by hand.
    """
    mine = {one.service: one for one in kept}
    first = words("models.default", model=words.model(default)) if default else words("models.default_unnamed")
    services: list[dict[str, Any]] = []
    for kind, one in menu(local=local).items():
        of_kind = [name for name in mine if kind_of(name) == kind] if one.typed else [kind]
        services += [_service(name, one, mine.get(name), words) for name in sorted(of_kind, key=_number)]
        more = next_of(kind, of_kind)
        if one.typed and more:
            services.append(_service(more, one, None, words, another=bool(of_kind)))
    for one in services:
        one["said"] = {name.model: able.as_json() for name, able in said.items() if name.service == one["name"]}
    return {"default": first, "used": used, "local": local, "services": services}


def _number(name: str) -> int:
    return int(name.partition("~")[2] or 1)


def _service(
    name: str, service: MenuService, kept: ModelService | None, words: Words, *, another: bool = False
) -> dict[str, Any]:
    label = service.label or words(f"models.{kind_of(name)}")
    if another and service.label:
        label = words("models.another", label=label)
    elif kept is not None and service.typed:
        label = words(
            "models.at", label=service.label or words("models.own_server"), host=urlsplit(kept.address).netloc
        )
    known = kept is not None and kept.key is not None
    return {
        "name": name,
        "label": label,
        "group": words("models.group_here" if service.here else "models.group_net"),
        "address": kept.address if kept is not None and service.typed else service.address,
        "usual": service.address,
        "typed": service.typed,
        "key": service.wants_key,
        "hint": words(f"models.hint.{name}") if f"models.hint.{name}" in words else "",
        "keys_at": service.keys_at,
        "own": words(f"models.own.{service.speaks}") if f"models.own.{service.speaks}" in words else "",
        "kind": service.model_type,
        "model": kept.model if kept is not None else next(iter(service.models), ""),
        "models": list(service.models),
        "kept": kept is not None,
        "has_key": known,
        "key_end": kept.key_end if kept is not None and known else "",
    }


def failure(error: ParlourError, words: Words) -> str:
    """An error in the words of the dialog, where no message of a conversation is concerned."""
    happened, remedy = words.error_parts(error)
    own = f"try.{error.words_key}"
    if error.words_key == "unknown_name":
        happened = words("try.no_weights", **error.details)
    if "place" in error.details:
        remedy = words("try.moved", **error.details)
    elif isinstance(error, ModelServiceError) and error.code and error.words_key in _SAID:
        remedy = words("try.said", said=error.message[:_LONGEST_SAID])
    elif own in words:
        remedy = words(own, **error.details)
    elif isinstance(error, ModelServiceError) and error.words_key != "model_silent":
        remedy = ""
    return words.line(happened, remedy)
