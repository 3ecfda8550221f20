"""What commands say of errors, in the language of the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from core.settings import terminal_language
from webui.words import Words

if TYPE_CHECKING:
    from core.errors import ParlourError

_SAYS_LITTLE: Final = frozenset({"settings", "unexpected", "mcp_settings"})
"""Sentences for readers of the page, who are told to look into the terminal."""


def words_for(lang: str | None) -> Words:
    """The words of the language that was asked for, else of the terminal's."""
    return Words("zh" if (lang or terminal_language()) == "zh" else "en")


def sentence(error: ParlourError, words: Words) -> str:
    """What is wrong, on one line; the whole of what is known, which the page does not show."""
    said = _sentence(error, words)
    return " ".join("".join(sign if sign.isprintable() else " " for sign in said).split())


def _sentence(error: ParlourError, words: Words) -> str:
    if words.lang == "en":
        return str(error)
    key = error.words_key
    details = {name: _chinese(value) for name, value in error.details.items()}
    if key == "unknown_name":
        kind = f"check.kind.{str(error.details['kind']).replace(' ', '_')}"
        details["kind"] = words(kind) if kind in words else str(error.details["kind"])
        near: list[str] = error.details.get("near") or []
        ending = words("check.meant", near=" 或 ".join(near)) if near else ""
        return words("check.unknown_name", **details) + ending
    if key in _SAYS_LITTLE or f"error.{key}" not in words:
        return words("check.other", what=str(error))
    return words.error({"key": key, "details": details})


def _chinese(value: object) -> str:
    return str(value).replace(" or ", " 或 ").replace(", ", "、") if isinstance(value, str) else str(value)
