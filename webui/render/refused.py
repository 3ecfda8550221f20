"""Why files are not taken or cannot be read, in as few sentences as there are reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from core.errors import ParlourError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webui.words import Words

_OF_ONE: Final = frozenset({"name", "kind", "beside"})  # details that differ from file to file


def refusal_text(errors: Sequence[ParlourError | Mapping[str, Any]], words: Words) -> str:
    """Lines about files that are not taken, one for each reason: what several share is said once, with all their names.

    Args:
        errors: One for each file, with its name among the details.
    """
    alike: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for error in errors:
        key, details = _told(error)
        others = (f"{name}={value}" for name, value in details.items() if name not in _OF_ONE)
        alike.setdefault((key, *others), []).append(details)
    happened: dict[str, list[str]] = {}  # by the remedy, which is said once
    for (key, *_), group in alike.items():
        names = words("attach.comma").join(str(details.get("name", "…")) for details in group)
        sentence, remedy = words.error_parts({"key": key, "details": {**group[0], "name": names}})
        if len(group) > 1 and f"files.{key}" in words:
            sentence = words(f"files.{key}", **{**group[0], "name": names})
            remedy = words(f"files.{key}.do") if f"files.{key}.do" in words else remedy
        told = sentence if names in sentence else words("attach.named", names=names, said=sentence)
        happened.setdefault(remedy, []).append(words.line(told))
    return "\n".join(line for remedy, told in happened.items() for line in (*told[:-1], words.line(told[-1], remedy)))


def _told(error: ParlourError | Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    if isinstance(error, ParlourError):
        return error.words_key, error.details
    return str(error.get("key", "")), error.get("details") or {}
