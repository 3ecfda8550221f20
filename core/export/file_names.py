"""What to call a file after a title, so that every system takes it."""

from __future__ import annotations

import re
import unicodedata
from typing import Final
from urllib.parse import quote

_LONGEST: Final = 80  # characters, without the ending
_MOST_BYTES: Final = 180  # file systems take 255, and programs that download add to it
_NOT_ALLOWED: Final = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]+')
_JOINERS: Final = "\u200c\u200d"  # which scripts and emoji need
_RESERVED: Final = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³]) *(?:\..*)?", re.IGNORECASE)


def file_name(title: str, ending: str) -> str:
    """The name of a file, such as `My trip.md`; `conversation` where nothing of the title can stay."""
    text = unicodedata.normalize("NFC", title)
    text = _NOT_ALLOWED.sub(" ", "".join(sign for sign in text if _may_stay(sign)))
    text = _shortened(" ".join(text.split()))
    if not text.strip("._ " + _JOINERS):
        text = "conversation"
    if _RESERVED.fullmatch(text):
        text = f"_{text}"
    return f"{text}.{ending}"


def attachment(name: str) -> str:
    """The header `Content-Disposition` that saves a file under this name (RFC 6266 and 5987)."""
    plain = re.sub(r"[^A-Za-z0-9 ._()-]+", "_", name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def _may_stay(sign: str) -> bool:
    """Marks that turn text round or hide in it, private signs and halves of pairs may not."""
    return sign in _JOINERS or sign in "\t\n\r" or unicodedata.category(sign) not in {"Cc", "Cf", "Cs", "Co", "Cn"}


def _shortened(text: str) -> str:
    text = text[:_LONGEST]
    while len(text.encode()) > _MOST_BYTES:
        text = text[:-1]
    return text.strip(" .")
