"""What commands say of errors, in the language of the terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from core.errors import ParlourError
from core.settings import terminal_language
from webui.words import Words

if TYPE_CHECKING:
    from collections.abc import Mapping

_SAYS_LITTLE: Final = frozenset({"settings", "unexpected", "mcp_settings"})
"""Sentences for readers of the page, who are told to look into the terminal."""
_OF_THE_PAGE: Final = re.compile("你的消息|点[击“它]|顶部|页面")
"""What a remedy names that no terminal has: buttons, the line at the top, a message that is kept."""


def words_for(lang: str | None) -> Words:
    """The words of the language that was asked for, else of the terminal's."""
    return Words("zh" if (lang or terminal_language()) == "zh" else "en")


def sentence(error: ParlourError, words: Words) -> str:
    """What is wrong, on one line; the whole of what is known, which the page does not show."""
    said = _sentence(error, words)
    return " ".join("".join(sign if sign.isprintable() else " " for sign in said).split())


def kept_sentence(error: Mapping[str, Any], words: Words) -> str:
    """The same of an error as a file keeps it: `key`, `message` and `details`."""
    message = str(error.get("message") or "")
    if words.lang == "en":
        return message
    details: dict[str, Any] = error.get("details") or {}
    return sentence(ParlourError(message, key=str(error.get("key") or ""), **details), words)


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
    told = {"key": key, "details": details}
    if said := details.get("message"):  # a service's own words say more than what to press on the page
        return words("check.service", what=words.error_parts(told)[0], said=said.rstrip("."))
    happened, remedy = words.error_parts(told)
    return words.line(happened, "" if _OF_THE_PAGE.search(remedy) else remedy)


def _chinese(value: object) -> str:
    return str(value).replace(" or ", " 或 ").replace(", ", "、") if isinstance(value, str) else str(value)
