"""Files and pictures of a conversation as tools may work on them: by their names, within bounds, and no others."""

from __future__ import annotations

import os
import stat
from base64 import b64decode, b64encode
from binascii import a2b_base64
from dataclasses import dataclass, field, replace
from io import BytesIO
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote, unquote, unquote_to_bytes

from core.errors import BadArgumentsError, ParlourError, ToolError, extra_for
from core.llm.local_files import path_of
from core.messages.content import ContentItem
from core.messages.message import FUNCTION, USER
from core.net.addresses import Reach
from core.net.fetcher import FetchLimits, fetch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractAsyncContextManager, AsyncExitStack

    from core.messages.message import Message


LARGEST: Final = 32 * 1024 * 1024  # bytes of one file
_MOST_NAMED: Final = 20
_UNKNOWN: Final = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file of a conversation.

    Args:
        name: What it is called there.
        source: Where it is, its bytes, or what makes it a file of this machine to the end of an `async with` block.
    """

    name: str
    media_type: str
    size: int
    source: Path | bytes | Callable[[], AbstractAsyncContextManager[Path]] = field(repr=False)

    async def brought(self, held: AsyncExitStack) -> GivenFile:
        """The same as a file of this machine, for as long as it is `held`; as it is, where it is larger than 32 MB.

        Raises:
            ToolError: It is gone, or where it is kept cannot be used.
        """
        if isinstance(self.source, Path | bytes) or self.size > LARGEST:
            return self
        try:
            return replace(self, source=await held.enter_async_context(self.source()))
        except ParlourError as error:
            raise ToolError(f"The file {self.name!r} cannot be read.") from error

    def read(self) -> bytes:
        """Its bytes, which are those that were shown to whoever allowed the call.

        Raises:
            ToolError: It is larger than 32 MB, is gone or changed, or is no plain file.
        """
        if self.size > LARGEST:
            raise ToolError(f"The file {self.name!r} is larger than 32 MB.", hint="Send a smaller one.")
        if isinstance(self.source, bytes):
            return self.source
        try:
            if not isinstance(self.source, Path):
                raise TypeError("it was not brought here")
            data = _plain_file(self.source)
        except (OSError, TypeError, ValueError) as error:
            raise ToolError(f"The file {self.name!r} cannot be read.") from error
        if len(data) != self.size:
            raise ToolError(f"The file {self.name!r} has changed meanwhile.", hint="Try again.")
        return data


def named(files: Mapping[str, GivenFile], name: str) -> GivenFile:
    """The file of that name; a name is no path.

    Raises:
        BadArgumentsError: There is none; the sentence says which there are.
    """
    if (found := files.get(name)) is not None:
        return found
    if not files:
        raise BadArgumentsError("There is no file in this conversation.", hint="Ask the user to add it.")
    known = ", ".join(list(files)[:_MOST_NAMED])
    raise BadArgumentsError(f"There is no file {name!r} in this conversation. There are: {known}.")


def files_in(messages: Iterable[Message]) -> dict[str, GivenFile]:
    """The files of messages, by name; of two with one name, the later.

    Those of this machine count where the user named them: what a tool answered may name any. Addresses of the web are
    not fetched here, and links are not followed.
    """
    found: dict[str, GivenFile] = {}
    for message in messages:
        for item in message.items if message.role in {USER, FUNCTION} else ():
            if item.type == "text" or not isinstance(item.value, str):
                continue
            is_inside = item.value.startswith("data:")
            if not is_inside and message.role != USER:
                continue
            one = _inside(item.value, len(found)) if is_inside else _here(item.value)
            if one is not None:
                found.pop(one.name, None)
                found[one.name] = one
    return found


def _inside(address: str, number: int) -> GivenFile | None:
    head, _, packed = address.removeprefix("data:").partition(",")
    media_type, *options = head.split(";")
    name = next((unquote(one[5:]) for one in options if one.startswith("name=")), "")
    try:
        data = b64decode(packed) if "base64" in options else unquote_to_bytes(packed)
    except ValueError:
        return None
    kind = media_type or _UNKNOWN
    return GivenFile(Path(name).name or f"{kind.partition('/')[0]}_{number}", kind, len(data), data)


def _here(address: str) -> GivenFile | None:
    if "://" in address and not address.startswith("file:"):
        return None
    path = path_of(address)
    try:
        about = path.lstat()
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(about.st_mode):
        return None
    return GivenFile(path.name, guess_type(path.name)[0] or _UNKNOWN, about.st_size, path.absolute())


def _plain_file(path: Path) -> bytes:
    """The bytes of a file that is one itself, and no link to another. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("no plain file")
        return file.read(LARGEST + 1)


MOST_PIXELS = 50_000_000
_LARGEST = 32 * 1024 * 1024  # bytes
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
_OPEN = Reach()


def pictures_of(messages: Iterable[Message]) -> list[str]:
    """The addresses of all pictures in a conversation, in order."""
    return [str(item.image) for message in messages for item in message.items if item.type == "image" and item.image]


def chosen(messages: Iterable[Message], number: object) -> str:
    """The address of the picture with a number, counted from 0.

    Raises:
        BadArgumentsError: There is none; the sentence says which there are.
    """
    addresses = pictures_of(messages)
    if not addresses:
        raise BadArgumentsError("There is no picture in this conversation.", field="img_idx")
    whole = int(number) if isinstance(number, int | float) and number == number // 1 else -1
    if not 0 <= whole < len(addresses):
        last = len(addresses) - 1
        raise BadArgumentsError(f"The field 'img_idx' must be a whole number from 0 to {last}.", field="img_idx")
    return addresses[whole]


async def bytes_at(address: str, reach: Reach = _OPEN) -> bytes:
    """The bytes of a picture: of a `data:` or web address, or of a file of this machine.

    Raises:
        ToolError: It is not there, or larger than 32 MB.
        FetchError: It cannot be fetched, or may not be.
    """
    if address.startswith("data:"):
        return _unpacked(address)
    if address.lower().startswith(("http://", "https://")):
        limits = FetchLimits(size=_LARGEST, types=("image/", "application/octet-stream", "binary/octet-stream"))
        return (await fetch(address, limits=limits, reach=reach)).data
    from core.llm.local_files import path_of

    path = path_of(address)
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            raise ToolError(f"The picture {path.name!r} is not here, or larger than 32 MB.")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise ToolError("The picture cannot be read.") from error


def _unpacked(address: str) -> bytes:
    head, _, data = address.partition(",")
    try:
        return a2b_base64(data) if head.endswith(";base64") else unquote_to_bytes(data)
    except ValueError as error:
        raise ToolError("The picture cannot be read.") from error


def opened(data: bytes) -> Any:
    """A picture (of `PIL`) as people see it: its first frame, turned as its camera was held, in RGB or RGBA.

    Raises:
        ToolError: It is none, is damaged, or has more than 50 million pixels.
    """
    with extra_for("A tool for pictures"):
        from PIL import Image, ImageOps

    bombs = (Image.DecompressionBombError, Image.DecompressionBombWarning)
    try:
        picture: Any = Image.open(BytesIO(data), formats=_FORMATS)
        width, height = picture.size
        if width * height > MOST_PIXELS:  # known before anything is unpacked
            raise _too_large()
        turned: Any = ImageOps.exif_transpose(picture)
        mode = "RGBA" if turned.has_transparency_data else "RGB"
        return turned.convert(mode)
    except bombs as error:
        raise _too_large() from error
    except (OSError, ValueError, SyntaxError, EOFError, MemoryError, OverflowError) as error:
        raise ToolError("The picture is damaged, or of a kind that is not read.") from error


def _too_large() -> ToolError:
    return ToolError("The picture has more than 50 million pixels.", hint="Make it smaller first.")


def picture_item(picture: Any, kind: Literal["PNG", "JPEG"] = "PNG", name: str = "") -> ContentItem:
    """A picture as an item of a result. Nothing but its pixels is kept.

    Args:
        picture: From `opened`.
        kind: How it is packed; JPEG puts what is transparent on white.
        name: What to call it where it is stored.
    """
    from PIL import Image

    if kind == "JPEG" and picture.mode == "RGBA":
        ground: Any = Image.new("RGB", picture.size, "white")
        ground.paste(picture, mask=picture.getchannel("A"))
        picture = ground
    picture.info.clear()
    out = BytesIO()
    picture.save(out, kind, **({"quality": 85} if kind == "JPEG" else {}))
    called = f";name={quote(Path(name).name, safe='')}" if name else ""
    packed = b64encode(out.getvalue()).decode("ascii")
    return ContentItem(image=f"data:image/{kind.lower()}{called};base64,{packed}")
