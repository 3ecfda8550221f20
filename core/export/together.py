"""Many conversations as one ZIP of files, each as it would be exported alone."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

from core.errors import DocumentError, NotFoundError
from core.export.zip_stream import ZipStream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from core.export.exporting import Exporting
    from core.languages import Lang

FileForm: TypeAlias = Literal["md", "json", "html", "pdf"]
ZIP: str = "application/zip"


def archive_name() -> str:
    """The name of an archive of conversations that is made now."""
    return f"parlour-conversations-{datetime.now(UTC):%Y-%m-%d}.zip"


async def zipped(
    exporting: Exporting, ids: Sequence[str], form: FileForm, lang: Lang = "en"
) -> AsyncGenerator[bytes, None]:
    """An archive of conversations; one that is deleted meanwhile is left out, and one that cannot be printed is HTML.

    Args:
        ids: Those that are wanted, in their order.
        lang: The language of what is not the conversations' own.

    Raises:
        StorageError: The database failed.
    """
    archive = ZipStream()
    for one in ids:
        try:
            name, pieces = await _file(exporting, one, form, lang)
        except NotFoundError:
            continue
        yield await asyncio.to_thread(archive.add, archive.free_name(name), pieces)
    yield archive.end()


async def _file(exporting: Exporting, one: str, form: FileForm, lang: Lang) -> tuple[str, list[bytes]]:
    if form == "pdf":
        try:
            name, made = await exporting.printed(one, lang)
        except DocumentError:
            form = "html"
        else:
            return name, [made]
    exported = await exporting.export(one, form, lang)
    async with aclosing(exported.pieces) as pieces:
        return exported.name, [piece.encode() async for piece in pieces]
