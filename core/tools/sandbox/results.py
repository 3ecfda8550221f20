"""What a cell printed, returned, drew and raised, from the kernel's messages; nothing of it is trusted."""

from __future__ import annotations

import re
from binascii import Error, a2b_base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable

_ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_MOST_PICTURES: Final = 20
_LARGEST_PICTURE: Final = 8 << 20
_LARGEST_PICTURES: Final = 32 << 20  # of one cell together
_PICTURES: Final = {"image/png": (".png", b"\x89PNG\r\n"), "image/jpeg": (".jpg", b"\xff\xd8\xff")}
_NO_NETWORK: Final = re.compile(
    r"Errno 97|Temporary failure in name resolution|Name or service not known|URLError|ConnectError|Max retries"
)
_PICTURES_LEFT_OUT: Final = (
    f"(Pictures were left out: one cell shows {_MOST_PICTURES}, of {_LARGEST_PICTURES >> 20} MB together.)"
)
LOST: Final = "All variables are lost; the next call begins with a fresh interpreter."
FRESH: Final = "(This is a fresh interpreter: variables of earlier calls are gone.)"
_HINT_NETWORK: Final = "(This sandbox has no network.)"
_HINT_TABLES: Final = "(There is no openpyxl here: pandas.read_excel reads without it, DataFrame.to_csv writes.)"
_HINT_MODULE: Final = "(Nothing can be installed here. There are the standard library, {packages}.)"


@dataclass(frozen=True, slots=True)
class Made:
    """A picture or file that a cell made.

    Args:
        name: A plain name, without folders; for people, never a path on this machine.
        media_type: `image/png`, or `application/octet-stream` where it is not known.
    """

    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class CodeResult:
    """What came of a call.

    Args:
        text: What was printed, returned and raised, for the model and for people.
        files: What was written into the work folder.
        failed: Whether it ended with an error.
        lost: Whether the variables of earlier calls are gone.
        untouched: Whether nothing was run, since the kernel had ended before.
        fresh: Whether the interpreter had run nothing of this conversation before.
    """

    text: str = ""
    pictures: tuple[Made, ...] = ()
    files: tuple[Made, ...] = ()
    failed: bool = False
    lost: bool = False
    untouched: bool = False
    fresh: bool = False


class Gathering:
    """Takes the messages of one cell in, at most `limit` bytes of text.

    Args:
        limit: Bytes; the kernel keeps to it by itself unless somebody has changed it.
        packages: The packages there are, for a hint.
        told: Called with the last line printed, as it comes.
    """

    def __init__(self, limit: int, packages: str, told: Callable[[str], None] | None = None) -> None:
        self._left = limit + 1024  # the notice that something is missing
        self._packages = packages
        self._told = told
        self._texts: list[str] = []
        self._stream = False
        self._room = _LARGEST_PICTURES
        self._left_out = False
        self.pictures: list[Made] = []
        self.failed = False

    def take(self, message: dict[str, Any]) -> None:
        """One message; kinds that are not known are passed over."""
        content: dict[str, Any] = message["content"]
        match message.get("msg_type"):
            case "stream":
                self._print(str(content.get("text", "")))
            case "execute_result" | "display_data" | "update_display_data":
                data = content.get("data")
                self._show(cast("dict[str, Any]", data) if isinstance(data, dict) else {})
            case "error":
                self._fail(content)
            case _:
                pass

    @property
    def text(self) -> str:
        """All of it, in order."""
        return "\n".join(text.strip("\n") for text in self._texts if text.strip("\n"))

    def _print(self, text: str) -> None:
        clean = self._clean(text.replace("\r\n", "\n") if self._left > 0 else "")
        if self._stream and self._texts:
            self._texts[-1] += clean
        else:
            self._texts.append(clean)
        self._stream = True
        line = next((one for one in reversed(self._texts[-1][-400:].splitlines()) if one.strip()), "")
        if self._told is not None and line:
            self._told(line.strip()[:200])

    def _show(self, data: dict[str, Any]) -> None:
        """A picture, else a table or plain text. HTML and scripts are no text of ours: their plain form is shown."""
        picture = next((made for kind in _PICTURES if (made := self._picture(kind, data.get(kind)))), None)
        if picture is not None:
            if len(self.pictures) < _MOST_PICTURES and len(picture.data) <= self._room:
                self._room -= len(picture.data)
                self.pictures.append(picture)
            elif not self._left_out:
                self._left_out = True
                self._texts.append(_PICTURES_LEFT_OUT)
                self._stream = False
            return
        text = data.get("text/markdown") or data.get("text/plain")
        if isinstance(text, str):
            self._add(text)

    def _fail(self, content: dict[str, Any]) -> None:
        self.failed = True
        lines = content.get("traceback")
        text = "\n".join(map(str, cast("list[object]", lines))) if isinstance(lines, list) else ""
        text = text or f"{content.get('ename')}: {content.get('evalue')}"
        self._add(text)
        if "openpyxl" in str(content.get("evalue")):
            self._add(_HINT_TABLES)
        elif content.get("ename") == "ModuleNotFoundError":
            self._add(_HINT_MODULE.format(packages=self._packages))
        elif _NO_NETWORK.search(text):
            self._add(_HINT_NETWORK)

    def _add(self, text: str) -> None:
        self._texts.append(self._clean(text))
        self._stream = False

    def _clean(self, text: str) -> str:
        """What there is room for; no more than could fit is looked at, for a kernel that was changed sends anything."""
        return self._fitting(_ESCAPES.sub("", text[: 4 * max(self._left, 0)]))

    def _fitting(self, text: str) -> str:
        if self._left <= 0:
            return ""
        raw = text.encode("utf-8", "replace")
        self._left -= len(raw)
        return text if self._left >= 0 else raw[: self._left].decode("utf-8", "ignore")

    def _picture(self, kind: str, data: object) -> Made | None:
        """The picture, if it is one by its first bytes too."""
        if not isinstance(data, str) or len(data) > 2 * _LARGEST_PICTURE:
            return None
        try:
            raw = a2b_base64(data)
        except (Error, ValueError):
            return None
        ending, magic = _PICTURES[kind]
        whole = raw.startswith(magic) and len(raw) <= _LARGEST_PICTURE
        return Made(f"picture-{len(self.pictures) + 1}{ending}", kind, raw) if whole else None
