"""Bytes of a text file become text: the encoding is found out, old Chinese ones too."""

from __future__ import annotations

import codecs

from core.rag.parsers.base import clean

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is how this one begins
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE = 64 * 1024
_CONTROLS = frozenset(range(32)) - {9, 10, 12, 13, 27}


def looks_like_text(head: bytes) -> bool:
    """Whether the first bytes of a file can be text in any encoding."""
    if encoding_mark(head) or wide_encoding(head):
        return True
    return bool(head) and 0 not in head and sum(byte in _CONTROLS for byte in head) <= len(head) // 100


def encoding_mark(data: bytes) -> str:
    """The encoding that a byte order mark names, or ""."""
    return next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "")


def wide_encoding(data: bytes) -> str:
    """UTF-16 without a mark shows by the zeros in every second byte of Latin text."""
    sample = data[: _SAMPLE & ~1]
    if len(sample) < 4:
        return ""
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros, others = sample[first::2].count(0), sample[1 - first :: 2].count(0)
        if zeros > len(sample) // 6 and others == 0:
            return encoding
    return ""


def decode(data: bytes) -> str:
    """The text of a file, whatever its encoding; bytes that fit nowhere become U+FFFD."""
    named = encoding_mark(data) or wide_encoding(data)
    if named:
        return clean(data.decode(named, errors="replace"))
    try:
        return clean(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        # A few bad bytes in a long UTF-8 text are damage, not another encoding.
        valid = data[: error.start].decode("utf-8")
        if sum(letter > "\x7f" for letter in valid) >= 64:
            return clean(data.decode("utf-8", errors="replace"))
    return clean(data.decode(_old_encoding(data[:_SAMPLE]), errors="replace"))


def _old_encoding(sample: bytes) -> str:
    """The encoding of a text older than Unicode.

    Chinese is decided by which table of *everyday* characters the byte pairs fall into: short texts, such as a poem,
    are too little for the statistics of a general detector.
    """
    simplified = _everyday_share(sample, "gb18030", 0xB0A1, 0xD7F9)
    traditional = _everyday_share(sample, "big5", 0xA440, 0xC67E)
    if max(simplified, traditional) >= 0.7:
        return "gb18030" if simplified >= traditional else "big5hkscs"
    from charset_normalizer import from_bytes

    best = from_bytes(sample).best()
    return best.encoding if best else "cp1252"


def _everyday_share(sample: bytes, encoding: str, first: int, last: int) -> float:
    """How many of the two-byte characters are everyday ones; 0 if the bytes are not this encoding."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return 0.0
    pairs = everyday = 0
    for letter in text:
        code = letter.encode(encoding, errors="replace")
        if len(code) == 2:
            pairs += 1
            value = code[0] << 8 | code[1]
            # Punctuation counts as everyday too: both tables keep it before the characters.
            everyday += (first <= value <= last and code[1] >= 0x40) or letter in "，。、；：？！「」『』（）《》“”"
    wide = sum(len(letter.encode("utf-8")) > 1 for letter in text)
    return everyday / wide if wide else 0.0
