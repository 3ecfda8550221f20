"""The tables of libraries' passages in PostgreSQL, which `core/rag/grown` reads and writes.

Passages and vectors are parted by their owner: a search reads one part, and parts can move to servers of their own.
What is looked up by words is an array of numbers: a number stands for a term in one library, so the index leads to the
passages of that library alone, however many others hold the same word.

All of them stand in a schema of their own, which only `core/rag/grown` looks into.
"""

from __future__ import annotations

from typing import Final

PARTS: Final = 64
SCHEMA: Final = "libraries"
HERE: Final = f"SET search_path = {SCHEMA}, public"
"""Makes the names of these tables known to a connection."""

_PLAIN: Final = (
    """CREATE TABLE shelves (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        owner text COLLATE "C" NOT NULL,
        library text COLLATE "C" NOT NULL,
        passages bigint NOT NULL DEFAULT 0,
        terms bigint NOT NULL DEFAULT 0,
        change bigint NOT NULL DEFAULT 0,
        UNIQUE (owner, library))""",
    """CREATE TABLE shelf_documents (
        shelf bigint NOT NULL REFERENCES shelves (id) ON DELETE CASCADE,
        id text COLLATE "C" NOT NULL,
        name text NOT NULL,
        media_type text NOT NULL,
        pages integer,
        chunks integer NOT NULL,
        status text NOT NULL,
        note text NOT NULL,
        title text NOT NULL,
        size bigint NOT NULL,
        number bigint NOT NULL,
        scanned integer NOT NULL,
        tables integer NOT NULL,
        seconds double precision NOT NULL,
        invisible integer NOT NULL,
        PRIMARY KEY (shelf, id))""",
    """CREATE TABLE shelf_pages (
        shelf bigint NOT NULL,
        document_id text COLLATE "C" NOT NULL,
        page integer NOT NULL,
        width double precision NOT NULL,
        height double precision NOT NULL,
        text_box text NOT NULL,
        PRIMARY KEY (shelf, document_id, page),
        FOREIGN KEY (shelf, document_id) REFERENCES shelf_documents ON DELETE CASCADE)""",
    """CREATE TABLE shelf_figures (
        shelf bigint NOT NULL,
        document_id text COLLATE "C" NOT NULL,
        number integer NOT NULL,
        page integer,
        label text NOT NULL,
        caption text NOT NULL,
        place text NOT NULL,
        source text NOT NULL,
        PRIMARY KEY (shelf, document_id, number),
        FOREIGN KEY (shelf, document_id) REFERENCES shelf_documents ON DELETE CASCADE)""",
    """CREATE TABLE shelf_notes (
        shelf bigint NOT NULL,
        key text COLLATE "C" NOT NULL,
        document_id text COLLATE "C" NOT NULL,
        notes text NOT NULL,
        number bigint GENERATED ALWAYS AS IDENTITY,
        PRIMARY KEY (shelf, key, document_id),
        FOREIGN KEY (shelf, document_id) REFERENCES shelf_documents ON DELETE CASCADE)""",
    """CREATE TABLE shelf_terms (
        shelf bigint NOT NULL,
        term text COLLATE "C" NOT NULL,
        passages integer NOT NULL,
        PRIMARY KEY (shelf, term))""",
    "CREATE SEQUENCE passage_ids",
    """CREATE TABLE passages (
        owner text COLLATE "C" NOT NULL,
        shelf bigint NOT NULL,
        id bigint NOT NULL,
        document_id text COLLATE "C" NOT NULL,
        position integer NOT NULL,
        page integer,
        overlap integer NOT NULL,
        len integer NOT NULL,
        keys bigint[] NOT NULL,
        repeated integer[] NOT NULL,
        times integer[] NOT NULL,
        text text NOT NULL,
        heading text NOT NULL,
        rectangles text NOT NULL,
        terms text NOT NULL,
        PRIMARY KEY (owner, shelf, id),
        UNIQUE (owner, shelf, document_id, position)) PARTITION BY HASH (owner)""",
    # What a search reads of every passage stands in the row: of the terms only those that are there more than once, and
    # how often. All others are known by the index.
    "ALTER TABLE passages ALTER repeated SET STORAGE MAIN, ALTER times SET STORAGE MAIN",
    # New passages go into the index itself: a list of those that wait would be read by every search.
    "CREATE INDEX passages_keys ON passages USING gin (keys) WITH (fastupdate = off)",
)
_VECTORS: Final = (
    """CREATE TABLE passage_vectors (
        owner text COLLATE "C" NOT NULL,
        shelf bigint NOT NULL,
        model text COLLATE "C" NOT NULL,
        passage_id bigint NOT NULL,
        document_id text COLLATE "C" NOT NULL,
        vec halfvec NOT NULL,
        PRIMARY KEY (owner, shelf, model, passage_id)) PARTITION BY HASH (owner)""",
    "ALTER TABLE passage_vectors ALTER vec SET STORAGE MAIN",
    "CREATE INDEX passage_vectors_of_document ON passage_vectors (owner, shelf, document_id)",
)


def shelf_statements(parts: int = PARTS) -> list[str]:
    """What makes the tables, but those of vectors.

    Args:
        parts: Into how many passages are parted; it stays so.
    """
    made = [*_PLAIN, *_parted("passages", parts)]
    return [f"CREATE SCHEMA {SCHEMA}", HERE, *made, "RESET search_path"]


def vector_statements(parts: int = PARTS) -> list[str]:
    """What makes the tables of vectors, where pgvector is there; for a connection that looks in `HERE`."""
    return ["CREATE EXTENSION IF NOT EXISTS vector SCHEMA public", *_VECTORS, *_parted("passage_vectors", parts)]


def half_read_statement() -> str:
    """What makes the table of pages of documents whose reading has not come to its end."""
    return f"""CREATE TABLE {SCHEMA}.shelf_half_read (
        shelf bigint NOT NULL,
        document_id text COLLATE "C" NOT NULL,
        last integer NOT NULL,
        made_by text NOT NULL,
        data bytea NOT NULL,
        PRIMARY KEY (shelf, document_id, last),
        FOREIGN KEY (shelf, document_id) REFERENCES {SCHEMA}.shelf_documents ON DELETE CASCADE)"""


def _parted(table: str, parts: int) -> list[str]:
    return [
        f"CREATE TABLE {table}_{at} PARTITION OF {table} FOR VALUES WITH (MODULUS {parts}, REMAINDER {at})"
        for at in range(parts)
    ]
