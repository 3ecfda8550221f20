"""What messages and titles say, as words that can be searched: kept up with every write of either.

Each message and each title has a row of `message_texts`; an FTS5 index over that table, `message_index`, is kept up by
triggers. It holds nothing that the table does not, so a damaged one is made anew.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import unicodedata
from typing import TYPE_CHECKING, Final

from sqlalchemy.exc import DatabaseError

from core.storage.statements import (
    ADD_WORDS,
    CHANGE_TITLE_WORDS,
    FORGET_WORDS,
    KEEP_WORDS,
    TITLE_AND_OWNER,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Connection, Executable

    from core.messages.message import Message

LONGEST: Final = 200_000
"""Characters of a message that can be searched; what comes after them cannot be found."""
INDEX: Final = "message_index"
"""The FTS5 table; SQLite keeps others beside it, whose names begin so."""

# Scripts that put no spaces between words, and Korean, whose words have endings: each character is a word by itself.
_UNSPACED: Final = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1100, 0x11FF), (0x1780, 0x17FF), (0x2E80, 0x2FDF), (0x3005, 0x3007)),
    *((0x3040, 0x30FF), (0x3130, 0x318F), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7AF)),
    *((0xF900, 0xFAFF), (0xFF66, 0xFF9F), (0x20000, 0x3FFFF)),
)
_WORD: Final = re.compile(r"[^\W_]{1,255}")  # what is longer counts as several: PostgreSQL takes 2,046 bytes

_TABLE: Final = """CREATE VIRTUAL TABLE message_index USING fts5(
    owner_key, title, words, content='message_texts', content_rowid='id',
    tokenize='unicode61 remove_diacritics 2', prefix='1 2')"""
_ADDED: Final = """CREATE TRIGGER message_texts_added AFTER INSERT ON message_texts BEGIN
    INSERT INTO message_index(rowid, owner_key, title, words)
    VALUES (new.id, new.owner_key, new.title, new.words);
END"""
_GONE: Final = """CREATE TRIGGER message_texts_gone AFTER DELETE ON message_texts BEGIN
    INSERT INTO message_index(message_index, rowid, owner_key, title, words)
    VALUES ('delete', old.id, old.owner_key, old.title, old.words);
END"""
_CHANGED: Final = """CREATE TRIGGER message_texts_changed AFTER UPDATE ON message_texts BEGIN
    INSERT INTO message_index(message_index, rowid, owner_key, title, words)
    VALUES ('delete', old.id, old.owner_key, old.title, old.words);
    INSERT INTO message_index(rowid, owner_key, title, words)
    VALUES (new.id, new.owner_key, new.title, new.words);
END"""
_TRIGGERS: Final = ("message_texts_added", "message_texts_gone", "message_texts_changed")
_PARTS: Final = ("data", "idx", "docsize", "config")


def is_unspaced(char: str) -> bool:
    """Whether a character is of a script that puts no spaces between words."""
    return char >= "\u0e00" and any(first <= ord(char) <= last for first, last in _UNSPACED)


class _Plain(dict[int, str]):
    """A letter as it is compared: small, without accents, always one character for one."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        base, *marks = unicodedata.normalize("NFKD", char)
        small = char.lower() if any(not _is_mark(ord(one)) for one in marks) else base.lower()
        self[code] = plain = small if len(small) == 1 else char
        return plain


class _Spaced(dict[int, str]):
    """The same, with spaces around what is a word by itself, and without accents that stand alone."""

    def __missing__(self, code: int) -> str:
        if code == 0 or 0xD800 <= code <= 0xDFFF:  # which no file can hold
            spaced = " "
        elif _is_mark(code):
            spaced = ""
        else:
            spaced = f" {_PLAIN[code]} " if is_unspaced(chr(code)) else _PLAIN[code]
        self[code] = spaced
        return spaced


def _is_mark(code: int) -> bool:
    return 0x300 <= code <= 0x36F


_PLAIN, _SPACED = _Plain(), _Spaced()


def plain(text: str) -> str:
    """The text in small letters without accents, as long as it was."""
    return text.lower() if text.isascii() else text.translate(_PLAIN)


def spaced(text: str) -> str:
    """The text as the index reads it: small letters, no accents, each Chinese character a word by itself."""
    return text.lower().replace("\0", " ") if text.isascii() else text.translate(_SPACED)


def words_in(text: str) -> list[str]:
    """The words of a text, as the index has them."""
    return _WORD.findall(spaced(text))


def owner_key(owner: str) -> str:
    """An owner as one word, whatever the name is made of."""
    return f"o{hashlib.blake2b(owner.encode(errors='surrogatepass'), digest_size=12).hexdigest()}"


def text_of(role: str, parts: Iterable[Message]) -> str:
    """What a turn says: a question's text, or a reply's own sentences, without what tools gave."""
    said = (part.get_text_content() for part in parts if part.role == role)
    return "\n\n".join(one for one in said if one.strip())[:LONGEST]


def kept_text(
    owner: str, conversation_id: str, message_id: str, role: str, parts: Sequence[Message]
) -> tuple[Executable, Mapping[str, str]]:
    """The statement, with its values, by which a message is found by what it says now."""
    rows = text_row(owner, conversation_id, message_id, role, parts)
    return (KEEP_WORDS, rows[0]) if rows else (FORGET_WORDS, {"message": message_id})


def text_row(
    owner: str, conversation_id: str, message_id: str, role: str, parts: Sequence[Message]
) -> list[dict[str, str]]:
    """The row by which a message is found; none where it has no words."""
    said = " ".join(words_in(text_of(role, parts)))
    if not said:
        return []
    row = {"message_id": message_id, "conversation_id": conversation_id, "owner_id": owner}
    return [{**row, "owner_key": owner_key(owner), "title": "", "words": said}]


def title_row(owner: str, conversation_id: str, title: str) -> list[dict[str, str | None]]:
    """The row by which a new conversation is found by its title; none where that has no words."""
    said = spaced(title)
    if not _WORD.search(said):
        return []
    row = {"message_id": None, "conversation_id": conversation_id, "owner_id": owner}
    return [{**row, "owner_key": owner_key(owner), "title": said, "words": ""}]


def keep_title(connection: Connection, conversation_id: str) -> None:
    """Let a conversation be found by the title that it has now, inside a transaction."""
    this = {"conversation": conversation_id}
    row = connection.execute(TITLE_AND_OWNER, this).first()
    if row is None:
        return
    title = " ".join(words_in(row.title))
    if connection.execute(CHANGE_TITLE_WORDS, {**this, "said": title}).rowcount or not title:
        return
    values = {"message_id": None, "conversation_id": conversation_id, "owner_id": row.owner_id}
    connection.execute(ADD_WORDS, {**values, "owner_key": owner_key(row.owner_id), "title": title, "words": ""})


def make_index_anew(connection: Connection) -> None:
    """Drop the index, and what keeps it up, and make both from the table, inside a transaction."""
    for trigger in _TRIGGERS:
        connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {trigger}")
    try:
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {INDEX}")
    except DatabaseError:  # too damaged to be dropped: it is struck from the schema
        connection.exec_driver_sql("PRAGMA writable_schema=ON")
        connection.exec_driver_sql(f"DELETE FROM sqlite_master WHERE name = '{INDEX}'")  # noqa: S608 - our own name
        connection.exec_driver_sql("PRAGMA writable_schema=RESET")
    for part in _PARTS:
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {INDEX}_{part}")
    for statement in (_TABLE, _ADDED, _GONE, _CHANGED):
        connection.exec_driver_sql(statement)
    connection.exec_driver_sql("INSERT INTO message_index(message_index) VALUES ('rebuild')")


def is_of_index(error: Exception) -> bool:
    """Whether the database failed because the index is damaged or gone: it can be made anew."""
    original: object = getattr(error, "orig", error)
    if getattr(original, "sqlite_errorcode", 0) == sqlite3.SQLITE_CORRUPT_VTAB:
        return True
    return isinstance(original, sqlite3.DatabaseError) and INDEX in str(original)
