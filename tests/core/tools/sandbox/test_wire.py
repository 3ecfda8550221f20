"""What Parlours and sandboxes say to each other is proved on both sides, holds once, and is not trusted further."""

from __future__ import annotations

from collections.abc import AsyncIterator
from hashlib import sha256

import pytest

from core.tools.sandbox import wire
from core.tools.sandbox.results import CodeResult, Made

pytestmark = pytest.mark.anyio

KEY, OTHER = b"k" * 32, b"o" * 32
RAW = b'{"code":"1"}'


def refused(keeper: wire.Doorkeeper, header: str, path: str = wire.CELL, raw: bytes = RAW) -> str:
    with pytest.raises(wire.RefusedError) as refusal:
        keeper.check(header, path, raw)
    return refusal.value.why


def test_a_question_is_answered_once_for_what_it_says_and_where_it_was_meant_to_go() -> None:
    keeper = wire.Doorkeeper(KEY)
    header, nonce = wire.asking(KEY, wire.CELL, keeper.boot, RAW)
    assert refused(keeper, header, raw=b'{"code":"2"}') == "secret"
    assert refused(keeper, header, path=wire.FORGET) == "secret"
    assert refused(wire.Doorkeeper(KEY), header) == "boot", "another sandbox, or this one after a new start"
    assert keeper.check(header, wire.CELL, RAW) == nonce
    assert refused(keeper, header) == "again"


def test_who_does_not_know_the_key_or_says_nothing_is_refused() -> None:
    keeper = wire.Doorkeeper(KEY)
    assert refused(keeper, wire.asking(OTHER, wire.CELL, keeper.boot, RAW)[0]) == "secret"
    assert refused(keeper, "") == "secret"
    assert refused(keeper, f"{wire.SCHEME} {keeper.boot} 1 2 é") == "secret"


def test_clocks_may_differ_by_ten_minutes_and_old_questions_are_forgotten_only_when_they_are_refused_anyway() -> None:
    now = [0.0]
    keeper = wire.Doorkeeper(KEY, lambda: now[0])
    header, _ = wire.asking(KEY, wire.CELL, keeper.boot, RAW)
    asked = float(header.split(" ")[2])
    for apart in (-601, 601):
        now[0] = asked + apart
        assert refused(keeper, header) == "clock"
    now[0] = asked - 599
    keeper.check(header, wire.CELL, RAW)
    for later in (0, 599):
        now[0] = asked + later
        assert refused(keeper, header) == "again"
    now[0] = asked + 602
    assert refused(keeper, header) == "clock"


def test_what_stands_for_a_conversation_cannot_be_guessed_and_is_nobody_elses() -> None:
    marks = {wire.mark_of(key, kind, "alice\n1") for key in (KEY, OTHER) for kind in ("conversation", "owner")}
    assert len(marks) == 4
    assert wire.mark_of(KEY, "conversation", "alice\n1") in marks


RESULT = CodeResult(
    "text\n文本",
    (Made("picture-1.png", "image/png", b"\x89PNG" + bytes(300_000)),),
    (Made("../a/表.csv", "text/html", b"a,b\n"), Made("none", "x", b"")),
    failed=True,
    fresh=True,
)


def said(result: CodeResult, key: bytes, nonce: str) -> bytes:
    raw = b"".join(wire.told(result))
    return raw + wire.line({"proof": wire.answer_proof(key, nonce, sha256(raw).hexdigest())})


async def read(raw: bytes, nonce: str = "n", size: int = 1000) -> CodeResult:
    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(raw), size):
            yield raw[start : start + size]

    answer = wire.Answer(pieces(), KEY, nonce)
    result = await answer.result((await answer.next())["done"])
    await answer.finish()
    return result


async def test_a_result_comes_over_whole_and_names_and_kinds_are_plain_whatever_a_sandbox_says() -> None:
    result = await read(said(RESULT, KEY, "n"))
    assert (result.text, result.pictures, result.failed, result.fresh, result.lost) == (
        RESULT.text,
        RESULT.pictures,
        True,
        True,
        False,
    )
    assert [(one.name, one.media_type, one.data) for one in result.files] == [
        ("表.csv", "text/csv", b"a,b\n"),
        ("none", "application/octet-stream", b""),
    ]


@pytest.mark.parametrize(
    "changed",
    [
        said(RESULT, OTHER, "n"),
        said(RESULT, KEY, "another"),
        said(RESULT, KEY, "n").replace(b"text", b"next", 1),
        said(RESULT, KEY, "n").replace(b"a,b", b"a,c", 1),
        said(RESULT, KEY, "n")[:-40],
        said(RESULT, KEY, "n")[:1000],
        b'{"done":{"files":[["a","b",-1]]}}\n',
        b'{"done":{"files":[["a","b",999999999999]]}}\n',
        b"[]\n",
        b"{\n",
        b"",
    ],
)
async def test_an_answer_that_was_changed_cut_short_or_is_none_is_not_believed(changed: bytes) -> None:
    with pytest.raises(wire.UnreadableError):
        await read(changed)
