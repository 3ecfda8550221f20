"""Chunks of an answer that are read together are handed on as one, and nothing else of it is changed."""

from __future__ import annotations

from typing import Any

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.llm.backends.framing import Framing

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def framed(*words: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in words) + end


def heard(pieces: list[bytes]) -> tuple[list[bytes], str]:
    """What a reader of HTTP makes of these bytes: the body's pieces, and how it ended."""
    reader = h11.Connection(our_role=h11.CLIENT)
    reader.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    reader.send(h11.EndOfMessage())
    found: list[bytes] = []
    for piece in [*pieces, b""]:
        try:
            reader.receive_data(piece)
            while True:
                event: Any = reader.next_event()
                if isinstance(event, h11.Data):
                    found.append(bytes(event.data))
                elif isinstance(event, h11.EndOfMessage):
                    return found, "whole"
                elif event is h11.NEED_DATA:
                    break
        except h11.RemoteProtocolError:
            return found, "refused"
    return found, "open"


def cut(raw: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(raw) + 1) for place in places} | {len(raw)})
    pieces = [raw[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    return [piece for piece in pieces if piece]


def passed(pieces: list[bytes]) -> list[bytes]:
    framing = Framing()
    return [one for one in map(framing.joined, pieces) if one]


WORDS = st.lists(st.one_of(st.binary(min_size=1, max_size=40), st.sampled_from([b"\r\n", b"0\r\n\r\n", b"5\r\n"])))
PLACES = st.lists(st.integers(0, 10_000), max_size=12)
ENDS = st.sampled_from(
    [
        *(b"0\r\n\r\n", b"0;last\r\nX-Took: 1\r\n\r\n", b"", b"3\r\nab", b"zz\r\n", b"2\r\nabXY", b"\r\n"),
        *(b"2\r\nab0\r\n\r\n", b"2\r\nab\r5\r\nhello\r\n0\r\n\r\n", b"2 ;a\r\nab\r\n0\r\n\r\n"),
    ]
)
HEADS = st.sampled_from(
    [
        HEAD,
        b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD,
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"no HTTP at all\r\n\r\n",
    ]
)


@given(HEADS, WORDS, ENDS, PLACES)
def test_whoever_reads_hears_the_same_body_and_end_wherever_it_is_cut(
    head: bytes, words: list[bytes], end: bytes, places: list[int]
) -> None:
    pieces = cut(head + framed(*words, end=end), places)
    plain, joined = heard(pieces), heard(passed(pieces))
    assert b"".join(joined[0]) == b"".join(plain[0])
    assert joined[1] == plain[1]


def test_the_chunks_of_one_piece_come_as_one_and_a_part_of_a_chunk_comes_at_once() -> None:
    framing = Framing()
    assert framing.joined(HEAD + framed(b"a", end=b"")) == HEAD + framed(b"a", end=b"")
    assert framing.joined(framed(b"one ", b"two ", b"three ", end=b"")) == framed(b"one two three ", end=b"")
    assert framing.joined(b"A\r\nsome") == framed(b"some", end=b"")
    assert framing.joined(b" words\r\n3\r") == framed(b" words", end=b"")
    assert framing.joined(b"\n") == b""
    assert framing.joined(b"and") == b"3\r\nand"  # the end of its line has not come yet
    assert framing.joined(b"\r\n4\r\nmore\r") == b"\r\n4\r\nmore\r"
    assert framing.joined(b"\n3\r") == b"\n"
    assert framing.joined(b"\nend\r\n0\r\n\r\n") == framed(b"end")


@pytest.mark.parametrize("first", [HEAD + framed(b"a", b"b"), b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"])
def test_the_next_answer_of_a_connection_has_a_head_of_its_own(first: bytes) -> None:
    framing = Framing()
    framing.joined(first)
    framing.asked()
    assert framing.joined(HEAD) == HEAD
    assert framing.joined(framed(b"a", b"b")) == framed(b"ab")


@pytest.mark.parametrize("after", [b"0\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n"])
def test_a_chunk_whose_line_does_not_end_is_refused_also_where_its_words_came_before(after: bytes) -> None:
    assert heard(passed([HEAD + b"2\r\nab", after])) == ([b"ab"], "refused")


def test_a_chunk_whose_size_makes_no_sense_is_left_to_whoever_reads() -> None:
    framing = Framing()
    framing.joined(HEAD)
    senseless = b"f" * 300
    assert framing.joined(senseless) == senseless
