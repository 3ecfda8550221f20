"""Server-sent events: found whatever way the bytes are cut."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from core.llm.wire.reading import EventLines

STREAM = (
    ': hello\n\ndata: {"a": "你好"}\n\nevent: message\nid: 7\ndata: one\ndata: two\r\n\r\n'
    "\n\ndata:tight\n\nretry: 5\n\ndata: [DONE]\n\n"
).encode()
EXPECTED = [' {"a": "你好"}'.encode(), b" one\n two\r", b"tight", b" [DONE]"]


def test_comments_and_other_fields_are_left_out_and_several_lines_are_one_event():
    assert EventLines().feed(STREAM) == EXPECTED


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_any_cut_gives_the_same_events(cuts):
    edges = [0, *sorted(cuts), len(STREAM)]
    lines = EventLines()
    found = [data for start, end in pairwise(edges) for data in lines.feed(STREAM[start:end])]
    assert found == EXPECTED


def test_an_event_is_given_as_soon_as_its_blank_line_is_there():
    lines = EventLines()
    assert lines.feed(b"data: a\n") == []
    assert lines.feed(b"\n") == [b" a"]


def test_the_end_completes_an_event_whose_blank_line_is_missing():
    lines = EventLines()
    assert lines.feed(b"data: a") == []
    assert lines.close() == [b" a"]
    assert EventLines().close() == []
