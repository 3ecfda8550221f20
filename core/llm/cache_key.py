"""The name of a request in the cache: equal only where the service would be asked the very same thing."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import SecretStr

from core.llm.local_files import path_of
from core.llm.reply_json import FORM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from core.llm.request import ChatRequest
    from core.llm.service import Served
    from core.messages.content import ContentItem
    from core.messages.message import Message

_NOT_ASKED: Final = frozenset(  # how we ask, not what
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
_NOT_THE_MODEL: Final = frozenset({"api_key", "cache_age", "cache_dir", "cache_size", "generate_cfg", "moderation"})


def cache_key(model: Served, request: ChatRequest, account: str) -> str | None:
    """A digest of model, service, key, settings, tools and messages, and of the bytes of local files among them.

    The API key counts, so that a wrong one is never answered; the digest does not tell it. What an `http` address
    points to is not looked at: where that changes, `cache_age` is the limit. Reads files: call it in a thread.

    Args:
        model: Who is asked.
        request: What is asked.
        account: The mark of service and key.

    Returns:
        `None` where something in the settings has no fixed form, such as a function.
    """
    generate = {name: value for name, value in request.generate.items() if name not in _NOT_ASKED}
    cfg = {name: value for name, value in model.cfg.items() if name not in _NOT_THE_MODEL}
    asked = {
        "form": FORM,
        "class": f"{type(model).__module__}.{type(model).__qualname__}",
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
