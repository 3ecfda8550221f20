"""The evidence of a slide, a sheet, a text by lines and by paragraphs, and of a page of the web."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.rag.document import Block, PageShape, Passage, table
from core.rag.page_content import PageContent
from core.tools.web.passages import passage
from webui.panels.evidence import Listing, Lists, ShownText, evidence_html
from webui.panels.evidence_text import Found
from webui.words import Words

BOX = ((0, (96.0, 54.0, 480.0, 108.0)),)
LONG = "The heron stands in the pond, and waits for what comes. " * 12


def _shown(content: PageContent, said: str, words: Words, name: str, pages: int | None = None) -> str:
    found = (
        Found(1, said, is_open=True, cited=((0, min(20, len(said))),)),
        Found(2, "Say good morning.", is_open=False),
    )
    about = {"document": name, "document_id": "d", "page": content.page, "rectangles": []}
    passages: list[dict[str, Any]] = [
        {**about, "number": 1, "text": LONG},
        {**about, "number": 2, "text": "Say good morning."},
        {**about, "number": 3, "text": "Found, and not cited."},
    ]
    chunks = [Passage(f"Chunk {number}", 0.0, name, "d", content.page, chunk_id=number) for number in range(50)]
    lists = Lists(uncited=frozenset({3}), listing=Listing("d", 120, 0, chunks, page=content.page, open_chunk=8))
    page = ShownText("d", name, pages, content, found)
    return evidence_html(passages, 1, words, message_id="r-1", page=page, lists=lists)


def slide(words: Words) -> str:
    """A slide with its notes."""
    blocks = (
        Block("heading", "Our garden", 3, BOX, level=1),
        Block("paragraph", "The heron stands in the pond.", 3, BOX),
        Block("paragraph", "Say good morning.", 3),
    )
    content = PageContent("slide", 3, parts=1, part=1, last=1, first=1, blocks=blocks, shape=PageShape(3, 960.0, 540.0))
    return _shown(content, "The heron stands in the pond.", words, "garden.pptx", 5)


def sheet(words: Words) -> str:
    """Rows of a sheet that goes on before and after them."""
    rows = (("", "C", "D"), *((str(number), "Water", "420") for number in range(801, 841)))
    block = Block("table", "", 2, cells=rows)
    content = PageContent("sheet", 2, parts=9, part=5, last=5, first=1, blocks=(block,), title="Prices")
    return _shown(content, "Water | 420", words, "prices.xlsx", 4)


def lines(words: Words) -> str:
    """A program, with a line that is wider than the panel."""
    cells = (
        ("1", "# Title"),
        ("2", "The heron stands."),
        ("3", "x = " + "1 + " * 80 + "1"),
        ("4", "Say good morning."),
    )
    block = Block("code", "", cells=cells)
    content = PageContent("lines", None, parts=1, part=1, last=1, first=1, blocks=(block,))
    return _shown(content, "The heron stands.", words, "heron.py")


def text(words: Words) -> str:
    """Paragraphs and a table of a long text."""
    blocks = (Block("heading", "Prices", level=1), Block("paragraph", LONG), table([("Fire", "300"), ("Ice", "5")]))
    content = PageContent("text", None, parts=3, part=2, last=2, first=41, blocks=blocks)
    return _shown(content, "Fire | 300", words, "prices.docx")


def web(words: Words) -> str:
    """A passage of a page on the web."""
    row = passage("Water carries the heat away.", "https://energy.example/cooling?a=1", "Reactor cooling").as_dict()
    return evidence_html([{**row, "number": 1}], 1, words, message_id="r-1", page=None)


EVIDENCE: dict[str, Callable[[Words], str]] = {"slide": slide, "sheet": sheet, "lines": lines, "text": text, "web": web}
SHOWN = {"slide": ".p-slide", "sheet": "thead th", "lines": ".p-line", "text": "tr", "web": ".p-web a"}
