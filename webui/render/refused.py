"""Why files are not taken or cannot be read, in as few sentences as there are reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from core.errors import ParlourError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webui.words import Words

_OF_ONE: Final = frozenset({"name", "kind", "beside"})  # details that differ from file to file
_FIRST: Final = 5  # files that are named where there are too many to name each


def refusal_text(errors: Sequence[ParlourError | Mapping[str, Any]], words: Words, *, named: int | None = None) -> str:
    """Lines about files that are not taken, one for each reason: what several share is said once, with their names.

    Args:
        errors: One for each file, with its name among the details.
        named: How many files of one reason are all named; of more, the first are, and the others counted. No limit
            without it.
    """
    alike: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for error in errors:
        key, details = _told(error)
        others = (f"{name}={value}" for name, value in details.items() if name not in _OF_ONE)
        alike.setdefault((key, *others), []).append(details)
    happened: dict[str, list[str]] = {}  # by the remedy, which is said once
    for (key, *_), group in alike.items():
        names = _names([str(details.get("name", "…")) for details in group], named, words)
        sentence, remedy = words.error_parts({"key": key, "details": {**group[0], "name": names}})
        if len(group) > 1 and f"files.{key}" in words:
            sentence = words(f"files.{key}", **{**group[0], "name": names})
            remedy = words(f"files.{key}.do") if f"files.{key}.do" in words else remedy
        told = sentence if names in sentence else words("attach.named", names=names, said=sentence)
        happened.setdefault(remedy, []).append(words.line(told))
    return "\n".join(line for remedy, told in happened.items() for line in (*told[:-1], words.line(told[-1], remedy)))


def refusal_data(error: ParlourError) -> dict[str, Any]:
    """A refusal as the page keeps it, to have it told together with others: `{"key", "details"}`, all of it text."""
    return {"key": error.words_key, "details": {name: str(value) for name, value in error.details.items()}}


def _names(names: list[str], most: int | None, words: Words) -> str:
    if most is not None and len(names) > most:
        names = [*names[:_FIRST], words("attach.more", n=len(names) - _FIRST)]
    return words("attach.comma").join(names)


def _told(error: ParlourError | Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    if isinstance(error, ParlourError):
        return error.words_key, error.details
    return str(error.get("key", "")), error.get("details") or {}
