"""A query can read the tables that are named to it, and nothing else: whatever is written, nothing changes."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import BadArgumentsError, ToolError
from core.rag.document import table
from core.rag.tables.query import Named, ask
from core.rag.tables.store import write

SECRET = "the heron hides 17 fish"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Named]]:
    """A table that may be asked, beside another document's that may not."""
    folder = tmp_path_factory.mktemp("tables")
    rows = [("Item", "Price"), *((f"item {at}", str(at)) for at in range(200))]
    (open_,) = write(folder / "open.sqlite", [table(rows)], sheet=False)
    write(folder / "secret.sqlite", [table([("Secret", "n"), (SECRET, "1")])], sheet=False)
    with sqlite3.connect(folder / "other.sqlite") as db:
        db.execute("CREATE TABLE secret AS SELECT ? AS words", (SECRET,))
    db.close()
    yield [Named("prices", "prices.xlsx", "1", folder / "open.sqlite", open_)]
    assert ask([Named("prices", "prices.xlsx", "1", folder / "open.sqlite", open_)], "SELECT count(*) FROM prices").rows


def contents(tables: list[Named]) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(tables[0].path.parent.iterdir())}


REFUSED = [
    "INSERT INTO prices VALUES (1)",
    "UPDATE prices SET Price = 0",
    "DELETE FROM prices",
    "DROP VIEW prices",
    "CREATE TABLE x (a)",
    "CREATE TEMP TABLE x AS SELECT 1",
    "ATTACH 'other.sqlite' AS o",
    "DETACH d0",
    "VACUUM INTO 'x.sqlite'",
    "PRAGMA query_only = 0",
    "PRAGMA database_list",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM pragma_table_info('prices')",
    "SELECT sql FROM sqlite_master",
    "SELECT * FROM d0.sqlite_schema",
    "SELECT * FROM d0.meta",
    "SELECT load_extension('x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('x', 'y')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT zeroblob(900000000) FROM prices",
    "SELECT randomblob(10) FROM prices",
    "EXPLAIN SELECT * FROM prices",
    "SELECT * FROM sqlite_dbpage",
    "SELECT 1; DELETE FROM prices",
    "BEGIN",
    "COMMIT",
    "ANALYZE",
    "REINDEX",
    "CREATE VIRTUAL TABLE x USING fts5(a)",
    "WITH a AS (SELECT 1) DELETE FROM prices",
    "SELECT * FROM generate_series(1, 10)",
    "",
    "-- nothing",
]


@pytest.mark.parametrize("query", REFUSED)
def test_whatever_is_no_select_over_the_tables_is_refused(tables: list[Named], query: str) -> None:
    before = contents(tables)
    with pytest.raises(ToolError):
        ask(tables, query)
    assert contents(tables) == before


_WORDS = (
    "SELECT FROM WHERE GROUP BY ORDER LIMIT UNION ALL WITH RECURSIVE AS INSERT INTO UPDATE SET DELETE DROP ATTACH "
    "DETACH PRAGMA VACUUM CREATE TEMP TABLE VIEW TRIGGER ON BEGIN END; REPLACE ALTER prices Item Price _row _total d0 "
    "d0.t1 t1 d0.meta main temp sqlite_master sqlite_temp_master pragma_database_list 'other.sqlite' secret words ( ) "
    ", * ; = 1 0 -1 'x' count( sum( load_extension( writefile( readfile( EXPLAIN writable_schema query_only RETURNING "
    "VALUES"
)
_PIECES = st.sampled_from(_WORDS.split())


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_PIECES, max_size=14).map(" ".join) | st.text(max_size=80))
def test_no_words_in_any_order_change_a_file_or_read_another(tables: list[Named], query: str) -> None:
    before = contents(tables)
    try:
        answer = ask(tables, query, seconds=0.5)
    except ToolError:
        answer = None
    assert contents(tables) == before
    assert answer is None or SECRET not in repr(answer)


@pytest.mark.parametrize(
    "query",
    [
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c, prices",
        "SELECT count(*) FROM prices a, prices b, prices c, prices d, prices e",
        "SELECT sum(length(replace(printf('%.*c', 900000, 'x'), 'x', 'yy'))) FROM prices a, prices b",
    ],
)
def test_a_query_without_end_ends_in_time(tables: list[Named], query: str) -> None:
    began = time.monotonic()
    with pytest.raises(ToolError):
        ask(tables, query, seconds=0.3)
    assert time.monotonic() - began < 5


def test_a_value_too_large_to_be_held_is_refused(tables: list[Named]) -> None:
    with pytest.raises(BadArgumentsError, match="too big"):
        ask(tables, "SELECT replace(replace(printf('%.*c', 1000, 'x'), 'x', printf('%.*c', 1000, 'y')), 'y', 'zz')")


def test_a_table_that_is_not_named_among_those_given_is_not_there(tables: list[Named]) -> None:
    with pytest.raises(BadArgumentsError, match="prices"):
        ask(tables, "SELECT * FROM secret")
