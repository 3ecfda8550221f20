"""Lines, floods, names and logs of servers."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.mcp.journal import ServerLog, many_lines, one_line
from core.mcp.session import Backoff
from core.mcp.stdio import Lines, Meter, TooLong
from tests.texts.measuring import is_in_time


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 30))
def test_lines_are_the_same_however_they_were_cut_into_pieces(pieces: list[bytes], most: int):
    lines = Lines(most)
    found = [line for piece in pieces for line in lines.feed(piece)]
    whole = b"".join(pieces).split(b"\n")
    expected = [line for line in whole[:-1] if len(line) <= most]
    assert [line.removesuffix(b"\r") for line in expected] == [line for line in found if isinstance(line, bytes)]
    assert sum(isinstance(line, TooLong) for line in found) == sum(len(line) > most for line in whole)
    assert all(len(line.head) <= 256 for line in found if isinstance(line, TooLong))


def test_a_long_line_in_small_pieces_takes_time_that_grows_with_it_alone():
    lines, piece = Lines(64 * 1024 * 1024), b"x" * 4096
    before = time.process_time()
    for _ in range(8192):
        assert list(lines.feed(piece)) == []
    (line,) = lines.feed(b"\n")
    assert isinstance(line, bytes)
    assert len(line) == 32 * 1024 * 1024
    assert is_in_time(time.process_time() - before, 1)


def test_a_meter_lets_a_heap_through_and_then_so_many_a_second():
    now = 0.0
    meter = Meter(10, 3, lambda: now)
    assert [meter.take() for _ in range(4)] == [True, True, True, False]
    now = 0.15
    assert [meter.take() for _ in range(2)] == [True, False]
    now = 100
    assert [meter.take() for _ in range(4)] == [True, True, True, False]


def test_a_server_that_dies_is_started_at_once_and_then_less_and_less():
    now = 0.0
    backoff = Backoff(lambda: now)
    waits: list[float] = []
    for _ in range(9):
        backoff.call_started()
        backoff.failed()
        waits.append(backoff.wait)
    assert waits == [0, 1, 2, 4, 8, 16, 32, 60, 60]
    backoff.call_started()
    now += 61
    backoff.failed()
    assert backoff.wait == 0


@given(st.text(), st.integers(2, 50))
def test_shown_names_are_one_printable_line_of_bounded_length(text: str, most: int):
    shown = one_line(text, most)
    assert len(shown) <= most
    assert not set(shown) & set("\n\r\x1b\x00\x7f\u202e\u2028")


def test_hidden_marks_are_written_out_and_colours_are_gone():
    assert one_line("a\x1b[31mb\x1b]0;title\x07c\u202ed\x00") == "abc\\u202ed\\x00"
    assert many_lines("one\r\ntwo\x08\n三") == "one\ntwo\\x08\n三"
    assert many_lines("invisible \U000e0041") == "invisible \\U000e0041"


@pytest.mark.parametrize(
    "line",
    [
        "using key sk-proj-abcdefghijklmnop1234",
        "Authorization: Bearer private-private",
        "API_KEY=private-private",
        '{"password": "private-private"}',
        "connecting to postgres://user:private-private@host/db",
        "token is private-private",
        "the value my-own-private-value",
        "eyJhbGciOiJIUzI1NiJ9.eyJwcml2YXRlIjoxfQ.c2ln",
        "ghp_privateprivateprivate1234",
    ],
)
def test_a_log_repeats_no_key(line: str):
    journal = ServerLog(["my-own-private-value", "Bearer private-private"])
    journal.write(line)
    (kept,) = journal.lines
    assert "private" not in kept.text
    assert "abcdefghijklmnop" not in kept.text
    assert "eyJ" not in kept.text


def test_a_log_keeps_plain_lines_as_they_are_and_not_too_many():
    journal = ServerLog(["1", "on"])
    journal.note("a remark of ours")
    for number in range(1000):
        journal.write(f"line {number} on port 8080\n")
    journal.write("   \n")
    assert len(journal.lines) == 201
    assert journal.lines[0].text == "a remark of ours"
    assert journal.last == "line 999 on port 8080"
