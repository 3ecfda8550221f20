"""Text in place of what a model cannot take: pictures, recordings, files."""

from __future__ import annotations

import re
from posixpath import basename
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from core.llm.request import Lang
    from core.messages.content import ContentItem

_NAME = re.compile(r"data:[^,]{0,400}?;name=([^;,]+)")
_WORDS: dict[str, dict[str, str]] = {
    "en": {"image": "picture", "audio": "recording", "video": "video", "file": "file"},
    "zh": {"image": "图片", "audio": "录音", "video": "视频", "file": "文件"},
}


def note(item: ContentItem, lang: Lang = "en") -> str:
    """What a model without eyes or ears reads: `[picture sky.png]`; text is itself."""
    if item.type == "text":
        return item.text or ""
    word = _WORDS[lang][item.type]
    name = item_name(item)
    return f"[{word} {name}]" if name else f"[{word}]"


def item_name(item: ContentItem) -> str:
    """The last part of an item's address as a reader writes it: its file name, or the host; empty without any."""
    address = item.value
    if not isinstance(address, str):
        return ""
    if address.startswith("data:"):
        given = _NAME.match(address)
        return basename(unquote(given[1])) if given else ""
    if "://" not in address:
        return unquote(basename(address.replace("\\", "/").rstrip("/")))
    parts = urlsplit(address)
    return unquote(basename(parts.path.rstrip("/"))) or parts.hostname or ""
