"""Parts of a program's messages: pictures, recordings and files, brought here before anybody is asked.

Nothing of this machine is named by a program: a picture or a file is in the request itself, was brought before, or is
fetched by the guarded way to the web.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, cast

from core.doors.asked import BadRequestError
from core.errors import NotFoundError
from core.net.fetcher import FetchLimits, fetch
from core.storage.files import media_type_of_head, shown_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.doors.door import Door

_PICTURES: Final = FetchLimits(types=("image/",))
_DOCUMENTS: Final = FetchLimits()
_MOST_FETCHED: Final = 16  # of one request
_MOST_BYTES: Final = 64 * 1024 * 1024  # of all parts of one request, each time that one is named
_SOUNDS: Final = frozenset({"wav", "mp3", "ogg", "flac", "m4a", "webm", "aac", "opus", "pcm16"})
_FILE_ID: Final = "file-"


class Parts:
    """The parts of one request; an async context manager, at whose end the files of the request are gone.

    Args:
        door: Whose files may be named.

    Attributes:
        documents: The ids of files that the program brought, by the ids of their documents.
        has_documents: Whether a document is among the parts.
    """

    def __init__(self, door: Door) -> None:
        self.documents: dict[str, str] = {}
        self.has_documents = False
        self._door = door
        self._folder: Path | None = None
        self._fetched = 0
        self._count = 0
        self._bytes = 0
        self._read: dict[str, tuple[bytes, str, str]] = {}  # files that were brought before, by their ids

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._folder is not None:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def resolved(self, messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The messages with everything in them. Raises BadRequestError, FetchError, NotFoundError."""
        return [await self._message(one, at) for at, one in enumerate(messages)]

    async def _message(self, message: Mapping[str, Any], at: int) -> Mapping[str, Any]:
        content: Any = message.get("content")
        if not isinstance(content, list):
            return message
        parts = [await self._part(one, f"messages[{at}].content") for one in cast("list[Any]", content)]
        return {**message, "content": parts}

    async def _part(self, part: Any, param: str) -> Any:
        if isinstance(part, str):
            return part
        if not isinstance(part, dict):
            raise BadRequestError("A part of a message must be an object.", param=param)
        given = cast("dict[str, Any]", part)
        match given.get("type"):
            case "text" | "input_text" | "output_text":
                return {"type": "text", "text": _text(given.get("text"), param)}
            case "refusal":
                return {"type": "text", "text": _text(given.get("refusal"), param)}
            case "image_url" | "input_image":
                return await self._picture(given, param)
            case "input_audio":
                return _recording(given.get("input_audio"), param)
            case "file" | "input_file":
                inner: Any = given.get("file") if isinstance(given.get("file"), dict) else given
                return await self._file(cast("dict[str, Any]", inner), param)
            case other:
                known = "text, image_url, input_audio, file"
                said = f"There is no part of the type {other!r} here."
                raise BadRequestError(said, param=param, hint=f"Known: {known}.")

    async def _picture(self, given: dict[str, Any], param: str) -> dict[str, Any]:
        named: Any = given.get("image_url")
        address = cast("dict[str, Any]", named).get("url") if isinstance(named, dict) else named
        if address is None and isinstance(given.get("file_id"), str):
            data, kind, _ = await self._brought(given["file_id"], param)
            return _picture_part(data, kind, param)
        if not isinstance(address, str):
            raise BadRequestError("A picture needs an address.", param=param)
        if address.startswith("data:"):
            _, data = _data(address, param)
            self._count_bytes(len(data), param)
            return _picture_part(data, media_type_of_head(data[:65536], ""), param)
        if not address.startswith(("https://", "http://")):
            hint = "Give a data: address, or one that begins with https://."
            raise BadRequestError("This is no address of a picture.", param=param, hint=hint)
        self._count_fetch(param)
        fetched = await fetch(address, limits=_PICTURES)
        self._count_bytes(len(fetched.data), param)
        return _picture_part(fetched.data, media_type_of_head(fetched.data[:65536], ""), param)

    async def _file(self, given: dict[str, Any], param: str) -> dict[str, Any]:
        name = given.get("filename") if isinstance(given.get("filename"), str) else ""
        if isinstance(given.get("file_id"), str):
            data, kind, name = await self._brought(given["file_id"], param)
        elif isinstance(given.get("file_data"), str):
            _, data = _data(given["file_data"], param)
            self._count_bytes(len(data), param)
            kind = media_type_of_head(data[:65536], str(name))
        elif isinstance(given.get("file_url"), str):
            self._count_fetch(param)
            fetched = await fetch(given["file_url"], limits=_DOCUMENTS)
            self._count_bytes(len(fetched.data), param)
            data, kind, name = fetched.data, fetched.media_type, fetched.name
        else:
            raise BadRequestError("A file needs file_id or file_data.", param=param)
        if kind.startswith("image/"):
            return _picture_part(data, kind, param)
        self.has_documents = True
        path = await asyncio.to_thread(self._kept, data, shown_name(str(name) or "file.txt"))
        return {"file": str(path)}

    async def _brought(self, file_id: str, param: str) -> tuple[bytes, str, str]:
        """A file that was brought before: bytes, media type and name. Raises BadRequestError, NotFoundError."""
        plain = file_id.removeprefix(_FILE_ID)
        if "files" not in self._door.key.scopes:
            raise NotFoundError("There is no such file for this key.", kind="file")
        if plain in self._read:
            self._count_bytes(len(self._read[plain][0]), param)
            return self._read[plain]
        await self._door.stores.api_files.get(plain)
        record = await self._door.stores.files.record(plain)
        self._count_bytes(record.size, param)
        self.documents[record.sha256] = _FILE_ID + record.id
        self._read[plain] = (await self._door.stores.files.read(plain), record.media_type, record.name)
        return self._read[plain]

    def _count_fetch(self, param: str) -> None:
        self._fetched += 1
        if self._fetched > _MOST_FETCHED:
            said = f"More than {_MOST_FETCHED} addresses are not fetched for one request."
            raise BadRequestError(said, param=param, code="too_many")

    def _count_bytes(self, more: int, param: str) -> None:
        self._bytes += more
        if self._bytes > _MOST_BYTES:
            said = f"The parts of the request are larger than {_MOST_BYTES // (1024 * 1024)} MB together."
            raise BadRequestError(said, param=param, code="too_large")

    def _kept(self, data: bytes, name: str) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="parlour-asked-"))
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir(mode=0o700)
        (folder / name).write_bytes(data)
        return folder / name


def _text(given: object, param: str) -> str:
    if not isinstance(given, str):
        raise BadRequestError("A part with text has none.", param=param)
    return given


def _data(address: str, param: str) -> tuple[str, bytes]:
    """Media type and bytes of a `data:` address, or of plain base64. Raises BadRequestError."""
    head, comma, rest = address.partition(",") if address.startswith("data:") else ("data:;base64", ",", address)
    if not comma or not head.endswith(";base64"):
        raise BadRequestError("A data: address must hold base64.", param=param)
    try:
        return head[5:].removesuffix(";base64"), base64.b64decode(rest, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequestError("What should be base64 is none.", param=param) from error


def _picture_part(data: bytes, kind: str, param: str) -> dict[str, Any]:
    if not kind.startswith("image/"):
        raise BadRequestError("This is no picture that can be read here.", param=param)
    return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"}}


def _recording(given: object, param: str) -> dict[str, Any]:
    sound = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    data, form = sound.get("data"), sound.get("format")
    if not isinstance(data, str) or form not in _SOUNDS:
        raise BadRequestError("A recording needs data, and a format such as wav or mp3.", param=param)
    _data(data, param)
    plain = data.partition(",")[2] if data.startswith("data:") else data
    return {"type": "input_audio", "input_audio": {"data": plain, "format": form}}
