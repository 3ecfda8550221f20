"""Finished replies on disk, shared by threads and processes: their keys, their JSON form, and the store.

Imported when a model with a `cache_dir` is first asked. `diskcache`'s own store unpickles what it finds, which runs
any code that somebody put there. This one reads and writes JSON text only; any other row counts as missing.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
import time
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, assert_never, cast, get_args

import diskcache  # pyright: ignore[reportMissingTypeStubs]
from pydantic import SecretStr

from core.llm.local_files import path_of
from core.messages.content import ContentItem
from core.messages.events import (
    CallDelta,
    CallStarted,
    Event,
    FinishReason,
    ItemAdded,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    SourceCited,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.message import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from core.llm.request import ChatRequest
    from core.llm.service import Served
    from core.messages.message import Message

_NOT_ASKED: Final = frozenset(  # settings that do not change the reply
    {
        "cache_age",
        "cache_dir",
        "cache_size",
        "incremental_output",
        "log_messages",
        "max_input_tokens",
        "max_retries",
        "request_timeout",
        "turn_timeout",
    }
)
_NOT_THE_MODEL: Final = frozenset(
    {"api_key", "aws_access_key_id", "aws_secret_access_key", "aws_session_token", "profile"}
) | frozenset({"cache_age", "cache_dir", "cache_size", "generate_cfg", "moderation"})


_STORED_NAMES: Final = {
    "core.llm.backends.openai.variants.AzureModel": "core.llm.backends.azure.AzureModel",
    "core.llm.backends.openai.variants.VisionModel": "core.llm.backends.openai_qwen.VisionModel",
    "core.llm.backends.openai.variants.OmniModel": "core.llm.backends.openai_qwen.OmniModel",
    "core.llm.backends.openai.variants.PublicOpenAIModel": "core.llm.backends.openai_public.PublicOpenAIModel",
    "core.llm.backends.openai.model.OpenAIModel": "core.llm.backends.openai.OpenAIModel",
    "core.llm.backends.dashscope.model.DashScopeModel": "core.llm.backends.dashscope.DashScopeModel",
    "core.llm.backends.dashscope.model.DashScopeVisionModel": "core.llm.backends.dashscope.DashScopeVisionModel",
    "core.llm.backends.dashscope.model.DashScopeAudioModel": "core.llm.backends.dashscope.DashScopeAudioModel",
    "core.llm.backends.transformers.model.TransformersModel": "core.llm.backends.transformers.TransformersModel",
}
"""Classes by the names in keys on disk: a class that moves keeps its name there, so that stored replies are found."""


def cache_key(model: Served, request: ChatRequest, account: str) -> str | None:
    """A digest of model, service, key, settings, tools, messages, and the bytes of local files in them.

    The API key counts, so that a wrong one gets no hit; the digest does not reveal it. What an `http` address points
    to is not read: if that changes, `cache_age` is the limit. Reads files: call it in a thread.

    Args:
        account: The digest of service and key.

    Returns:
        `None` if a setting has no fixed form, such as a function.
    """
    generate = {name: value for name, value in request.generate.items() if name not in _NOT_ASKED}
    cfg = {name: value for name, value in model.cfg.items() if name not in _NOT_THE_MODEL}
    asked = {
        "form": FORM,
        "class": stored_name(type(model)),
        "model": model.model,
        "account": account,
        "cfg": sorted(cfg.items()),
        "generate": sorted(generate.items()),
        "lang": request.lang,
        "functions": request.functions,
        "messages": [message.model_dump() for message in request.messages],
    }
    try:
        digest = hashlib.sha256(json.dumps(asked, default=_plain).encode())
        for file in _files(request):
            digest.update(_content(file))
    except (TypeError, ValueError, OSError):
        return None
    return digest.hexdigest()


def stored_name(kind: type) -> str:
    """A model class's name in keys: module and qualified name, as they were when replies were first stored."""
    name = f"{kind.__module__}.{kind.__qualname__}"
    return _STORED_NAMES.get(name, name)


def _plain(value: object) -> Any:
    if isinstance(value, SecretStr):
        return hashlib.sha256(value.get_secret_value().encode()).hexdigest()
    if isinstance(value, Path):
        return str(value)
    raise TypeError("This value has no fixed form.")


def _files(request: ChatRequest) -> Iterator[Path]:
    for message in request.messages:
        for item in _media(message):
            addresses = item.value if isinstance(item.value, list) else [item.value]
            for address in addresses:
                if isinstance(address, str) and (path := _local(address)) is not None:
                    yield path


def _media(message: Message) -> Iterator[ContentItem]:
    if isinstance(message.content, list):
        yield from (item for item in message.content if item.type != "text")


def _local(address: str) -> Path | None:
    if address.startswith("data:") or ("://" in address and not address.startswith("file:")):
        return None
    return path_of(address)


def _content(file: Path) -> bytes:
    if not file.is_file():
        return b"-"
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").digest()


Json: TypeAlias = dict[str, Any]

FORM: Final = 1
"""The version of the stored form; part of the keys."""

_PIECE: Final = 64  # characters: a stored reply streams too


def packed(events: Iterable[Event]) -> Json | None:
    """A reply as JSON; `None` if it must not be stored: unfinished, empty, or cut by the service's filter."""
    parts: list[list[Any]] = []
    for event in events:
        if isinstance(event, MessageFinished):
            if event.reason == "content_filter" or not parts:
                return None
            usage = event.usage.model_dump() if event.usage else None
            signed = {"proof": event.proof} if event.proof else {}
            return {"form": FORM, "parts": parts, "reason": event.reason, "usage": usage, **signed}
        _add(parts, event)
    return None


def unpacked(stored: object) -> list[Event]:
    """The events of a stored reply.

    Raises:
        ValueError: It was not made by `packed`.
    """
    try:
        stored_reply = cast("Json", stored)
        if stored_reply["form"] != FORM or stored_reply["reason"] not in get_args(FinishReason):
            raise ValueError("The reply has another form.")
        events: list[Event] = [MessageStarted()]
        for part in cast("Sequence[Sequence[Any]]", stored_reply["parts"]):
            events += _events(part)
        usage = Usage.model_validate(stored_reply["usage"]) if stored_reply["usage"] is not None else None
        return [*events, MessageFinished(stored_reply["reason"], usage, proof=str(stored_reply.get("proof") or ""))]
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError("The reply is broken.") from error


def _events(part: Sequence[Any]) -> list[Event]:
    match part:
        case ["text", str(text)]:
            return [TextDelta(piece) for piece in _pieces(text)]
        case ["reasoning", str(text)]:
            return [ReasoningDelta(piece) for piece in _pieces(text)]
        case ["proven", str(text), str(proof)]:
            return [*(ReasoningDelta(piece) for piece in _pieces(text)), ReasoningDelta("", proof)]
        case ["item", item]:
            return [ItemAdded(ContentItem(**item))]
        case ["cited", int(back), *passages]:
            return [SourceCited(tuple(dict(one) for one in passages), back)]
        case ["cited", *passages]:
            return [SourceCited(tuple(dict(one) for one in passages))]
        case ["call", str(call_id), str(name)]:
            return [CallStarted(call_id, name)]
        case ["call", str(call_id), str(name), str(proof)]:
            return [CallStarted(call_id, name, proof)]
        case ["arguments", str(text), str(call_id)]:
            return [CallDelta(call_id, piece) for piece in _pieces(text)]
        case _:
            raise ValueError("A part of the reply is broken.")


def _add(parts: list[list[Any]], event: Event) -> None:
    match event:
        case TextDelta():
            _join(parts, "text", event.text)
        case ReasoningDelta():
            _join(parts, "reasoning", event.text)
            if event.proof:
                text = parts.pop()[1] if parts and parts[-1][0] == "reasoning" else ""
                parts.append(["proven", text, event.proof])
        case ItemAdded():
            parts.append(["item", event.item.model_dump()])
        case SourceCited():
            parts.append(["cited", *([event.back] if event.back else []), *event.passages])
        case CallStarted():
            parts.append(["call", event.call_id, event.name, *([event.proof] if event.proof else [])])
        case CallDelta():
            _join(parts, "arguments", event.arguments, event.call_id)
        case MessageStarted() | MessageFinished() | ToolStarted() | ToolFinished():
            pass  # the start is implied, the others are not part of a model's reply
        case _:
            assert_never(event)


def _join(parts: list[list[Any]], kind: str, text: str, *more: str) -> None:
    last = parts[-1] if parts else None
    if last is not None and last[0] == kind and last[2:] == list(more):
        last[1] += text
    elif text:
        parts.append([kind, text, *more])


def _pieces(text: str) -> Iterable[str]:
    return (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))


logger = logging.getLogger(__name__)

DEFAULT_BYTES: Final = 256 * 2**20
DEFAULT_SECONDS: Final = 30 * 24 * 3600.0
_FOLDER: Final = "replies"
_LOCK_SECONDS: Final = 2
_RAW: Final = 1  # diskcache's mark of a value stored in its row
_FAILURES: Final = (sqlite3.Error, diskcache.Timeout, OSError)


class RefusedRowError(ValueError):
    """A row that this store did not write."""


class JsonDisk(diskcache.Disk):
    """Keys are text, values are JSON text inside the row: no pickle, and no files beside the database."""

    def put(self, key: Any) -> Any:
        """The key as stored."""
        if not isinstance(key, str):
            raise TypeError("A key must be text.")
        return key, True

    def get(self, key: Any, raw: Any) -> str:
        """The key of a row.

        Raises:
            RefusedRowError: It is pickled.
        """
        if not raw or not isinstance(key, str):
            raise RefusedRowError("The row's key is not text.")
        return key

    def store(self, value: Any, read: Any, key: Any = None) -> Any:
        """The columns of a value: size of its file, kind, name of its file, and itself."""
        del read, key
        return 0, _RAW, None, json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def fetch(self, mode: Any, filename: Any, value: Any, read: Any) -> Any:
        """The value of a row.

        Raises:
            RefusedRowError: The row is pickled, names a file, or holds no JSON.
        """
        del read
        if mode != _RAW or filename is not None or not isinstance(value, str):
            raise RefusedRowError("The row is none of this store's.")
        try:
            return json.loads(value)
        except (ValueError, RecursionError) as error:
            raise RefusedRowError("The row holds no JSON.") from error

    def remove(self, file_path: Any) -> None:
        """Do nothing: this store has no files, and must not follow a name that somebody else wrote into a row."""


class ReplyStore:
    """Replies by key. It never fails a call: unreadable is missing, unwritable is not stored.

    Args:
        folder: Its own folder is made inside, accessible to the user only.
        limit: Approximate bytes on disk; the oldest replies are evicted first.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder / _FOLDER
        self._limit = limit
        self._cache: Any = None
        self._complained = False

    def find(self, key: str, age: float) -> Any:
        """The reply stored under a key at most `age` seconds ago; `None` for a miss."""
        try:
            stored = self._open_cache().get(key)
        except RefusedRowError:
            return None
        except _FAILURES as error:
            self._failed(error)
            return None
        try:
            return stored["reply"] if stored and 0 <= time.time() - stored["at"] <= age else None
        except (TypeError, LookupError):
            return None

    def keep(self, key: str, reply: Any, age: float) -> None:
        """Store a reply for `age` seconds, replacing an older one."""
        try:
            self._open_cache().set(key, {"at": time.time(), "reply": reply}, expire=age)
        except (*_FAILURES, ValueError) as error:
            self._failed(error)

    def _open_cache(self) -> Any:
        if self._cache is None:
            _make_private(self._folder)
            self._cache = diskcache.Cache(
                str(self._folder),
                timeout=_LOCK_SECONDS,
                disk=JsonDisk,
                size_limit=self._limit,
                statistics=0,
                tag_index=0,
                eviction_policy="least-recently-stored",
            )
        return self._cache

    def _failed(self, error: Exception) -> None:
        self._cache = None
        if not self._complained:
            self._complained = True
            logger.warning("The cache of replies in %s cannot be used now: %s.", self._folder, error)
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            for file in self._folder.glob("cache.db*"):  # damaged beyond use; it is only a cache
                file.unlink(missing_ok=True)


@lru_cache(maxsize=16)
def reply_store(folder: Path, limit: int) -> ReplyStore:
    """The store of a folder, one for all models of this process."""
    return ReplyStore(folder, limit)


def _make_private(folder: Path) -> None:
    """Make the folder, accessible to this user only.

    Raises:
        PermissionError: It belongs to somebody else.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    folder.chmod(0o700)
