"""The files of a conversation as tools may send them on: by their names, and no other file of this machine."""

from __future__ import annotations

import os
import stat
from base64 import b64decode
from dataclasses import dataclass, field
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, unquote_to_bytes

from core.errors import BadArgumentsError, ToolError
from core.llm.local_files import path_of
from core.messages.message import FUNCTION, USER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from core.messages.message import Message

LARGEST: Final = 32 * 1024 * 1024  # bytes of one file
_MOST_NAMED: Final = 20
_UNKNOWN: Final = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file of a conversation.

    Args:
        name: What it is called there.
        media_type: What kind it is.
        size: Its bytes.
        source: Where it is, or its bytes.
    """

    name: str
    media_type: str
    size: int
    source: Path | bytes = field(repr=False)

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
            data = _plain_file(self.source)
        except (OSError, ValueError) as error:
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
