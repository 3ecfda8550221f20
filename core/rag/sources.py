"""Where documents come from: paths of this machine, and web addresses, which are downloaded to a temporary file."""

from __future__ import annotations

import asyncio
import codecs
import re
import tempfile
from contextlib import contextmanager
from html import unescape
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from core.bridge.sync import run
from core.errors import SettingsError
from core.net.addresses import Reach, open_internet_and_own_network
from core.net.fetcher import FetchLimits, fetch, with_ending
from core.rag.parsers.process import cancelled
from core.rag.parsers.text import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from core.net.fetcher import Fetched
    from core.rag.parsers.process import Limits

_T = TypeVar("_T")
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_MOST = 50 * 1024 * 1024
_SECONDS = 30.0
_OFTEN = 0.1  # seconds between two looks at whether it is still wanted
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_TITLE = re.compile(r"<title(?:\s[^<>]*)?>([^<]{1,1000})</title", re.IGNORECASE)
_CHARSET = re.compile(r"(<meta[^>]{1,200}charset\s{0,9}=\s{0,9}[\"']?\s{0,9})([\w-]+)", re.IGNORECASE)
# Encodings of pages, as `codecs` calls them. A server could name others, which take hours or are no encodings of text.
_ENCODINGS = frozenset(
    (
        *("ascii", "utf-16", "utf-16-le", "utf-16-be", "gb18030", "big5", "big5hkscs", "cp950", "hz"),
        *("shift_jis", "cp932", "euc_jp", "iso2022_jp", "euc_kr", "cp949", "johab", "tis-620", "cp874"),
        *("koi8-r", "koi8-u", "cp866", "mac-roman", "mac-cyrillic"),
        *(f"cp{number}" for number in range(1250, 1259)),
        *(f"iso8859-{number}" for number in (*range(1, 12), *range(13, 17))),
    )
)
_HEAD = 64 * 1024
_LONGEST_TITLE = 120


def is_web_address(path: str | Path) -> bool:
    """Whether it is the address of something on the web, and not a path."""
    return isinstance(path, str) and bool(_ADDRESS.match(path))


@contextmanager
def file_here(
    path: str | Path, name: str | None, limits: Limits, *, own_network: bool, stopped: Callable[[], bool]
) -> Generator[tuple[Path, str]]:
    """A local file and its name; a download exists as long as the block runs.

    Args:
        path: Of a file, or an address that begins with `http://` or `https://`.
        name: What it shall be called; else by its title, or by its own name.
        limits: What one file may cost.
        own_network: Whether addresses of this machine and its network may be called.
        stopped: Whether it is not wanted any more; asked while it is fetched.

    Raises:
        FetchError: The address cannot be fetched, or may not be.
        DocumentError: It is not wanted any more (key `document_cancelled`).
    """
    if not is_web_address(path):
        yield Path(path), Path(path).name if name is None else name
        return
    reach = Reach(open_internet_and_own_network) if own_network else Reach()
    most = FetchLimits(size=min(limits.file_bytes, _MOST), seconds=_SECONDS)
    data, called = run(_unless(stopped, page(str(path), most, reach, name)))
    with tempfile.TemporaryDirectory(prefix="parlour-web-") as folder:
        file = Path(folder) / "fetched"
        file.write_bytes(data)
        yield file, called


async def page(
    url: str, limits: FetchLimits | None = None, reach: Reach | None = None, name: str | None = None
) -> tuple[bytes, str]:
    """The content of an address as bytes that parsers can read, and its name.

    Args:
        url: Begins with `http://` or `https://`.
        limits: What it may cost; by default 10 MB and 20 seconds.
        reach: How far it may go; by default the open internet.
        name: What it shall be called; else by its title, or by its own name.

    Raises:
        FetchError: It cannot be fetched, or may not be.
    """
    fetched = await fetch(url, limits=limits or FetchLimits(), reach=reach or Reach())
    data, title = await asyncio.to_thread(as_readable, fetched)  # 10 MB take a while
    return data, with_ending(name or title or fetched.name, fetched.media_type)


async def _unless(stopped: Callable[[], bool], work: Coroutine[Any, Any, _T]) -> _T:
    """The result of the work, or an error as soon as `stopped` says so."""
    task = asyncio.create_task(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=_OFTEN)
            if stopped():
                raise cancelled()
        return task.result()
    finally:
        task.cancel()


def as_readable(fetched: Fetched) -> tuple[bytes, str]:
    """The bytes in an encoding that parsers detect without HTTP headers, and the title or ""."""
    is_page = fetched.media_type in _PAGES
    if not is_page and not fetched.media_type.startswith("text/"):
        return fetched.data, ""
    data = fetched.data
    if fetched.charset not in {"", "utf-8", "utf8"}:
        try:
            text = data.decode(_encoding(fetched.charset))
        except (LookupError, UnicodeError):
            pass
        else:
            if is_page:
                text = _CHARSET.sub(r"\1utf-8", text[:_HEAD], count=1) + text[_HEAD:]
            data = text.encode()
    if not is_page:
        return data, ""
    found = _TITLE.search(decode(data[:_HEAD]))
    title = " ".join(unescape(found[1]).split()) if found else ""
    return data, title.replace("/", "-").replace("\\", "-")[:_LONGEST_TITLE]


def _encoding(charset: str) -> str:
    """What a server calls an encoding, as `codecs` calls it. Raises LookupError for what pages are not written in."""
    name = codecs.lookup({"gb2312": "gb18030", "gbk": "gb18030"}.get(charset, charset)).name
    if name not in _ENCODINGS:
        raise LookupError(name)
    return name


def path_given(given: object, what: str, hint: str = "Give its path.") -> str:
    """The path as text.

    Args:
        what: What it is the path of, for the error.

    Raises:
        SettingsError: It is no path: `None`, or bytes for example.
    """
    if isinstance(given, str | PathLike):
        path: object = fspath(cast("str | PathLike[Any]", given))
        if isinstance(path, str):
            return path
    kind = "None" if given is None else type(cast("object", given)).__name__
    raise SettingsError(f"{what} cannot be given as {kind}.", hint=hint)
