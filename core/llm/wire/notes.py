"""Text in place of what a model cannot take: pictures, recordings, files."""

from __future__ import annotations

from posixpath import basename
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from core.llm.request import Lang
    from core.messages.content import ContentItem

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
    """The last part of an item's address: its file name, or the host; empty where there is none."""
    address = item.value
    if not isinstance(address, str) or address.startswith("data:"):
        return ""
    if "://" not in address:
        return basename(address.replace("\\", "/").rstrip("/"))
    parts = urlsplit(address)
    return unquote(basename(parts.path.rstrip("/"))) or parts.hostname or ""
