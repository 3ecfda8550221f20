"""A question that names files, or goes on from one that does, is answered from those alone."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.agents.retrieval import stands_alone
from core.agents.search_query import questions_followed
from core.errors import StorageError
from core.rag.named_before import files_meant

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from core.messages.message import Message
    from core.rag.attached import Attached
    from core.rag.config import RAGConfig
    from core.rag.library import Library


@dataclass(frozen=True, slots=True)
class Within:
    """What a question is answered from.

    Args:
        documents: The ids of the documents that are searched.
        attached: Tells how far files are read, of these alone.
        only: Their names, where the question is about them alone; empty where all that there are are searched.
    """

    documents: Collection[str]
    attached: Callable[[], Awaitable[Sequence[Attached]]] | None
    only: tuple[str, ...] = ()


def followed(messages: Sequence[Message], config: RAGConfig) -> list[str]:
    """The questions that the last one follows up and is searched for with, the last one first.

    Args:
        messages: The conversation, the question last.
        config: Whether those before it count.
    """
    question, *earlier = questions_followed(messages) or [""]
    return [] if config.follow_up == "off" or stands_alone(question) else earlier


async def within(
    question: str,
    library: Library,
    documents: Collection[str],
    attached: Callable[[], Awaitable[Sequence[Attached]]] | None,
    earlier: Sequence[str] = (),
) -> Within:
    """The files that a question is about, also those that could not be read; all that there are where it names none.

    Args:
        documents: All that there are, by their ids.
        attached: Tells of all files, where some are not in the library.
        earlier: The questions that it follows up, the last one first.
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
    named = files_meant([question, *earlier], names) if len(names) > 1 else frozenset[str]()
    if not named or named == names:
        return everything
    ids = {document_id for document_id, name in called if name in named}

    async def of_these() -> Sequence[Attached]:
        return [one for one in await attached() if one.name in named] if attached is not None else []

    only = tuple(sorted(named))
    return Within([one for one in documents if one in ids], of_these if attached is not None else None, only)
