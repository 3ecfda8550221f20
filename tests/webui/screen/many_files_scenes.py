"""Questions with many files, some of which are still being read, and some not read."""

from __future__ import annotations

from dataclasses import replace

from core.messages.content import ContentItem
from core.messages.message import Message
from core.rag.document import ReadingProgress
from core.storage.base import DocumentRecord, StoredMessage
from tests.webui.screen.calls_scenes import Scene
from tests.webui.screen.page_scenes import long

COUNT = 40


def name_of(number: int) -> str:
    """What a file is called; the fifth has a long name."""
    ending = ("pdf", "xlsx", "docx", "md")[number % 4]
    return f"invoice-{number:02}{'-of-the-second-quarter-with-all-its-appendices' if number == 5 else ''}.{ending}"


def many_files() -> Scene:
    """Forty files, and replies below."""
    thread, replies = long()
    files = [{"id": f"f{number}", "name": name_of(number)} for number in range(1, COUNT + 1)]
    items = [ContentItem(text="What is the total?"), *(ContentItem(file=f"/files/{one['id']}") for one in files)]
    question = thread[0]
    asked = StoredMessage(
        question.id, question.conversation_id, None, "user", (Message("user", items, extra={"files": files}),), None,
        "complete", question.created_at,
    )  # fmt: skip
    return [asked, *thread[1:]], replies


def documents() -> list[DocumentRecord]:
    """Of the forty, two are being read, one is damaged, and one wants its password."""
    facts = {"pages": 4, "total": 4, "tables": 2, "chunks": 12, "seconds": 1.2}
    found = [
        DocumentRecord(f"d{n}", "o", "conv", f"f{n}", name_of(n), f"hash{n}", "ready", None, 4, 0.0, facts)
        for n in range(1, COUNT + 1)
    ]
    for number, key in ((2, "document_broken"), (9, "document_locked")):
        error = {"key": key, "details": {"name": name_of(number)}}
        found[number - 1] = replace(found[number - 1], status="failed", library_id=None, facts=None, error=error)
    for number in (3, 12):
        found[number - 1] = replace(found[number - 1], status="reading", library_id=None, facts=None, pages=None)
    return found


READINGS = {"d3": ReadingProgress("hash3", pages=12, total=40, tables=1, chunks=34, seconds=12.4)}
SCENES = {"many-files": many_files}
