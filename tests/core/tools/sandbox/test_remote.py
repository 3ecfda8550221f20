"""What a sandbox on another machine says, however wrong, costs a call at most, and never the Parlour that asked it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from core.errors import ToolError
from core.tools.sandbox import remote, wire
from core.tools.sandbox.remote import RemoteKernels

pytestmark = pytest.mark.anyio

KEY = b"k" * 32
BOOT = "0123456789abcdef" * 2
DEEP = b'{"told":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
Answering = Callable[[str, wire.Manifest], tuple[int, bytes]]


def proved(nonce: str, *said: Any) -> bytes:
    """An answer of these lines, as a sandbox that knows the key gives it."""
    raw = b"".join(map(wire.line, said))
    return raw + wire.line({"proof": wire.answer_proof(KEY, nonce, sha256(raw).hexdigest())})


class Sandbox:
    """Reads each question whole, and answers it as it is told to.

    Args:
        answering: Takes a nonce and a manifest; gives a status and a body.
    """

    def __init__(self, answering: Answering) -> None:
        self.answering = answering
        self.asked = 0
        self.url = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one question, and close."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            words = next(line for line in head.decode().splitlines() if line.startswith("authorization")).split()
            body = b""
            while size := int(await reader.readline(), 16):
                body += await reader.readexactly(size)
                await reader.readline()
            manifest = wire.Manifest.model_validate_json(body[4 : 4 + int.from_bytes(body[:4], "big")])
            self.asked += 1
            status, said = self.answering(words[-2], manifest)
            writer.write(b"HTTP/1.1 %d x\r\nconnection: close\r\n\r\n" % status + said)
            await writer.drain()
        except (asyncio.IncompleteReadError, ValueError):
            pass  # whoever asked broke off
        finally:
            writer.close()


@asynccontextmanager
async def asked_by(answering: Answering, **more: Any) -> AsyncIterator[tuple[RemoteKernels, Sandbox]]:
    sandbox = Sandbox(answering)
    server = await asyncio.start_server(sandbox.answer, "127.0.0.1", 0)
    sandbox.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    there = RemoteKernels([sandbox.url], KEY, **more)
    try:
        yield there, sandbox
    finally:
        await there.aclose()
        server.close()


def done(nonce: str, _: wire.Manifest) -> tuple[int, bytes]:
    return 200, proved(nonce, {"done": {"text": "2"}})


async def away(there: RemoteKernels, **more: Any) -> None:
    with pytest.raises(ToolError) as error:
        await there.run("a\n1", "1 + 1", **more)
    assert error.value.words_key == "sandbox_away"


@pytest.mark.parametrize("boot", [b"\xff\xfeboot", b"abc", b"", BOOT.encode() + b"\r\nx: y", BOOT.upper().encode()])
async def test_what_is_no_start_of_a_sandbox_is_never_sent_back_and_the_next_call_is_answered(boot: bytes) -> None:
    async with asked_by(lambda *_: (409, boot)) as (there, sandbox):
        await away(there)
        assert sandbox.asked == 1
        sandbox.answering = done
        assert (await there.run("a\n1", "1 + 1")).text == "2"


async def test_a_start_that_a_sandbox_tells_is_what_the_next_question_is_for() -> None:
    def once(nonce: str, manifest: wire.Manifest) -> tuple[int, bytes]:
        return (409, BOOT.encode()) if sandbox.asked == 1 else done(nonce, manifest)

    async with asked_by(once) as (there, sandbox):
        assert (await there.run("a\n1", "1 + 1")).text == "2"
        assert there._boots == {sandbox.url: BOOT}  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    "lines",
    [
        [{"lacks": 5}],
        [{"lacks": [[]]}],
        [{"error": "x"}],
        [{"error": {"message": []}}],
        [{"told": []}],
        [{"done": {"text": {}}}],
        [{"done": []}],
    ],
)
async def test_an_answer_of_other_kinds_than_it_should_have_is_a_sandbox_that_was_lost(lines: list[Any]) -> None:
    async with asked_by(lambda nonce, _: (200, proved(nonce, *lines))) as (there, _):
        result = await there.run("a\n1", "1", progress=lambda *_: None)
        assert result.lost
        assert result.text.startswith("The sandbox was lost while this ran")


async def test_an_answer_as_deep_as_no_answer_is_costs_a_call_and_not_the_look_for_sandboxes() -> None:
    changed = asyncio.Event()
    async with asked_by(lambda *_: (200, DEEP), changed=changed.set) as (there, _):
        assert (await there.run("a\n1", "1")).lost
        there.start()
        await asyncio.wait_for(changed.wait(), 120)
        assert there.choice is not None
        assert there.choice.reason == "no sandbox answers (127.0.0.1)"


@pytest.mark.parametrize("said", [{"driver": 5}, {"driver": "x", "cases": {"C1": []}}, {"driver": "x", "cases": "C1"}])
async def test_a_sandbox_that_says_its_state_in_other_kinds_is_no_sandbox(said: Any) -> None:
    changed = asyncio.Event()
    async with asked_by(lambda nonce, _: (200, proved(nonce, said)), changed=changed.set) as (there, _):
        there.start()
        await asyncio.wait_for(changed.wait(), 120)
        assert there.choice is not None
        assert there.choice.reason == "no sandbox answers (127.0.0.1)"


async def test_whatever_goes_wrong_with_a_look_at_the_sandboxes_the_next_one_is_taken_and_it_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(remote, "_LOOK_AGAIN", 0.0)
    changed, states = asyncio.Event(), [0]

    async def state(*_: Any) -> None:
        states[0] += 1
        if states[0] < 4:
            raise ZeroDivisionError

    async with asked_by(done, changed=changed.set) as (there, _):
        monkeypatch.setattr(there, "_state", state)
        there.start()
        await asyncio.wait_for(changed.wait(), 120)
    assert caplog.text.count("The sandboxes cannot be asked") == 1


async def test_a_sandbox_that_only_says_that_it_is_there_is_lost_when_a_cell_can_take_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote, "_AROUND", 0.2)
    over = asyncio.Event()

    async def beats(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
        while not writer.is_closing():
            writer.write(b'{"alive":true}\n' * 10)
            try:
                await writer.drain()
            except ConnectionError:
                break
            await asyncio.sleep(0)
        over.set()

    server = await asyncio.start_server(beats, "127.0.0.1", 0)
    there = RemoteKernels([f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"], KEY)
    try:
        result = await asyncio.wait_for(there.run("a\n1", "1", timeout=0.1), 60)
        assert result.lost
        assert result.text.startswith("The sandbox was lost while this ran")
        await asyncio.wait_for(over.wait(), 60)
    finally:
        await there.aclose()
        server.close()


@pytest.mark.parametrize("change", ["gone", "shorter", "longer", "other"])
async def test_a_file_that_changes_while_it_is_sent_is_named_and_no_sandbox_is_blamed(
    change: str, tmp_path: Path
) -> None:
    (path := tmp_path / "kept").write_bytes(b"12345")

    def lacking(nonce: str, manifest: wire.Manifest) -> tuple[int, bytes]:
        if change == "gone":
            path.unlink()
        else:
            path.write_bytes({"shorter": b"123", "longer": b"12345678", "other": b"54321"}[change])
        return 200, proved(nonce, {"lacks": [manifest.files[0].digest]})

    async with asked_by(lacking) as (there, sandbox):
        with pytest.raises(ToolError, match=r"prices\.csv") as error:
            await there.run("a\n1", "1", files={"prices.csv": path})
        assert (error.value.words_key, sandbox.asked) == ("sandbox_file_changed", 1)
        path.write_bytes(b"as it is now")
        sandbox.answering = done
        assert (await there.run("a\n1", "1", files={"prices.csv": path})).text == "2"


async def test_a_refusal_is_logged_once_until_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    async def refused(there: RemoteKernels) -> int:
        with caplog.at_level(logging.WARNING), pytest.raises(ToolError):
            await there.run("a\n1", "1")
        return caplog.text.count("refuses this Parlour")

    async with asked_by(lambda *_: (401, b"")) as (there, sandbox):
        assert [await refused(there) for _ in range(3)] == [1, 1, 1]
        sandbox.answering = done
        await there.run("a\n1", "1")
        sandbox.answering = lambda *_: (401, b"")
        assert [await refused(there) for _ in range(2)] == [2, 2]
