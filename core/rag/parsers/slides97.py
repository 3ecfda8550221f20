"""Slides of PowerPoint 97 to 2003 (PPT), by the published description of the format.

No library that is kept and may be used here reads them; `olefile` opens the container.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from core.errors import BrokenDocumentError
from core.rag.document import About, Block, PageShape
from core.rag.parsers.base import PLAIN, Found, ParseOptions, clean
from core.rag.parsers.compound import compound, compound_kind, locked, stream_of, title_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

MEDIA_TYPE = "application/vnd.ms-powerpoint"
_ENCRYPTED = 0xF3D1C4DF
_EDIT, _PLACES, _ENCRYPTION = 0x0FF5, 0x1772, 0x2F14
_DOCUMENT, _DOCUMENT_ATOM, _SLIDE_LIST, _SLIDE_ENTRY = 0x03E8, 0x03E9, 0x0FF0, 0x03F3
_SLIDE, _NOTES, _SLIDE_ATOM, _NOTES_ATOM = 0x03EE, 0x03F0, 0x03EF, 0x03F1
_KIND, _WIDE, _NARROW, _FROM_LIST = 0x0F9F, 0x0FA0, 0x0FA8, 0x0F9E
_TITLES = frozenset({0, 6})  # kinds of text
_NUMBER = 1  # text that stands for the number of the slide in a box of notes
_CONTAINER = 0xF
_MOST_SLIDES = 5_000
_POINT = 8  # of the format's units
_LONGEST_TITLE = 300
_SIGNS = str.maketrans({"\r": "\n", "\x0b": "\n", "\x01": None, "\x02": None})


class _Text(NamedTuple):
    kind: int
    text: str


class Slides97Parser:
    """Reads slide by slide: title, texts, then the speaker's notes."""

    def accepts(self, name: str, head: bytes) -> str:
        """A compound file that says that it holds slides."""
        return MEDIA_TYPE if compound_kind(name, head) == ".ppt" else ""

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """A slide is a page.

        Raises:
            BrokenDocumentError: It is damaged, or holds no slides.
            LockedDocumentError: It is encrypted.
        """
        with compound(path, "The file with slides") as container:
            user = stream_of(container, "Current User")
            data = stream_of(container, "PowerPoint Document")
            mark, edit = struct.unpack_from("<II", user, 12)
            places = _places(data, edit)
            if mark == _ENCRYPTED or any(_header(data, at)[1] == _ENCRYPTION for at in places.values()):
                raise locked("The file with slides")
            document = _document(data, places)
            outline = _outline(data, document)
            notes = _notes(data, places)
            width, height = _size(data, document)
            yield About(pages=len(outline), title=title_of(container))
            for number, (place, identity, listed) in enumerate(outline, 1):
                yield PageShape(number, width, height)
                texts = _on_slide(data, places.get(place, -1), listed)
                yield from _blocks(texts, notes.get(identity, []), number)


def _header(data: bytes, at: int) -> tuple[int, int, int]:
    """Version, type and size of the record here."""
    version, kind, size = struct.unpack_from("<HHI", data, at)
    return version & 0xF, kind, size


def _records(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int, bool]]:
    """The records between two places: type, start and end of what is in it, and whether that is records again."""
    at = start
    while at + 8 <= min(end, len(data)):
        version, kind, size = _header(data, at)
        yield kind, at + 8, min(at + 8 + size, end), version == _CONTAINER
        at += 8 + size


def _within(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """All records between two places, those inside others too, in the order of the file. Not recursive."""
    waiting = [_records(data, start, end)]
    while waiting:
        one = next(waiting[-1], None)
        if one is None:
            waiting.pop()
            continue
        kind, first, last, holds_records = one
        yield kind, first, last
        if holds_records:
            waiting.append(_records(data, first, last))


def _places(data: bytes, edit: int) -> Mapping[int, int]:
    """Where the objects stand, by their numbers, as the last edit left them."""
    found: dict[int, int] = {}
    seen: set[int] = set()
    while edit and edit not in seen:
        seen.add(edit)
        if _header(data, edit)[1] != _EDIT:
            raise BrokenDocumentError("The file with slides is damaged: its last edit cannot be found.")
        before, directory = struct.unpack_from("<II", data, edit + 16)
        _, kind, size = _header(data, directory)
        if kind != _PLACES:
            raise BrokenDocumentError("The file with slides is damaged: its objects cannot be found.")
        at, end = directory + 8, min(directory + 8 + size, len(data))
        while at + 4 <= end:
            entry = struct.unpack_from("<I", data, at)[0]
            first, count = entry & 0xFFFFF, min(entry >> 20, (end - at - 4) // 4)
            for number, place in enumerate(struct.unpack_from(f"<{count}I", data, at + 4), first):
                found.setdefault(number, place)
            at += 4 + 4 * count
        edit = before
    return found


def _document(data: bytes, places: Mapping[int, int]) -> tuple[int, int]:
    """Where what is in the document record begins and ends."""
    for at in places.values():
        if at + 8 <= len(data):
            _, kind, size = _header(data, at)
            if kind == _DOCUMENT:
                return at + 8, min(at + 8 + size, len(data))
    raise BrokenDocumentError("This file holds no slides.", key="document_not_what_it_says")


def _size(data: bytes, document: tuple[int, int]) -> tuple[float, float]:
    for kind, first, _, _ in _records(data, *document):
        if kind == _DOCUMENT_ATOM:
            width, height = struct.unpack_from("<ii", data, first)
            return max(1.0, width / _POINT), max(1.0, height / _POINT)
    return 720.0, 540.0


def _outline(data: bytes, document: tuple[int, int]) -> list[tuple[int, int, list[_Text]]]:
    """The slides in their order: the number of each as an object, its identity, and the texts that the list keeps."""
    found: list[tuple[int, int, list[_Text]]] = []
    for listed, start, end, _ in _records(data, *document):
        if listed != _SLIDE_LIST or struct.unpack_from("<H", data, start - 8)[0] >> 4:  # 1: masters, 2: notes
            continue
        kind = 0
        for record, first, last, _ in _records(data, start, end):
            if record == _SLIDE_ENTRY and len(found) < _MOST_SLIDES:
                place, _, _, identity = struct.unpack_from("<IIII", data, first)
                found.append((place, identity, []))
            elif record == _KIND:
                kind = struct.unpack_from("<I", data, first)[0]
            elif record in {_WIDE, _NARROW} and found:
                found[-1][2].append(_Text(kind, _text(data, record, first, last)))
    return found


def _notes(data: bytes, places: Mapping[int, int]) -> Mapping[int, list[_Text]]:
    """The speaker's notes, by the identities of their slides."""
    found: dict[int, list[_Text]] = {}
    for at in places.values():
        if at + 8 > len(data) or _header(data, at)[1] != _NOTES:
            continue
        start, end = at + 8, at + 8 + _header(data, at)[2]
        for kind, first, _, _ in _records(data, start, end):
            if kind == _NOTES_ATOM:
                slide = struct.unpack_from("<I", data, first)[0]
                found[slide] = [one for one in _texts(data, start, end, []) if one.text.strip("*")]
    return found


def _on_slide(data: bytes, at: int, listed: list[_Text]) -> list[_Text]:
    if at < 0 or at + 8 > len(data) or _header(data, at)[1] != _SLIDE:
        return listed
    return _texts(data, at + 8, at + 8 + _header(data, at)[2], listed)


def _texts(data: bytes, start: int, end: int, listed: list[_Text]) -> list[_Text]:
    """The texts of boxes in order; some boxes have theirs in the document's list, where those stand that none names."""
    found: list[_Text] = []
    left = dict(enumerate(listed))
    kind = 4
    for record, first, last in _within(data, start, end):
        if record == _KIND:
            kind = struct.unpack_from("<I", data, first)[0]
        elif record == _FROM_LIST:
            number = struct.unpack_from("<I", data, first)[0]
            if number in left:
                found.append(left.pop(number))
        elif record in {_WIDE, _NARROW}:
            found.append(_Text(kind, _text(data, record, first, last)))
    return [*found, *left.values()]


def _text(data: bytes, kind: int, first: int, last: int) -> str:
    piece = data[first:last]
    text = piece.decode("utf-16-le", errors="replace") if kind == _WIDE else piece.decode("latin-1")
    return clean(text.translate(_SIGNS)).strip()


def _blocks(texts: list[_Text], notes: list[_Text], number: int) -> Iterator[Block]:
    """Those of a slide, beginning with a heading, so that nothing counts under the title of the slide before."""
    texts = [one for one in texts if one.text]
    title = next((one for one in texts if one.kind in _TITLES and len(one.text) <= _LONGEST_TITLE), None)
    if texts or notes:
        yield Block("heading", " ".join(title.text.split()) if title else str(number), number, level=1)
    for one in texts:
        if one is not title:
            yield Block("paragraph", one.text, number)
    for one in notes:
        yield Block("paragraph", one.text, number)
