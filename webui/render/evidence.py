"""Marks in a reply that lead to passages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from core.rag.document import numbered_as
from core.rag.parsers.base import is_ideograph
from webui.render.html import escaped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webui.render.inline import Cite
    from webui.words import Words

_JOINED = "\u2060"  # keeps the mark on the line of its word


def where(passage: Mapping[str, Any], words: Words) -> str:
    """Document and page of a passage, as a reader says it."""
    document, page = str(passage.get("document") or ""), passage.get("page")
    if host := host_of(passage):
        document = document if document == host else words("evidence.where_web", document=document, host=host)
    return words(f"evidence.where_{numbered_as(document)}", document=document, n=page) if page else document


def host_of(passage: Mapping[str, Any]) -> str:
    """The host of the web page that a passage stands on, all of it; "" for one of a document."""
    address = str(passage.get("url") or "")
    try:
        parts = urlsplit(address)
        return (parts.hostname or "") if parts.scheme in {"http", "https"} else ""
    except ValueError:
        return ""


def rows(text: str) -> list[str]:
    """The lines of a passage; of a table's row that is empty but for one cell, that cell.

    A line that ends between two Chinese characters goes on: there the printed page had no more room.
    """
    lines = (" ".join(line.split()) for line in text.splitlines())
    found: list[list[str]] = []
    for row in filter(None, map(_row, lines)):
        before, after = _edge(found[-1][-1], -1) if found else "", _edge(row, 0)
        if before.isalnum() and after.isalnum() and is_ideograph(before) and is_ideograph(after):
            found[-1].append(row)
        else:
            found.append([row])
    return ["".join(parts) for parts in found]


def one_line(lines: Sequence[str]) -> str:
    """Lines as one, with spaces between them but where Chinese meets Chinese."""
    pieces: list[str] = []
    for line in lines:
        if pieces and not (is_ideograph(pieces[-1][-1]) and is_ideograph(line[0])):
            pieces.append(" ")
        pieces.append(line)
    return "".join(pieces)


def _edge(line: str, at: Literal[0, -1]) -> str:
    """The first or last letter that can be seen: signs of what is cited may stand around it."""
    return line.strip("\x02\x03")[at:][:1] if at else line.strip("\x02\x03")[:1]


def _row(line: str) -> str:
    filled = [cell.strip() for cell in line.split("|") if cell.strip()]
    return line if len(filled) > 1 else "".join(filled)


def citing(passages: Sequence[Mapping[str, Any]], message_id: str, words: Words) -> Cite | None:
    """What turns `[1]` into a mark that opens passage 1; a number without a passage leaves nothing.

    Returns None where a reply has no passages: there `[1]` is just text.
    """
    if not passages:
        return None
    titles = {int(passage["number"]): escaped(where(passage, words)) for passage in passages}
    target = escaped(message_id)

    def cite(numbers: list[int]) -> str:
        marks = [
            f'<sup><a href="#cite-{target}-{number}" class="cite" title="{titles[number]}">{number}</a></sup>'
            for number in numbers
            if number in titles
        ]
        return _JOINED + _JOINED.join(marks) if marks else ""

    return cite
