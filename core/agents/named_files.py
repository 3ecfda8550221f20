"""A question that names files is answered from those alone."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.errors import StorageError
from core.rag.named_files import files_named

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from core.rag.attached import Attached
    from core.rag.library import Library


@dataclass(frozen=True, slots=True)
class Within:
    """What a question is answered from.

    Args:
        documents: The ids of the documents that are searched.
        attached: Tells how far files are read, of these alone.
        only: Their names, where the question names them; empty where all that there are are searched.
    """

    documents: Collection[str]
    attached: Callable[[], Awaitable[Sequence[Attached]]] | None
    only: tuple[str, ...] = ()


async def within(
    question: str,
    library: Library,
    documents: Collection[str],
    attached: Callable[[], Awaitable[Sequence[Attached]]] | None,
) -> Within:
    """The files that a question names, also those that could not be read; all that there are where it names none.

    Args:
        documents: All that there are, by their ids.
        attached: Tells of all files, where some are not in the library.
    """
    everything = Within(documents, attached)
    if attached is None and len(documents) < 2:
        return everything
    try:
        there = await asyncio.to_thread(library.documents)
    except StorageError:  # the search says what is wrong
        return everything
    wanted = frozenset(documents)
    files = [one for one in await attached() if one.status != "untaken"] if attached is not None else []
    called = [(one.id, one.name) for one in there if one.id in wanted]
    called += [(one.library_id, one.name) for one in files if one.library_id in wanted]
    names = frozenset([*(name for _, name in called), *(one.name for one in files)])
    named = files_named(question, names) if len(names) > 1 else frozenset[str]()
    if not named or named == names:
        return everything
    ids = {document_id for document_id, name in called if name in named}

    async def of_these() -> Sequence[Attached]:
        return [one for one in await attached() if one.name in named] if attached is not None else []

    only = tuple(sorted(named))
    return Within([one for one in documents if one in ids], of_these if attached is not None else None, only)
