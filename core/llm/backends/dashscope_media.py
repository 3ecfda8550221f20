"""Pictures, recordings and videos of this machine, brought to where DashScope can read them.

Pictures travel in the request itself, made smaller where they are large. Recordings and videos are uploaded to the
service's own store, which keeps them for two days; where a region has no store, small ones travel in the request too.
"""

from __future__ import annotations

import asyncio
import mimetypes
import time
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from dataclasses import dataclass, field
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast
from urllib.parse import unquote, urlsplit

from core.errors import ModelMisbehavedError, ModelRefusedError
from core.llm.pictures import data_uri
from core.llm.wire.media_kinds import looks_like
from core.messages.content import ContentItem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    import httpx2

    from core.llm.wire.turns import Takes
    from core.messages.message import Message

_THERE: Final = ("http://", "https://", "oss://")
_KEPT_SECONDS: Final = 24 * 3600.0  # the store keeps a file for twice as long
_MOST_KEPT: Final = 256
_USUAL_LIMIT_MB: Final = 100
_INLINE_MB: Final = 7  # the service takes 10 MB of base64
_MB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Media:
    """A recording or video of this machine.

    Args:
        kind: "audio" or "video".
        name: As the user knows it.
        source: The file, or the bytes.
        size: In bytes.
        mark: The same for the same content.
    """

    kind: str
    name: str
    source: Path | bytes
    size: int
    mark: tuple[Any, ...]

    def opened(self) -> BinaryIO:
        """The bytes as a file."""
        return BytesIO(self.source) if isinstance(self.source, bytes) else self.source.open("rb")

    @property
    def media_type(self) -> str:
        """`audio/wav` and the like, by its name."""
        return mimetypes.guess_type(self.name)[0] or "application/octet-stream"


@dataclass(slots=True)
class Store:
    """The service's store for files, for one model and key.

    Args:
        ask: Gives the policy of the store: where to put a file, and how large it may be; `None` where there is none.
    """

    ask: Callable[[], Awaitable[dict[str, Any] | None]]
    _kept: dict[tuple[Any, ...], tuple[float, str]] = field(default_factory=dict[tuple[Any, ...], tuple[float, str]])

    async def put(self, http: httpx2.AsyncClient, media: Media) -> str:
        """The address of a file in the store, or all of it as a `data:` URI.

        Raises:
            ModelRefusedError: It is too large.
            ModelServiceError: The service is out of reach, or does not take it.
        """
        until, address = self._kept.get(media.mark, (0.0, ""))
        if time.monotonic() < until:
            return address
        policy = await self.ask()
        if policy is None:
            return await _inline(media)
        _check_size(media, int(policy.get("max_file_size_mb") or _USUAL_LIMIT_MB))
        address = await _uploaded(http, media, policy)
        while len(self._kept) >= _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[media.mark] = time.monotonic() + _KEPT_SECONDS, address
        return address


async def brought(
    messages: Iterable[Message], takes: Takes, put: Callable[[Media], Awaitable[str]]
) -> tuple[Message, ...]:
    """The messages, with an address that the service can read for everything that the model takes.

    Raises:
        ModelRefusedError: A file cannot be read, is not what it should be, or is too large.
    """
    whole: list[Message] = []
    for message in messages:
        if isinstance(message.content, str) or not any(takes(item) for item in message.content):
            whole.append(message)
            continue
        items = [await _item(item, put) if takes(item) else item for item in message.content]
        whole.append(message.model_copy(update={"content": items}))
    return tuple(whole)


async def _item(item: ContentItem, put: Callable[[Media], Awaitable[str]]) -> ContentItem:
    if item.type == "image":
        return ContentItem(image=await _picture(str(item.image)))
    if isinstance(item.video, list):
        return ContentItem(video=[await _picture(str(frame)) for frame in item.video])
    if item.type == "video":
        return ContentItem(video=await _address("video", str(item.video), put))
    said = item.audio
    if isinstance(said, dict):
        data, form = str(said.get("data") or ""), str(said.get("format") or "wav")
        said = data if data.startswith(("data:", *_THERE)) else f"data:audio/{form};base64,{data}"
    return ContentItem(audio=await _address("audio", str(said), put))


async def _picture(address: str) -> str:
    return address if address.startswith(("data:", *_THERE)) else await asyncio.to_thread(data_uri, address)


async def _address(kind: str, address: str, put: Callable[[Media], Awaitable[str]]) -> str:
    return address if address.startswith(_THERE) else await put(await asyncio.to_thread(_media, kind, address))


def _media(kind: str, address: str) -> Media:
    if address.startswith("data:"):
        head, _, data = address[5:].partition(",")
        media_type = head.partition(";")[0]
        name = kind + (mimetypes.guess_extension(media_type) or f".{media_type.rpartition('/')[2]}")
        try:
            raw = b64decode(data, validate=True)
        except NotBase64 as error:
            raise _refused(kind, name, "is damaged") from error
        found = Media(kind, name, raw, len(raw), (sha256(raw).digest(),))
    else:
        path = Path(unquote(urlsplit(address).path) if address.startswith("file:") else address)
        try:
            stat = path.stat()
        except OSError as error:
            raise _refused(kind, path.name, "cannot be read") from error
        found = Media(kind, path.name, path, stat.st_size, (str(path), stat.st_size, stat.st_mtime_ns))
    try:
        with found.opened() as file:
            start = file.read(64)
    except OSError as error:
        raise _refused(kind, found.name, "cannot be read") from error
    if not looks_like(kind, start):
        raise _refused(kind, found.name, f"is not a {'recording' if kind == 'audio' else kind}")
    return found


async def _uploaded(http: httpx2.AsyncClient, media: Media, policy: dict[str, Any]) -> str:
    suffix = Path(media.name).suffix.lower()
    key = f"{policy['upload_dir']}/{token_hex(8)}{suffix if suffix.isascii() else ''}"
    form = {
        "OSSAccessKeyId": str(policy["oss_access_key_id"]),
        "Signature": str(policy["signature"]),
        "policy": str(policy["policy"]),
        "key": key,
        "x-oss-object-acl": str(policy["x_oss_object_acl"]),
        "x-oss-forbid-overwrite": str(policy["x_oss_forbid_overwrite"]),
        "success_action_status": "200",
        "x-oss-content-type": media.media_type,
    }
    with await asyncio.to_thread(media.opened) as file:
        response = await http.post(str(policy["upload_host"]), data=form, files={"file": (Path(key).name, file)})
    if response.status_code != 200:
        said = f"The service's store did not take the {media.kind} {media.name!r} (HTTP {response.status_code})."
        raise ModelMisbehavedError(None, str(response.status_code), said, hint="Ask again, or give its address.")
    return f"oss://{key}"


async def _inline(media: Media) -> str:
    _check_size(media, _INLINE_MB)

    def encoded() -> str:
        with media.opened() as file:
            return b64encode(file.read()).decode("ascii")

    return f"data:{media.media_type};base64,{await asyncio.to_thread(encoded)}"


def _check_size(media: Media, limit: int) -> None:
    if media.size > limit * _MB:
        raise _refused(media.kind, media.name, f"is larger than the {limit} MB that the service takes")


def _refused(kind: str, name: str, why: str) -> ModelRefusedError:
    word = "recording" if kind == "audio" else kind
    hint = (
        "Shorten it, or send what was said as text."
        if "larger" in why
        else "Save it in a usual format, such as MP3 or MP4."
    )
    error = ModelRefusedError(message=f"The {word} {name!r} {why}.", hint=hint, key=f"{word}_unreadable")
    error.details["name"] = name
    return error


def policy_of(answer: Any) -> dict[str, Any]:
    """The policy in the service's answer.

    Raises:
        ModelMisbehavedError: There is none.
    """
    found: Any = cast("dict[str, Any]", answer).get("data") if isinstance(answer, dict) else None
    wanted = {"upload_dir", "upload_host", "oss_access_key_id", "signature", "policy"}
    if not isinstance(found, dict) or not wanted <= set(cast("dict[str, Any]", found)):
        raise ModelMisbehavedError(message="The service's answer about uploads cannot be read.", hint="Ask again.")
    return {"x_oss_object_acl": "private", "x_oss_forbid_overwrite": "true", **cast("dict[str, Any]", found)}
