"""Answers Parlours that want code to be run: one request for each cell, whose answer grows while it runs."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError
from starlette.datastructures import Headers

from core.errors import ToolError
from core.observing import count
from core.tools.sandbox import wire
from webui.middleware.answers import answer, refuse
from webui.sandbox_role.given import GivenHere, WrongFileError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Receive, Scope, Send

    from core.tools.sandbox.kernels import Kernels
    from core.tools.sandbox.results import CodeResult

_LOG = logging.getLogger(__name__)
_TOLD: Final = 0.1  # seconds between two lines of what a cell prints
_WAITING: Final = 16  # cells beyond one for each kernel
_UNPROVED: Final = 16  # questions that are read, and prove nothing yet; each may hold a manifest's bytes
_UNPROVED_WAITING: Final = 64  # and of which nothing is read yet
_UNPROVED_SECONDS: Final = 10.0
_COMPLAIN: Final = 60.0
_TIDY: Final = 30.0
_CROWD: Final = "Too many ask this sandbox at once."
_TOO_LARGE: Final = "This is more than a sandbox takes at once."
_WHY: Final = {
    "secret": "does not prove that it knows the secret: PARLOUR_SANDBOX_SECRET (or PARLOUR_SECRET) of that Parlour is "
    "another one than here",
    "clock": "comes from a machine whose clock is more than ten minutes away from the one here",
    "again": "was made before, or too many are made",
}


class _GoneError(Exception):
    """Whoever asked has left, or said less than it announced."""


class _NotTakenError(Exception):
    """A question is not taken in.

    Args:
        status: What is answered, with a sentence.
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Owners:
    """How many kernels each owner may have, as their Parlour said last; an owner is but a mark here."""

    def __init__(self) -> None:
        self._most: dict[str, int] = {}

    def note(self, mark: str, most: int) -> None:
        """Take in what was said."""
        self._most.pop(mark, None)
        self._most[mark] = most
        while len(self._most) > 10_000:
            del self._most[next(iter(self._most))]

    def most_of(self, mark: str) -> int:
        """How many an owner may have."""
        return self._most.get(mark, 1)


class SandboxApp:
    """Everything that a sandbox serves beside its health.

    Args:
        kernels: Where code runs.
        owners: What `kernels` asks for how many an owner may have.
        given: Where files are kept that cells find.
        key: What Parlours prove themselves by.
        most: How many kernels there may be.
    """

    def __init__(self, kernels: Kernels, owners: Owners, given: GivenHere, key: bytes, most: int) -> None:
        self._kernels, self._owners, self._given, self._key = kernels, owners, given, key
        self._keeper = wire.Doorkeeper(key)
        self._reading, self._unproved = asyncio.Semaphore(_UNPROVED), 0
        self._room = most + _WAITING
        self._complained = -_COMPLAIN

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one question."""
        path = scope.get("path", "")
        if scope["type"] != "http" or scope["method"] != "POST" or path not in {wire.CELL, wire.FORGET, wire.STATE}:
            if scope["type"] == "http":
                await refuse(scope, send, 404, "refused.sandbox")
            return
        body = _Body(receive)
        try:
            raw = await self._manifest(body)
            nonce = self._keeper.check(Headers(scope=scope).get("authorization", ""), path, raw)
            manifest = wire.Manifest.model_validate_json(raw)
            said = _Said(send, self._key, nonce)
            match path:
                case wire.CELL if manifest.key is not None:
                    await self._cell(manifest, body, said)
                case wire.FORGET if manifest.key is not None:
                    await self._kernels.forget(manifest.key)
                    await self._given.forget(manifest.key)
                    await said.only({"forgotten": True})
                case _:
                    choice = await self._kernels.chosen()
                    cases = choice.verdicts[-1].cases if choice.driver else {}
                    await said.only({"driver": choice.driver, "cases": cases})
        except wire.RefusedError as refused:
            await self._refuse(send, refused.why)
        except _NotTakenError as error:
            await answer(send, error.status, str(error))
        except (ValidationError, WrongFileError, OSError) as error:
            _LOG.warning("A question cannot be answered: %s", error if isinstance(error, OSError) else type(error))
            await answer(send, 400, "This cannot be read.")
        except _GoneError:  # where it is only that less was said than announced, it is told
            await answer(send, 400, "This cannot be read.")

    async def tidy(self) -> None:
        """Delete the files of ended kernels, from time to time, until it is cancelled."""
        while True:
            await asyncio.sleep(_TIDY)
            with suppress(OSError):
                await self._given.tidy(self._kernels.keys)

    async def _manifest(self, body: _Body) -> bytes:
        """What is asked, by whoever. Raises _GoneError, _NotTakenError."""
        if self._unproved >= _UNPROVED + _UNPROVED_WAITING:
            raise _NotTakenError(503, _CROWD)
        self._unproved += 1
        try:
            try:
                async with asyncio.timeout(_UNPROVED_SECONDS):
                    await self._reading.acquire()
            except TimeoutError:
                raise _NotTakenError(503, _CROWD) from None
            try:
                async with asyncio.timeout(_UNPROVED_SECONDS):
                    return await body.manifest()
            except TimeoutError:
                raise _NotTakenError(408, "This did not come in time.") from None
            finally:
                self._reading.release()
        finally:
            self._unproved -= 1

    async def _refuse(self, send: Send, why: str) -> None:
        if why == "boot":  # it proves nothing yet: with this it can
            await answer(send, 409, self._keeper.boot)
            return
        if time.monotonic() - self._complained >= _COMPLAIN:
            self._complained = time.monotonic()
            _LOG.warning("A request to run code here is refused: it %s.", _WHY[why])
        await answer(send, 401, "This sandbox does not know you.")

    async def _cell(self, manifest: wire.Manifest, body: _Body, said: _Said) -> None:
        """Take in the files of a cell and run it. Raises OSError and what goes wrong with what is read."""
        if not self._room:
            await answer(said.send, 429, "All interpreters are busy.")
            return
        key, sizes = str(manifest.key), manifest.sizes
        if sum(sizes.values()) > wire.LARGEST_FILES or not set(manifest.sends) <= sizes.keys():
            raise _NotTakenError(413, _TOO_LARGE)
        self._room -= 1
        try:
            with self._given.used(key, sizes.keys()):
                for digest in manifest.sends:
                    await self._given.take(key, digest, body.pieces(sizes[digest]))
                if lacks := self._given.lacking(key, manifest.files):
                    await said.only({"lacks": lacks})
                else:
                    await self._run(manifest, body, said)
        finally:
            self._room += 1

    async def _run(self, manifest: wire.Manifest, body: _Body, said: _Said) -> None:
        """Run a cell and tell what comes of it; where nobody listens any more, it is interrupted."""
        key, owner = str(manifest.key), str(manifest.owner)
        self._owners.note(owner, manifest.most)
        files = {one.name: self._given.path(key, one.digest) for one in manifest.files}
        news = _News()
        await said.begin()
        work = self._kernels.run(
            key, manifest.code, owner=owner, files=files, timeout=manifest.within, progress=news.take
        )
        running, gone = asyncio.create_task(work), asyncio.create_task(body.gone())
        try:
            while not running.done():
                fresh = asyncio.create_task(news.there.wait())
                await asyncio.wait({running, gone, fresh}, timeout=wire.BEAT, return_when=asyncio.FIRST_COMPLETED)
                fresh.cancel()
                if gone.done() and not running.done():
                    count("parlour.sandbox.cells", {"outcome": "stopped"})
                    return
                if not running.done() or news.line:
                    await said.say({"told": news.taken()} if news.line else {"alive": True})
                if not running.done():
                    await asyncio.wait({running, gone}, timeout=_TOLD, return_when=asyncio.FIRST_COMPLETED)
            await self._tell(running, said)
        finally:
            running.cancel()
            gone.cancel()
            await asyncio.wait({running, gone})

    async def _tell(self, running: asyncio.Task[CodeResult], said: _Said) -> None:
        try:
            result = running.result()
        except ToolError as error:
            count("parlour.sandbox.cells", {"outcome": "refused"})
            reason = str(error.details.get("reason", ""))
            await said.say({"error": {"message": str(error), "key": error.words_key, "reason": reason}})
        else:
            outcome = "lost" if result.lost else "failed" if result.failed else "complete"
            count("parlour.sandbox.cells", {"outcome": outcome})
            for piece in wire.told(result):
                await said.raw(piece)
        await said.end()


class _News:
    """The last line that a cell printed and nobody was told of."""

    def __init__(self) -> None:
        self.line = ""
        self.there = asyncio.Event()

    def take(self, line: str, *_: Any) -> None:
        """A line was printed."""
        self.line = line
        self.there.set()

    def taken(self) -> str:
        """The line, which is no news any more."""
        line, self.line = self.line, ""
        self.there.clear()
        return line


class _Body:
    """Reads what is asked, as far as it may go.

    Args:
        receive: Gives its pieces.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._rest = bytearray()
        self._over = False

    async def manifest(self) -> bytes:
        """The manifest. Raises _GoneError, _NotTakenError."""
        size = int.from_bytes(await self._exactly(wire.LENGTH), "big")
        if size > wire.LARGEST_MANIFEST:
            raise _NotTakenError(413, _TOO_LARGE)
        return await self._exactly(size)

    async def pieces(self, size: int) -> AsyncGenerator[bytes]:
        """So many bytes, as they come. Raises _GoneError."""
        while size:
            if not self._rest:
                await self._more()
            piece = bytes(self._rest[:size])
            del self._rest[:size]
            size -= len(piece)
            if piece:
                yield piece

    async def gone(self) -> None:
        """Return when whoever asks has left."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _exactly(self, size: int) -> bytes:
        while len(self._rest) < size:
            await self._more()
        data = bytes(self._rest[:size])
        del self._rest[:size]
        return data

    async def _more(self) -> None:
        if self._over:
            raise _GoneError
        message = await self._receive()
        if message["type"] != "http.request":
            raise _GoneError
        piece: bytes = message.get("body", b"")
        self._rest += piece
        self._over = not message.get("more_body", False)


class _Said:
    """Writes an answer, and proves it at its end.

    Args:
        send: Takes it.
        key: What it is proved by.
        nonce: That of the question.
    """

    def __init__(self, send: Send, key: bytes, nonce: str) -> None:
        self.send, self._key, self._nonce = send, key, nonce
        self._said = sha256()

    async def begin(self) -> None:
        """Say that the question is taken."""
        kind = [(b"content-type", b"application/x-ndjson"), (b"cache-control", b"no-store")]
        await self.send({"type": "http.response.start", "status": 200, "headers": kind})

    async def say(self, said: dict[str, Any]) -> None:
        """One line."""
        await self.raw(wire.line(said))

    async def raw(self, data: bytes) -> None:
        """Bytes as they are."""
        self._said.update(data)
        await self.send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """Prove it."""
        proof = wire.line({"proof": wire.answer_proof(self._key, self._nonce, self._said.hexdigest())})
        await self.send({"type": "http.response.body", "body": proof})

    async def only(self, said: dict[str, Any]) -> None:
        """An answer of one line."""
        await self.begin()
        await self.say(said)
        await self.end()
