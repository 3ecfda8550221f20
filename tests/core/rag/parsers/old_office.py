"""Small files of Word 97, PowerPoint 97 and Outlook, and rich text, written as the formats have it."""

from __future__ import annotations

import struct

from tests.core.rag.parsers.compound_file import compound

_IN_TABLE, _ROW_END = b"\x16\x24\x01", b"\x17\x24\x01"
_TITLE, _OTHER = 0, 4


def word97(paragraphs: list[tuple[str, bytes]], *, narrow: bool = False, flags: int = 0, gap: int = 0) -> bytes:
    """A Word 97 document.

    Args:
        paragraphs: Each with the sign at its end, and its properties: the style's number, then changes to it.
        narrow: Whether letters are single bytes.
        flags: More of those in the header.
        gap: Characters that the list of pieces leaves out: damage.
    """
    text = "".join(words for words, _ in paragraphs)
    data = text.encode("cp1252") if narrow else text.encode("utf-16-le")
    count = len(text) if narrow else len(data) // 2
    start = 2048
    main = bytearray(start) + data
    main += bytes(-len(main) % 512)
    page = bytearray(512)
    page[511] = len(paragraphs)
    at, place = start, 500
    for number, (words, properties) in enumerate(paragraphs):
        struct.pack_into("<I", page, 4 * number, at)
        at += len(words.encode("cp1252")) if narrow else len(words.encode("utf-16-le"))
        padded = properties + bytes(1 - len(properties) % 2)
        place = (place - len(padded) - 1) & ~1
        page[place] = (len(padded) + 1) // 2
        page[place + 1 : place + 1 + len(padded)] = padded
        page[4 * (len(paragraphs) + 1) + 13 * number] = place // 2
    struct.pack_into("<I", page, 4 * len(paragraphs), at)
    where = len(main) // 512
    main += page
    bins = struct.pack("<III", start, at, where)
    piece = start * 2 | 0x40000000 if narrow else start
    pieces = struct.pack("<II", gap, count) + struct.pack("<HIH", 0, piece, 0)
    clx = b"\x01\x02\x00ab" + b"\x02" + struct.pack("<I", len(pieces)) + pieces
    struct.pack_into("<HH6xH", main, 0, 0xA5EC, 193, 0x0200 | flags)
    struct.pack_into("<I", main, 76, count)
    struct.pack_into("<II", main, 0x102, 0, len(bins))
    struct.pack_into("<II", main, 0x1A2, len(bins), len(clx))
    return compound({"WordDocument": bytes(main), "1Table": bins + clx})


def plain(text: str) -> tuple[str, bytes]:
    """A paragraph."""
    return f"{text}\r", b"\0\0"


def heading(text: str, level: int) -> tuple[str, bytes]:
    """A heading."""
    return f"{text}\r", struct.pack("<H", level)


def row(*cells: str) -> list[tuple[str, bytes]]:
    """A row of a table."""
    return [*((f"{cell}\x07", b"\0\0" + _IN_TABLE) for cell in cells), ("\x07", b"\0\0" + _IN_TABLE + _ROW_END)]


def slides97(slides: list[tuple[str, str, str]]) -> bytes:
    """Slides of PowerPoint 97: of each its title, a text on it, and what its speaker notes."""
    listed, objects = b"", list[bytes]()
    for number, (title, text, _) in enumerate(slides):
        entry = _record(0x03F3, struct.pack("<IIIII", number + 2, 0, 1, 256 + number, 0))
        listed += entry + _said(_TITLE, title)
        box = _record(0xF00D, _record(0x0F9E, struct.pack("<I", 0)), holds=True)
        other = _record(0xF00D, _said(_OTHER, text), holds=True)
        shapes = _record(0x040C, _record(0xF002, box + other, holds=True), holds=True)
        objects.append(_record(0x03EE, _record(0x03EF, bytes(24)) + shapes, holds=True))
    for number, (_, _, said) in enumerate(slides):
        about = _record(0x03F1, struct.pack("<II", 256 + number, 0))
        objects.append(_record(0x03F0, about + _record(0xF00D, _said(2, said), holds=True), holds=True))
    size = _record(0x03E9, struct.pack("<ii", 5760, 4320) + bytes(32))
    document = _record(0x03E8, size + _record(0x0FF0, listed, holds=True), holds=True)
    data, places = bytes(16), list[int]()
    for one in (document, *objects):
        places.append(len(data))
        data += one
    directory = len(data)
    data += _record(0x1772, struct.pack(f"<I{len(places)}I", len(places) << 20 | 1, *places))
    edit = len(data)
    data += _record(0x0FF5, struct.pack("<IHBBIIIII", 256, 0, 0, 3, 0, directory, 1, len(places) + 1, 0))
    user = _record(0x0FF6, struct.pack("<IIIHH", 20, 0xE391C05F, edit, 0, 0))
    return compound({"Current User": user, "PowerPoint Document": data})


def _record(kind: int, data: bytes, *, holds: bool = False) -> bytes:
    return struct.pack("<HHI", 0xF if holds else 0, kind, len(data)) + data


def _said(kind: int, text: str) -> bytes:
    words = (0x0FA8, text.encode("latin-1")) if text.isascii() else (0x0FA0, text.encode("utf-16-le"))
    return _record(0x0F9F, struct.pack("<I", kind)) + _record(*words)


def outlook(subject: str, text: str, sender: str) -> bytes:
    """A letter as Outlook saves it, to nobody, with nothing attached."""
    texts = {"0037": subject, "1000": text, "0042": sender}
    entries = b"".join(
        struct.pack("<HHIII", 0x1F, int(tag, 16), 6, 2 * len(said) + 2, 0) for tag, said in sorted(texts.items())
    )
    streams = {f"__substg1.0_{tag}001F": said.encode("utf-16-le") for tag, said in texts.items()}
    return compound({"__properties_version1.0": bytes(32) + entries, **streams})


def rich_text(text: str, around: str = "{}") -> bytes:
    """Rich text; letters beyond ASCII as the format has them."""
    units = text.encode("utf-16-le")
    codes = struct.unpack(f"<{len(units) // 2}h", units)
    words = "".join(chr(code) if 0 < code < 128 else f"\\u{code}?" for code in codes)
    return f"{{\\rtf1\\ansi\\ansicpg1252 {around.format(words)}}}".encode()
