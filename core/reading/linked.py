"""Links in place of files: what stands at the address is fetched when its turn comes, and is a file from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from core.messages.invisible import plain_line

if TYPE_CHECKING:
    from core.net.addresses import Reach

LINK = "text/uri-list"
"""The media type of a stored file that holds an address and nothing else. No upload gets it, whatever is in it."""

_LONGEST = 60


def link_name(url: str) -> str:
    """What to call a page that was not fetched yet: its host, and the last part of its address."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:  # brackets that are none of an address
        return "link"
    last = unquote(parts.path.rstrip("/").rpartition("/")[2]).replace("/", " ").replace("\\", " ")
    last = plain_line(last)
    return f"{host} · {last[:_LONGEST]}" if last else host or "link"


async def fetched(url: str, reach: Reach | None = None) -> tuple[bytes, str]:
    """What stands at an address, and what to call it.

    Args:
        url: Begins with `http://` or `https://`.
        reach: How far it may lead; the open internet by default.

    Raises:
        FetchError: It cannot be fetched, or may not be.
    """
    from core.rag.sources import page  # brings the readers of documents with it

    return await page(url, reach=reach)
