"""HTML pages."""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from core.rag.document import About, Block, table
from core.rag.figure_labels import figure_text
from core.rag.parsers.base import PLAIN, Found, ParseOptions, clean, ending
from core.rag.parsers.figure_pictures import DATA, with_figures
from core.rag.parsers.text import decode, looks_like_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_MOST_PICTURES = 500
_ENDINGS = frozenset({".html", ".htm", ".xhtml"})
# Source code may begin with HTML in a string, so other file endings are believed; programs call HTML a sheet or a text.
_OPEN_TO_DOUBT = _ENDINGS | {"", ".txt", ".xls", ".doc"}
# Only single letters are repeated possessively: of groups, Python before 3.11.5 finds none then.
_START = re.compile(
    rb"\s*+(?:<\?xml[^>]*+>\s*+)?(?:<!--(?:(?!-->).)*-->\s*)*<(!doctype\s+html|html[\s>])", re.IGNORECASE | re.DOTALL
)
_CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([a-zA-Z0-9_-]+)", re.IGNORECASE)

_CLOSED = re.compile(
    r"<(?!(?:area|br|col|embed|hr|img|input|link|meta|source|track|wbr)\b)([a-z][a-z0-9]*)(\s[^<>]*|)/>"
)

_SILENT = frozenset(
    {"script", "style", "noscript", "template", "head", "svg", "iframe", "object", "select", "datalist"}
)
_APART = frozenset(
    {
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "center",
        "dd",
        "details",
        "dialog",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "header",
        "hgroup",
        "hr",
        "html",
        "legend",
        "li",
        "main",
        "menu",
        "nav",
        "ol",
        "p",
        "section",
        "summary",
        "ul",
        "caption",
    }
)


class WebPageParser:
    """Reads a page as a reader sees it: no scripts, no styles, no comments."""

    def accepts(self, name: str, head: bytes) -> str:
        """Text that starts as a page, or says so by its name."""
        kind = ending(name)
        if not looks_like_text(head) or kind not in _OPEN_TO_DOUBT:
            return ""
        return "text/html" if kind in _ENDINGS or _START.match(head.removeprefix(b"\xef\xbb\xbf")) else ""

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """Headings, paragraphs, tables and listings."""
        from selectolax.lexbor import LexborHTMLParser

        tree: Any = LexborHTMLParser(decoded(path.read_bytes()))
        title = tree.css_first("title")
        yield About(title=" ".join(title.text().split()) if title else "")
        if tree.body is not None:
            held = pictures_in(tree)
            yield from with_figures(_Walk(data_source).blocks(tree.body), held.get, words=options.pictures)


def data_source(address: str) -> str:
    """What a picture that stands in a page itself is called as the source of a figure; "" for any other address."""
    if not address[:11].lower().startswith("data:image/") or ";base64," not in address[:200]:
        return ""
    return f"{DATA}{hashlib.sha256(address.encode(errors='replace')).hexdigest()[:16]}"


def pictures_in(tree: Any) -> dict[str, bytes]:
    """The pictures that stand in a page itself, by their sources.

    Args:
        tree: The page, parsed, or its bytes.
    """
    from selectolax.lexbor import LexborHTMLParser

    page: Any = LexborHTMLParser(decoded(tree)) if isinstance(tree, bytes) else tree
    found: dict[str, bytes] = {}
    for node in page.css("img")[:_MOST_PICTURES]:
        address = str(node.attributes.get("src") or "")
        if source := data_source(address):
            with suppress(ValueError):
                found[source] = b64decode(address.partition(",")[2])
    return found


def page_blocks(text: str) -> Iterator[Block]:
    """The blocks of a page that was decoded already."""
    from selectolax.lexbor import LexborHTMLParser

    tree: Any = LexborHTMLParser(text)
    if tree.body is not None:
        yield from _Walk().blocks(tree.body)


def strict_page(data: bytes, source_of: Callable[[str], str] | None = None) -> Iterator[Block]:
    """The blocks of an XHTML page, as in e-books: there `<title/>` is a whole element.

    Args:
        source_of: Gives the source of a picture's figure by its address; "" for one that is not there.
    """
    from selectolax.lexbor import LexborHTMLParser

    tree: Any = LexborHTMLParser(_CLOSED.sub(r"<\1\2></\1>", decoded(data)))
    if tree.body is not None:
        yield from _Walk(source_of).blocks(tree.body)


def decoded(data: bytes) -> str:
    """The page's text in the encoding that it names itself, if it fits."""
    named = _CHARSET.search(data[:4096])
    if named and named[1].lower() not in {b"utf-8", b"utf8"}:
        encoding = {"gb2312": "gb18030", "gbk": "gb18030"}.get(named[1].decode().lower(), named[1].decode())
        try:
            return data.decode(encoding)
        except (LookupError, UnicodeDecodeError):
            pass
    return decode(data)


class _Walk:
    """Walks the tree without recursion: a page nested a hundred thousand deep is an attack."""

    def __init__(self, source_of: Callable[[str], str] | None = None) -> None:
        self._words: list[str] = []
        self._source_of = source_of
        self._figures: list[Block] = []  # until the paragraph that they stand in is whole

    def blocks(self, body: Any) -> Iterator[Block]:
        waiting: list[Any] = [body]
        while waiting:
            node = waiting.pop()
            if isinstance(node, str):  # the end of a block element
                yield from self._paragraph()
                continue
            tag = node.tag
            if tag == "-text":
                self._words.append(re.sub(r"\s+", " ", node.text_content or ""))
            elif tag == "br":
                self._words.append("\n")
            elif tag in {"img", "figure"} and self._is_picture(node, tag):
                continue
            elif tag in {"table", "pre"} or re.fullmatch("h[1-6]", tag or ""):
                yield from self._paragraph()
                if not (tag == "table" and _is_layout(node)):
                    yield from _whole(node, tag)
                else:
                    waiting.extend(reversed(_children(node)))
            elif tag not in _SILENT and not (tag or "-").startswith(("-", "!")):
                if tag in _APART or tag in {"tr", "td", "th"}:
                    yield from self._paragraph()
                    waiting.append("end")
                waiting.extend(reversed(_children(node)))
        yield from self._paragraph()

    def _is_picture(self, node: Any, tag: str) -> bool:
        """Take in a picture, or a `figure` of one picture and its caption; false for another one, with more in it."""
        caption = str(node.attributes.get("alt") or "") if tag == "img" else _caption(node)
        if tag == "figure" and not caption:
            return False
        self._picture(node if tag == "img" else node.css_first("img"), caption)
        return True

    def _picture(self, node: Any, caption: str) -> None:
        source = self._source_of(str(node.attributes.get("src") or "")) if self._source_of else ""
        if source:
            self._figures.append(Block("figure", figure_text(clean(caption)), source=source))
        elif node.parent is not None and node.parent.tag == "figure":  # its picture is elsewhere
            self._words.append(f"\n{caption}\n" if node.parent.css_first("figcaption") else "")

    def _paragraph(self) -> Iterator[Block]:
        yield from self._figures
        self._figures = []
        text = _tidy("".join(self._words))
        self._words = []
        if text:
            yield Block("paragraph", text)


def _caption(node: Any) -> str:
    """The caption of a `figure` with one picture and no more; "" for another one, whose parts are read one by one."""
    caption: Any = node.css_first("figcaption")
    if caption is None or len(node.css("img")) != 1 or node.css_first("table, pre, p, ul, ol") is not None:
        return ""
    return " ".join(caption.text(separator=" ").split())


def _children(node: Any) -> list[Any]:
    return list(node.iter(include_text=True))


def _is_layout(node: Any) -> bool:
    """Whether a table is page layout, as on old pages: it has a table, heading or list inside."""
    return any(child.css_first("h1, h2, h3, ul, table") is not None for child in node.iter())


def _whole(node: Any, tag: str) -> Iterator[Block]:
    if tag == "table":
        rows = [_row(row) for row in node.css("tr")]
        caption = node.css_first("caption")
        if caption is not None and (text := _tidy(caption.text(separator=" "))):
            yield Block("paragraph", text)
        if filled := [row for row in rows if any(row)]:
            yield table(filled)
    elif tag == "pre":
        if code := node.text().strip("\n").rstrip():
            yield Block("code", code)
    elif text := " ".join(node.text().split()):
        yield Block("heading", text, level=int(tag[1]))


def _row(row: Any) -> tuple[str, ...]:
    return tuple(_tidy(cell.text(separator=" ")) for cell in row.iter() if cell.tag in {"td", "th"})


def _tidy(text: str) -> str:
    """White space collapsed as in a browser; the line breaks of `<br>` stay."""
    lines = (" ".join(line.split()) for line in re.sub(r"[ \t\r]+", " ", text).split("\n"))
    return "\n".join(line for line in lines if line)
