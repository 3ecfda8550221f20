"""Where an answer's marks lead, as annotations beside its plain text: document, page, and the rectangles there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.messages.message import Message

MARK: Final = re.compile(r"\[(\d{1,3})\]")
_LONGEST_QUOTE: Final = 2_000


def cited_places(reply: Sequence[Message], text: str, files: Mapping[str, str]) -> list[dict[str, Any]]:
    """One for each mark in the text that leads to a passage.

    Args:
        reply: Its messages, with the passages that were found.
        text: What the program is given; places in it count from 0.
        files: The ids of files that the program brought, by the ids of their documents.
    """
    rows = [cast("Mapping[str, Any]", row) for message in reply for row in (message.extra or {}).get("passages") or ()]
    numbered = {int(row.get("number") or at): row for at, row in enumerate(rows, 1)}
    found: list[dict[str, Any]] = []
    for mark in MARK.finditer(text):
        row = numbered.get(int(mark[1]))
        if row is not None:
            found.append(_annotation(row, int(mark[1]), mark.start(), mark.end(), files))
    return found


def for_chat(annotation: dict[str, Any]) -> dict[str, Any]:
    """An annotation as a message of a chat has it, for which OpenAI's protocol knows addresses alone.

    A place in a document has one that names it, and says all the rest beside it.
    """
    if annotation["type"] == "url_citation":
        return annotation
    about = annotation["file_citation"]
    named = f"file:{about['file_id']}" if "file_id" in about else f"document:{quote(about['document_id'])}"
    page = f"#page={about['page']}" if about["page"] else ""
    place = {name: about[name] for name in ("start_index", "end_index")}
    address = {**place, "url": f"urn:parlour:{named}{page}", "title": about["filename"]}
    return {"type": "url_citation", "url_citation": address, "file_citation": about}


def _annotation(row: Mapping[str, Any], number: int, start: int, end: int, files: Mapping[str, str]) -> dict[str, Any]:
    place = {"start_index": start, "end_index": end}
    if row.get("url"):
        return {
            "type": "url_citation",
            "url_citation": {**place, "number": number, "url": row["url"], "title": row.get("document") or ""},
        }
    document = str(row.get("document_id") or "")
    about = {
        "number": number,
        "filename": row.get("document") or "",
        "document_id": document,
        "page": row.get("page"),
        "boxes": [list(one) for one in row.get("rectangles") or ()],
        "quote": str(row.get("text") or "")[:_LONGEST_QUOTE],
    }
    named = {"file_id": files[document]} if document in files else {}
    return {"type": "file_citation", "file_citation": {**place, **named, **about}}
