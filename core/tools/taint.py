"""What a conversation has seen: whether something private or untrusted is in it, and which addresses are known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlsplit

from core.errors import ParlourError
from core.messages.message import FUNCTION, USER
from core.tools.catalog import TOOL_REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from core.messages.message import Message
    from core.tools.base import BaseTool


# Neither goes back over what it has read: a message may be two million letters long.
_WITH_SCHEME = re.compile(r"https?://[^\s<>\"'`\\，。；、）】》]++", re.IGNORECASE)
_WITHOUT = re.compile(  # people write "example.org/page"
    r"(?<![A-Za-z0-9.@/-])[A-Za-z0-9-]++(?:\.[A-Za-z0-9-]++)++(?::\d++)?(?:[/?][^\s<>\"'`\\\u0080-\U0010ffff]*+)?"
)
_PLAIN_START = re.compile(r"[!-~]*+")
_LONGEST = 20_000  # characters; nothing that long is an address
_AFTER = ".,;:!?)]}*_"
_KEPT = "/%:@!$&'()*+,;=~-._"
_PORTS = {"http": 80, "https": 443}
_STRANGER = "stranger"  # in a result's `extra`: a tool made it that only has the name of one with `safe_output`


@dataclass(frozen=True, slots=True)
class Taint:
    """What counts when a tool is about to reach out.

    Args:
        private: Whether documents, files or results of tools are in the conversation: from then on an address may
            carry something away, or may have been put there by somebody else.
        addresses: Those that the user wrote or a search returned, each in the one form that `knows` compares.
    """

    private: bool = False
    addresses: frozenset[str] = frozenset()

    @classmethod
    def of(cls, messages: Iterable[Message]) -> Taint:
        """What a conversation has seen so far."""
        private, known = False, set[str]()
        for message in messages:
            private = private or _is_private(message)
            known.update(_addresses(message))
        return cls(private, frozenset(known - {""}))

    def knows(self, url: str) -> bool:
        """Whether the user gave exactly this address, or a search returned it; the scheme does not matter."""
        return _plain(url) in self.addresses


def _is_private(message: Message) -> bool:
    extra = message.extra or {}
    if extra.get("passages") or extra.get("files") or message.is_multimodal():
        return True
    if message.role == FUNCTION:
        is_safe = _has_safe_output(message.name or "") and not extra.get(_STRANGER)
        return not is_safe and not str(extra.get("failed", "")).startswith("refused")
    return False


def mark_of_stranger(tool: BaseTool | None) -> dict[str, Any]:
    """What the `extra` of a tool's result says where only its name is that of a registered one with `safe_output`.

    Empty for every other tool. A program's own function or an operation of a web service may have any name.
    """
    if tool is None or tool.safe_output or not _has_safe_output(tool.name):
        return {}
    return {_STRANGER: True}


def _has_safe_output(name: str) -> bool:
    """Whether the registered tool of this name says so; one that cannot be imported here says nothing."""
    try:
        return name in TOOL_REGISTRY and TOOL_REGISTRY[name].safe_output
    except ParlourError:
        return False


def _addresses(message: Message) -> Iterator[str]:
    extra = message.extra or {}
    if message.role == USER and not extra.get("heard"):  # those were said by other agents
        yield from map(_plain, _written(message.get_text_content()))
    if message.role == FUNCTION:
        yield from (_plain(url) for url in _texts(extra.get("addresses")))
        yield from (_plain(url) for url in _texts(_urls(extra.get("passages"))))


def _written(text: str) -> Iterator[str]:
    """The addresses in a text; where it goes on right after one, also without what may not belong to it."""
    for pattern in (_WITH_SCHEME, _WITHOUT):
        for found in pattern.findall(text):
            begins = _PLAIN_START.match(found)
            for address in {found, begins[0] if begins else found}:
                yield address
                yield address.rstrip(_AFTER)


def _urls(passages: object) -> list[object]:
    rows = cast("list[object]", passages) if isinstance(passages, list | tuple) else []
    return [cast("Mapping[str, Any]", row).get("url") for row in rows if isinstance(row, Mapping)]


def _texts(values: object) -> list[str]:
    found = cast("list[object]", values) if isinstance(values, list | tuple) else []
    return [value for value in found if isinstance(value, str)]


def _plain(url: str) -> str:
    """One form for all ways to write an address: no scheme, fragment or usual port; "" where it is none."""
    url = url.strip()
    if len(url) > _LONGEST:
        return ""
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        port = parts.port
    except ValueError:
        return ""
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme not in _PORTS or not host or parts.username is not None or parts.password is not None:
        return ""
    try:
        host = host.encode("idna").decode() if not host.isascii() else host
    except UnicodeError:
        return ""
    where = "" if port in (None, *_PORTS.values()) else f":{port}"
    query = f"?{quote(parts.query, _KEPT + '?')}" if parts.query else ""
    return f"{host}{where}{quote(parts.path, _KEPT) or '/'}{query}"
