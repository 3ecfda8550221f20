"""What to call a file that was fetched."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Mapping

_EXTENDED = re.compile(r"filename\*\s*=\s*(?:utf-8|iso-8859-1)'[^']*'([^;\s]+)", re.IGNORECASE)
_QUOTED = re.compile(r"filename\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|([^;\s]+))", re.IGNORECASE)
_INDEX = re.compile(r"(?:index|default|home)\.\w{2,5}\Z", re.IGNORECASE)
_LONGEST = 200
# The readers of documents go by the ending where the bytes alone leave doubt.
_ENDINGS: Mapping[str, tuple[str, ...]] = {
    "text/html": (".html", ".htm", ".xhtml"),
    "application/xhtml+xml": (".xhtml", ".html", ".htm"),
    "application/pdf": (".pdf",),
    "application/json": (".json",),
    "text/csv": (".csv",),
    "text/markdown": (".md", ".markdown"),
}


def name_of(path: str, disposition: str, media_type: str) -> str:
    """The name that a server gives, or the last part of an address; with the ending of its kind. "" for neither.

    Args:
        path: Of the address.
        disposition: The answer's `content-disposition`.
        media_type: Its media type.
    """
    name = _given(disposition) or unquote(path.rstrip("/").rpartition("/")[2])
    name = name.replace("\\", "/").rpartition("/")[2].strip().lstrip(".")[-_LONGEST:]
    if not name or _INDEX.match(name):
        return ""
    return with_ending(name, media_type)


def with_ending(name: str, media_type: str) -> str:
    """The name, with an ending that fits the media type where that has one."""
    endings = _ENDINGS.get(media_type, ())
    return name if not endings or name.lower().endswith(endings) else name + endings[0]


def _given(disposition: str) -> str:
    if found := _EXTENDED.search(disposition):
        return unquote(found[1])
    if found := _QUOTED.search(disposition):
        return re.sub(r"\\(.)", r"\1", found[1]) if found[1] is not None else found[2]
    return ""
