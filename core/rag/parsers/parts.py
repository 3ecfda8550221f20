"""Files within a file: each is read as a document of its own, under its name as a heading."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from core.errors import DocumentError, LockedDocumentError, MissingExtraError, UnsupportedFormatError
from core.messages.invisible import plain_line
from core.rag.document import About, Block, PageShape
from core.rag.not_read import NOT_READ, NOT_READ_BEYOND, REASONS
from core.rag.parsers.base import Found, ParseOptions, Part, Scanned
from core.rag.parsers.catalog import HEAD, PARSER_REGISTRY, parser_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MOST = 200
"""Files of one document; the others are counted."""
MOST_BYTES = 50 * 1024 * 1024
"""Of one of them."""
_DEEPEST = 2  # a letter in an archive in an archive is read, what is attached to it is not
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class File:
    """A file within a document.

    Args:
        name: With the folders that it lies in.
        size: Bytes, as far as they are known before it is read.
        read: Gives its bytes. Raises DocumentError.
    """

    name: str
    size: int
    read: Callable[[], bytes]


def parts(files: Iterable[File], options: ParseOptions, title: str = "") -> Iterator[Found]:
    """What the files hold, on no pages; of each that is not read the reason, and at last, if there was one, an `About`.

    Args:
        title: What the `About` said that the caller has given before.
    """
    left_out = rest = 0
    is_damaged = False
    for number, file in enumerate(files):
        if number >= MOST:
            rest += 1
            continue
        reason = ""
        yield Block("heading", _name(file.name), level=1)
        try:
            for one in _read(file, options):
                if isinstance(one, About):
                    is_damaged, left_out = is_damaged or one.damaged, left_out + one.left_out
                    yield Part(one.pages or 0)
                else:
                    yield one
        except MissingExtraError:
            reason = "words"
        except DocumentError as error:
            reason = _reason(error)
        if reason:
            left_out += 1
            yield Block("paragraph", NOT_READ.format(*REASONS[reason]))
    if rest:
        left_out += rest
        yield Block("heading", "…", level=1)
        yield Block("paragraph", NOT_READ_BEYOND.format(rest=rest, most=MOST))
    if left_out or is_damaged:
        yield About(title=title, damaged=is_damaged, left_out=left_out)


def _read(file: File, options: ParseOptions) -> Iterator[Found]:
    if file.size > MOST_BYTES:
        raise DocumentError("It is too large.", key="document_too_large")
    data = file.read()
    if not data:
        raise DocumentError("It is empty.", key="document_empty")
    name = _name(file.name)
    parser, _ = parser_for(name, data[:HEAD])
    if options.depth >= _DEEPEST:
        raise DocumentError("It stands too deep.", key="document_too_deep")
    inner = replace(options, depth=options.depth + 1, password="", first_page=1)
    # The parent deletes the folder if this process is stopped before it can.
    with TemporaryDirectory() as folder:
        path = Path(folder, "part")
        path.write_bytes(data)
        yield from _on_no_page(PARSER_REGISTRY[parser]().parse(path, name, inner), name)


def _on_no_page(found: Iterable[Found], name: str) -> Iterator[Found]:
    """The blocks of a document of its own, one level deeper, with the number of a page in a heading."""
    pages, page = 0, None
    for one in found:
        match one:
            case About():
                pages = one.pages or 0
                yield one
            case PageShape():
                pass
            case Block():
                if one.page != page and pages > 1:
                    yield Block("heading", f"{name} · {one.page}/{pages}", level=2)
                page = one.page
                level = min(one.level + 2, 6) if one.level else 0
                yield replace(one, page=None, lines=(), level=level)
            case Scanned():
                yield replace(one, page=1)
            case _:
                yield one


def _reason(error: DocumentError) -> str:
    if isinstance(error, LockedDocumentError):
        return "locked"
    if isinstance(error, UnsupportedFormatError):
        return "unsupported"
    known = {"document_too_large": "large", "document_too_deep": "deep", "document_empty": "empty"}
    return known.get(error.words_key, "broken")


def _name(name: str) -> str:
    plain = plain_line(name).strip()
    return plain[-_LONGEST_NAME:] or "-"
