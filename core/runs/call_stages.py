"""The four stages of a model call as they are kept: what was given, sent, received and made of it.

Each is bounded. Of a long one the beginning and the end are kept, and where it was cut stands between them. Keys of the
model, values of headers and bytes of pictures are taken out before anything is stored.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

from core.llm.service import key_of
from core.llm.telemetry import logged_messages
from core.llm.wire_log import KEPT_HEAD, KEPT_TAIL
from core.messages.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.llm.ledger import LedgerCall
    from core.llm.request import ChatRequest
    from core.llm.wire_log import Exchange

LONGEST: Final = KEPT_HEAD + KEPT_TAIL
HIDDEN: Final = "…"
_SHOWN_HEADERS: Final = re.compile(
    r"accept(?:-encoding|-language)?|cache-control|connection|content-(?:encoding|length|type)|host|user-agent"
    r"|x-stainless-[\w-]+|x-dashscope-sse|x-accel-buffering|anthropic-version",
    re.IGNORECASE,
)
_SHOWN_QUERY: Final = frozenset({"alt", "api-version"})
_PICTURE: Final = re.compile(rb"data:([\w.+-]+/[\w.+-]+);base64,([A-Za-z0-9+/=]{64,})")
_SOUND: Final = re.compile(rb'("data":\s*")([A-Za-z0-9+/=]{256,})(?=")')
_NOT_SHOWN: Final = frozenset({"extra_headers", "extra_query"})


def packed(call: LedgerCall, *, whole: bool = True) -> str:
    """The stages of a call as text for the log: JSON, compressed.

    Args:
        call: One that is over.
        whole: Whether there is room for them; else it is noted that they were left out.
    """
    return packed_stages(stages_of(call) if whole else {"left_out": True})


def packed_stages(stages: Mapping[str, Any]) -> str:
    """Stages as text for the log, as `unpacked` reads it."""
    raw = json.dumps(stages, ensure_ascii=False, default=str).encode("utf-8", "replace")
    return base64.b64encode(zlib.compress(raw, 1)).decode()


def unpacked(text: str) -> dict[str, Any]:
    """The stages of a call; empty where the text is damaged."""
    try:
        read: Any = json.loads(zlib.decompressobj().decompress(base64.b64decode(text), 16 * LONGEST))
    except (ValueError, RecursionError, zlib.error):
        return {}
    return cast("dict[str, Any]", read) if isinstance(read, dict) else {}


def stages_of(call: LedgerCall) -> dict[str, Any]:
    """The stages of a call: `given`, `sent`, `received` and `parsed`.

    `sent` and `received` are lists with one item for each request: the further ones are retries. Of a model in this
    process, where nothing goes over a wire, they hold the request after fitting, and the text that the model wrote.
    """
    keys = _spellings(key_of(call.model.cfg))
    exchanges = call.wire.exchanges
    parsed = logged_messages(Transcript(call.events).messages())
    stages: dict[str, Any] = {
        "given": _asked(call.given, keys),
        "sent": [_sent(one, keys) for one in exchanges],
        "received": [_received(one, keys) for one in exchanges],
        "parsed": {"body": _bounded(_hidden(_json(parsed), keys).encode())},
    }
    if not exchanges and call.sent is not None and call.raw is not None:
        stages["sent"] = [_asked(call.sent, keys)]
        raw = _json(logged_messages(Transcript(call.raw).messages()))
        stages["received"] = [{"body": _bounded(_hidden(raw, keys).encode())}]
    return stages


def _asked(request: ChatRequest, keys: Iterable[str]) -> dict[str, Any]:
    settings = {name: value for name, value in request.generate.items() if name not in _NOT_SHOWN}
    body = {
        "messages": logged_messages(request.messages),
        "tools": list(request.functions),
        "settings": settings,
    }
    return {"body": _bounded(_hidden(_json(body), keys).encode())}


def _sent(one: Exchange, keys: Iterable[str]) -> dict[str, Any]:
    headers = [[name, value if _SHOWN_HEADERS.fullmatch(name) else HIDDEN] for name, value in one.headers]
    body = _hidden(_without_bytes(one.sent).decode("utf-8", "replace"), keys)
    return {
        "method": one.method,
        "address": _address(one.address),
        "headers": headers,
        "at": round(one.at, 3),
        "size": len(one.sent),
        "body": _bounded(body.encode()),
    }


def _received(one: Exchange, keys: Iterable[str]) -> dict[str, Any]:
    head, tail = one.received.head, one.received.tail
    lost = one.received.size - len(head) - len(tail)
    parts = [_hidden(part.decode("utf-8", "replace"), keys) for part in (head, tail) if part]
    body = {"text": parts, "cut": lost} if lost > 0 else {"text": ["".join(parts)] if parts else [""], "cut": 0}
    return {"status": one.status, "size": one.received.size, "body": body}


def _bounded(raw: bytes) -> dict[str, Any]:
    """A text of at most so many bytes: its pieces, and how many bytes were cut out between them."""
    lost = len(raw) - LONGEST
    parts = [raw] if lost <= 0 else [raw[:KEPT_HEAD], raw[-KEPT_TAIL:]]
    return {"text": [part.decode("utf-8", "ignore") for part in parts], "cut": max(lost, 0)}


def _without_bytes(body: bytes) -> bytes:
    """A body with the sizes of pictures and recordings in the place of their bytes."""
    if b"base64," in body:
        body = _PICTURE.sub(lambda found: b"data:%b;base64,(%d bytes)" % (found[1], len(found[2]) * 3 // 4), body)
    if b'"data"' in body:
        body = _SOUND.sub(lambda found: b"%b(%d bytes)" % (found[1], len(found[2]) * 3 // 4), body)
    return body


def _address(address: str) -> str:
    """An address without user and password, and without what its query holds."""
    parts = urlsplit(address)
    query = "&".join(
        f"{name}={value if name in _SHOWN_QUERY else HIDDEN}"
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    )
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, query, ""))


def _spellings(key: str) -> list[str]:
    return sorted({key, quote(key, ""), json.dumps(key)[1:-1]}, key=len, reverse=True) if len(key) >= 6 else []


def _hidden(text: str, keys: Iterable[str]) -> str:
    for key in keys:
        text = text.replace(key, HIDDEN)
    return text


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=_shown)


def _shown(value: object) -> Any:
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else str(value)
