"""Local pictures, recordings and videos, inlined or uploaded for DashScope.

Pictures are inlined, downscaled where they are large. Recordings and videos go to the service's own store, which keeps
them for two days; where a region has no store, small ones are inlined too.
"""

from __future__ import annotations

import asyncio
import time
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from core.errors import ModelMisbehavedError
from core.llm.local_files import path_of
from core.llm.media import inlined, refused, subtype_of
from core.messages.content import ContentItem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    import httpx2

    from core.llm.media import MediaKind
    from core.llm.wire.turns import Takes
    from core.messages.message import Message

_REMOTE: Final = ("http://", "https://", "oss://")
_SUFFIXES: Final = {"quicktime": ".mov", "x-msvideo": ".avi", "x-flv": ".flv", "mpeg": ".mp3"}
_ADDRESS_SECONDS: Final = 24 * 3600.0  # files stay in the store for twice as long
_MOST_ADDRESSES: Final = 256
_USUAL_LIMIT_MB: Final = 100
_INLINE_MB: Final = 7  # the service takes 10 MB of base64
_MB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Media:
    """A local recording or video.

    Args:
        kind: `audio` or `video`.
        name: Of the file; empty where it has none.
        source: The file, or its bytes.
        subtype: Of its media type, by content.
        fingerprint: The same for the same content.
    """

    kind: MediaKind
    name: str
    source: Path | bytes
    size: int
    subtype: str
    fingerprint: tuple[Any, ...]

    def open(self) -> BinaryIO:
        """The bytes as a file."""
        return BytesIO(self.source) if isinstance(self.source, bytes) else self.source.open("rb")

    @property
    def suffix(self) -> str:
        """The file suffix, by which the service recognizes formats."""
        given = Path(self.name).suffix.lower()
        if given and given.isascii():
            return given
        if self.kind == "video" and self.subtype == "mpeg":
            return ".mpg"
        return _SUFFIXES.get(self.subtype, f".{self.subtype}")


@dataclass(slots=True)
class UploadStore:
    """The service's file store, for one model and key; remembers what was uploaded.

    Args:
        ask: Fetches the upload policy, with the place and the largest size; `None` where there is no store.
    """

    ask: Callable[[], Awaitable[dict[str, Any] | None]]
    _addresses: dict[tuple[Any, ...], tuple[float, str]] = field(
        default_factory=dict[tuple[Any, ...], tuple[float, str]]
    )

    async def put(self, http: httpx2.AsyncClient, media: Media) -> str:
        """Upload a file; returns its address in the store, or a `data:` URI.

        Raises:
            ModelRefusedError: It is too large.
            ModelServiceError: The service cannot be reached, or refuses it.
        """
        until, address = self._addresses.get(media.fingerprint, (0.0, ""))
        if time.monotonic() < until:
            return address
        policy = await self.ask()
        if policy is None:
            return await _inline(media)
        _check_size(media, int(policy.get("max_file_size_mb") or _USUAL_LIMIT_MB))
        address = await _uploaded(http, media, policy)
        while len(self._addresses) >= _MOST_ADDRESSES:
            del self._addresses[next(iter(self._addresses))]
        self._addresses[media.fingerprint] = time.monotonic() + _ADDRESS_SECONDS, address
        return address


async def with_uploads(
    messages: Iterable[Message], takes: Takes, put: Callable[[Media], Awaitable[str]]
) -> tuple[Message, ...]:
    """The messages, with every item that the model takes at an address that the service can read.

    Raises:
        ModelRefusedError: A file cannot be read, has an unknown format, or is too large.
    """
    written: list[Message] = []
    for message in await inlined(messages, lambda item: takes(item) and _is_picture(item)):
        if isinstance(message.content, str) or not any(takes(item) for item in message.content):
            written.append(message)
            continue
        items = [await _item(item, put) if takes(item) else item for item in message.content]
        written.append(message.model_copy(update={"content": items}))
    return tuple(written)


def _is_picture(item: ContentItem) -> bool:
    """Whether it is a picture, or a video given as frames."""
    return item.type == "image" or isinstance(item.video, list)


async def _item(item: ContentItem, put: Callable[[Media], Awaitable[str]]) -> ContentItem:
    if _is_picture(item):
        return item
    if item.type == "video":
        return ContentItem(video=await _address("video", str(item.video), put))
    audio = item.audio
    if isinstance(audio, dict):
        data = str(audio.get("data") or "")
        audio = data if data.startswith(("data:", *_REMOTE)) else f"data:;base64,{data}"
    return ContentItem(audio=await _address("audio", str(audio), put))


async def _address(kind: MediaKind, address: str, put: Callable[[Media], Awaitable[str]]) -> str:
    return address if address.startswith(_REMOTE) else await put(await asyncio.to_thread(_media, kind, address))


def _media(kind: MediaKind, address: str) -> Media:
    name = ""
    try:
        if address.startswith("data:"):
            source: Path | bytes = b64decode(address.partition(",")[2], validate=True)
            size, fingerprint = len(source), (sha256(source).digest(),)
            start = source[:64]
        else:
            source = path_of(address)
            name = source.name
            stat = source.stat()
            size, fingerprint = stat.st_size, (str(source), stat.st_size, stat.st_mtime_ns)
            with source.open("rb") as file:
                start = file.read(64)
    except (OSError, ValueError) as error:  # missing, a NUL in its name, or no base64
        raise refused(kind, name, "cannot be read") from error
    subtype = subtype_of(kind, start)
    if not subtype:
        raise refused(kind, name, "is none that is known")
    return Media(kind, name, source, size, subtype, fingerprint)


async def _uploaded(http: httpx2.AsyncClient, media: Media, policy: dict[str, Any]) -> str:
    key = f"{policy['upload_dir']}/{token_hex(8)}{media.suffix}"
    form = {
        "OSSAccessKeyId": str(policy["oss_access_key_id"]),
        "Signature": str(policy["signature"]),
        "policy": str(policy["policy"]),
        "key": key,
        "x-oss-object-acl": str(policy["x_oss_object_acl"]),
        "x-oss-forbid-overwrite": str(policy["x_oss_forbid_overwrite"]),
        "success_action_status": "200",
        "x-oss-content-type": f"{media.kind}/{media.subtype}",
    }
    with await asyncio.to_thread(media.open) as file:
        response = await http.post(str(policy["upload_host"]), data=form, files={"file": (Path(key).name, file)})
    if response.status_code != 200:
        audio = f"The service's store did not take the {media.kind} {media.name!r} (HTTP {response.status_code})."
        raise ModelMisbehavedError(None, str(response.status_code), audio, hint="Ask again, or give its address.")
    return f"oss://{key}"


async def _inline(media: Media) -> str:
    _check_size(media, _INLINE_MB)

    def encoded() -> str:
        with media.open() as file:
            return b64encode(file.read()).decode("ascii")

    return f"data:{media.kind}/{media.subtype};base64,{await asyncio.to_thread(encoded)}"


def _check_size(media: Media, limit: int) -> None:
    if media.size > limit * _MB:
        raise refused(media.kind, media.name, f"is larger than the {limit} MB that the service takes")


def policy_of(answer: Any) -> dict[str, Any]:
    """The upload policy in the service's answer.

    Raises:
        ModelMisbehavedError: It holds none.
    """
    found: Any = cast("dict[str, Any]", answer).get("data") if isinstance(answer, dict) else None
    wanted = {"upload_dir", "upload_host", "oss_access_key_id", "signature", "policy"}
    if not isinstance(found, dict) or not wanted <= set(cast("dict[str, Any]", found)):
        raise ModelMisbehavedError(message="The service's answer about uploads cannot be read.", hint="Ask again.")
    return {"x_oss_object_acl": "private", "x_oss_forbid_overwrite": "true", **cast("dict[str, Any]", found)}
