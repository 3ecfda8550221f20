"""Pictures, recordings and videos of this machine, brought to where DashScope can read them.

Pictures travel in the request itself, made smaller where they are large. Recordings and videos are uploaded to the
service's own store, which keeps them for two days; where a region has no store, small ones travel in the request too.
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

    from core.llm.media import Heard
    from core.llm.wire.turns import Takes
    from core.messages.message import Message

_THERE: Final = ("http://", "https://", "oss://")
_SUFFIXES: Final = {"quicktime": ".mov", "x-msvideo": ".avi", "x-flv": ".flv", "mpeg": ".mp3"}
_KEPT_SECONDS: Final = 24 * 3600.0  # the store keeps a file for twice as long
_MOST_KEPT: Final = 256
_USUAL_LIMIT_MB: Final = 100
_INLINE_MB: Final = 7  # the service takes 10 MB of base64
_MB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Media:
    """A recording or video of this machine.

    Args:
        kind: What it is.
        name: As the user knows it; empty where it has none.
        source: The file, or the bytes.
        size: In bytes.
        subtype: The second half of its media type, by its content.
        mark: The same for the same content.
    """

    kind: Heard
    name: str
    source: Path | bytes
    size: int
    subtype: str
    mark: tuple[Any, ...]

    def opened(self) -> BinaryIO:
        """The bytes as a file."""
        return BytesIO(self.source) if isinstance(self.source, bytes) else self.source.open("rb")

    @property
    def suffix(self) -> str:
        """What the name ends in, by which the service tells formats apart."""
        given = Path(self.name).suffix.lower()
        if given and given.isascii():
            return given
        if self.kind == "video" and self.subtype == "mpeg":
            return ".mpg"
        return _SUFFIXES.get(self.subtype, f".{self.subtype}")


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
    for message in await inlined(messages, lambda item: takes(item) and _is_picture(item)):
        if isinstance(message.content, str) or not any(takes(item) for item in message.content):
            whole.append(message)
            continue
        items = [await _item(item, put) if takes(item) else item for item in message.content]
        whole.append(message.model_copy(update={"content": items}))
    return tuple(whole)


def _is_picture(item: ContentItem) -> bool:
    """One picture, or those of which a video is made."""
    return item.type == "image" or isinstance(item.video, list)


async def _item(item: ContentItem, put: Callable[[Media], Awaitable[str]]) -> ContentItem:
    if _is_picture(item):
        return item
    if item.type == "video":
        return ContentItem(video=await _address("video", str(item.video), put))
    said = item.audio
    if isinstance(said, dict):
        data = str(said.get("data") or "")
        said = data if data.startswith(("data:", *_THERE)) else f"data:;base64,{data}"
    return ContentItem(audio=await _address("audio", str(said), put))


async def _address(kind: Heard, address: str, put: Callable[[Media], Awaitable[str]]) -> str:
    return address if address.startswith(_THERE) else await put(await asyncio.to_thread(_media, kind, address))


def _media(kind: Heard, address: str) -> Media:
    name = ""
    try:
        if address.startswith("data:"):
            source: Path | bytes = b64decode(address.partition(",")[2], validate=True)
            size, mark = len(source), (sha256(source).digest(),)
            start = source[:64]
        else:
            source = path_of(address)
            name = source.name
            stat = source.stat()
            size, mark = stat.st_size, (str(source), stat.st_size, stat.st_mtime_ns)
            with source.open("rb") as file:
                start = file.read(64)
    except (OSError, ValueError) as error:  # there is none, its name has a zero in it, or it is no base64
        raise refused(kind, name, "cannot be read") from error
    subtype = subtype_of(kind, start)
    if not subtype:
        raise refused(kind, name, "is none that is known")
    return Media(kind, name, source, size, subtype, mark)


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

    return f"data:{media.kind}/{media.subtype};base64,{await asyncio.to_thread(encoded)}"


def _check_size(media: Media, limit: int) -> None:
    if media.size > limit * _MB:
        raise refused(media.kind, media.name, f"is larger than the {limit} MB that the service takes")


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
