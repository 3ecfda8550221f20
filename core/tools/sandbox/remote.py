"""Kernels on machines of their own: the same to whoever runs code, and no code of a model's on this machine.

A conversation keeps to one sandbox, the same for every Parlour; the next one has it only while that is away.
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import urlsplit

import httpx

from core.bridge.pool import BoundedDict
from core.errors import ToolError
from core.tools.sandbox import wire
from core.tools.sandbox.results import FRESH, CodeResult
from core.tools.sandbox.self_test import Choice, Verdict

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

_LOG = logging.getLogger(__name__)
_CALL: Final = 120.0
_CONNECT: Final = 3.0
_SILENT: Final = 6 * wire.BEAT  # seconds without a sign of life
_AROUND: Final = 600.0  # seconds beside a cell's own: those before it end, its kernel starts, what it made comes over
_BOOT: Final = re.compile(rb"[0-9a-f]{32}")
_LOOK_AGAIN: Final = 5.0
_FORGET: Final = 5.0
_UNHEARD: Final = 30.0
_REMEMBERED: Final = 20_000
_TRIES: Final = 4
_ELSEWHERE: Final = "(This interpreter is on another machine than the one before: variables of calls there are gone.)"
_CUT_OFF: Final = (
    "The sandbox was lost while this ran, and what it printed and made with it. Variables may be gone too; the next "
    "call says so where they are."
)
_THEIR_ERRORS: Final = frozenset({"sandbox_off", "sandbox_busy", "own_kernel_busy"})


class _AwayError(Exception):
    """Nothing was begun there."""


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked for a cell, and where the files are that it may need."""

    manifest: wire.Manifest
    paths: Mapping[str, Path]
    left_out: tuple[str, ...]


class RemoteKernels:
    """The code interpreter's kernels on other machines. It belongs to one event loop, and closes with `aclose`.

    Args:
        addresses: Where the sandboxes are, such as `http://sandbox:7860`.
        key: What they and this Parlour prove themselves by (`Settings.sandbox_key`).
        most_of: How many kernels the conversations of an owner may have in each.
        changed: Called when something else is known of them.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        key: bytes,
        *,
        most_of: Callable[[str], int] | None = None,
        changed: Callable[[], None] | None = None,
    ) -> None:
        self._addresses, self._key = tuple(addresses), key
        self._most_of, self._changed = most_of, changed
        self._choice: Choice | None = None
        self._looking: asyncio.Task[None] | None = None
        # Each question has a connection of its own: of one that stood idle it could not be said whether it arrived.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        patience = httpx.Timeout(_SILENT, connect=_CONNECT)
        trusted = ssl.create_default_context()
        self._client = httpx.AsyncClient(limits=limits, timeout=patience, trust_env=False, verify=trusted)
        self._boots: dict[str, str] = {}
        self._refusing: set[str] = set()  # of these the log says already that they refuse this Parlour
        self._unheard: dict[str, float] = {}  # when each did not hear that a conversation is gone
        self._ran = BoundedDict[str, str](_REMEMBERED)  # where each conversation ran code last
        self._digests = BoundedDict[tuple[str, int, int, int], str](_REMEMBERED)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the machines on which code runs."""
        return tuple(dict.fromkeys(map(_host, self._addresses)))

    @property
    def choice(self) -> Choice | None:
        """Which sandbox holds there, or why none is used; `None` before one was asked."""
        return self._choice

    def start(self) -> None:
        """Begin to ask them, in the background, until one answers."""
        if self._looking is None:
            self._looking = asyncio.create_task(self._look(), name="sandboxes")

    async def run(
        self,
        key: str,
        code: str,
        *,
        owner: str = "",
        files: Mapping[str, Path] | None = None,
        timeout: float = _CALL,
        progress: Callable[..., None] | None = None,
    ) -> CodeResult:
        """Run code in the kernel of `key`; it remembers what earlier calls with that key defined.

        Args:
            key: A conversation of an owner; what is told of it says nothing of either.
            code: Python, as in a notebook.
            files: Files that the code finds in its folder, by name; only what is not there yet is sent.
            timeout: Seconds.
            progress: Called with (line, None, None) as it prints.

        Raises:
            ToolError: No sandbox answers, it refuses, all its kernels are busy, or a file changed meanwhile.
        """
        question = await self._question(key, code, owner, files or {}, min(timeout, wire.LONGEST_CELL))
        mark = str(question.manifest.key)
        before = self._ran.get(mark)
        for address in self._ranked(mark):
            try:
                result = await self._cell(address, question, progress)
            except _AwayError as error:
                _LOG.warning("The sandbox at %s is away: %s.", _host(address), error)
                continue
            return _noted(result, question.left_out, before, address)
        hosts = ", ".join(self.hosts)
        raise ToolError(f"No sandbox answers ({hosts}); try again in a moment.", key="sandbox_away", hosts=hosts)

    def warm(self) -> None:
        """Nothing: a sandbox has an interpreter ready by itself."""

    async def forget(self, key: str) -> None:
        """End the kernel of a conversation wherever it has one; where that is not heard, it ends by itself later."""
        mark = wire.mark_of(self._key, "conversation", key)
        self._ran.pop(mark, None)
        manifest = wire.Manifest(key=mark)
        now = time.monotonic()  # whoever deletes a hundred conversations does not wait for it a hundred times
        there = [one for one in self._addresses if now - self._unheard.get(one, -_UNHEARD) >= _UNHEARD]
        asked = (self._said(address, wire.FORGET, manifest) for address in there)
        for address, said in zip(there, await asyncio.gather(*asked, return_exceptions=True), strict=True):
            if isinstance(said, BaseException):
                self._unheard[address] = time.monotonic()
                _LOG.info("The sandbox at %s was not told that a conversation is gone: %s", _host(address), said)

    async def aclose(self) -> None:
        """Break off what still runs there; kernels end by themselves when they are not used."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait({self._looking})
        await self._client.aclose()

    # ---- inside

    async def _look(self) -> None:
        """Ask all, until one of them runs code; what is wrong later on, each call says by itself."""
        told = False
        while True:
            try:
                if await self._looked():
                    return
            except Exception:  # noqa: BLE001 - whatever it was, it would be the last look at any sandbox
                if not told:
                    _LOG.exception("The sandboxes cannot be asked; it is tried again and again.")
                told = True
            await asyncio.sleep(_LOOK_AGAIN)

    async def _looked(self) -> bool:
        """Ask all once; whether one of them runs code."""
        verdicts = [await self._state(address) for address in self._addresses]
        held = next((one for one in verdicts if one is not None and one.held), None)
        refuses = next((one for one in verdicts if one is not None), None)
        away = Verdict("", held=False, reason=f"no sandbox answers ({', '.join(self.hosts)})")
        found = Choice(held.driver, (held,)) if held is not None else Choice("", (refuses or away,))
        if found != self._choice:
            self._choice = found
            if not found.driver:
                _LOG.warning("No code can be run: %s.", found.reason)
            if self._changed is not None:
                self._changed()
        return held is not None

    async def _state(self, address: str) -> Verdict | None:
        """What one says; `None` where it says nothing."""
        try:
            said = await self._said(address, wire.STATE, wire.Manifest())
            cases = wire.object_of(said.get("cases", {}))
            told = {case: wire.text_of(cases, case)[:200] for case in cases}
            return Verdict(wire.text_of(said, "driver")[:40], held=True, cases=told)
        except (_AwayError, wire.UnreadableError):
            return None
        except ToolError:
            return Verdict("", held=False, reason=f"the sandbox {_host(address)} refuses this Parlour")

    def _ranked(self, mark: str) -> list[str]:
        """The sandboxes in the order in which a conversation has them; it is the same wherever they are known."""
        return sorted(self._addresses, key=lambda one: sha256(f"{one}\n{mark}".encode()).digest())

    async def _question(self, key: str, code: str, owner: str, files: Mapping[str, Path], within: float) -> _Question:
        """What is asked for a cell. Raises ToolError."""
        if len(code) > wire.LONGEST_CODE:
            raise ToolError("This is more code than the sandbox takes at once.", key="sandbox_too_large")
        sent: list[wire.SentFile] = []
        paths: dict[str, Path] = {}
        left_out: list[str] = []
        room = wire.LARGEST_FILES
        for name, path in files.items():
            try:
                digest, size = await self._digest(path)
            except OSError as error:
                left_out.append(f"The file {name} could not be put into the folder: {error.strerror}.")
                continue
            if size > room or len(sent) >= wire.MOST_FILES:
                left_out.append(f"The file {name} could not be put into the folder: there is no room for it.")
                continue
            room -= size
            sent.append(wire.SentFile(name=wire.plain(name[:1000]), digest=digest, size=size))
            paths[digest] = path
        manifest = wire.Manifest(
            key=wire.mark_of(self._key, "conversation", key),
            owner=wire.mark_of(self._key, "owner", owner),
            most=min(self._most_of(owner), 10_000) if self._most_of is not None else 10_000,
            code=wire.plain(code),
            within=within,
            files=tuple(sent),
        )
        return _Question(manifest, paths, tuple(left_out))

    async def _digest(self, path: Path) -> tuple[str, int]:
        """The SHA-256 of a file and its bytes. Raises OSError."""
        about = await asyncio.to_thread(path.stat)
        known = (str(path), about.st_mtime_ns, about.st_size, about.st_ino)
        if known not in self._digests:
            self._digests[known] = await asyncio.to_thread(_digest_of, path)
        return self._digests[known], about.st_size

    async def _cell(self, address: str, question: _Question, progress: Callable[..., None] | None) -> CodeResult:
        """Run a cell in one sandbox. Raises ToolError, _AwayError."""
        sends: tuple[str, ...] = ()
        for _ in range(_TRIES):
            manifest = question.manifest.model_copy(update={"sends": sends})
            async with self._asked(address, wire.CELL, manifest, question.paths) as answer:
                if answer is None:
                    continue
                try:
                    async with asyncio.timeout(manifest.within + _AROUND):
                        found = await _read(answer, question.paths, progress)
                except asyncio.CancelledError:
                    self._ran[str(manifest.key)] = address
                    raise
                except (wire.UnreadableError, httpx.HTTPError, TimeoutError) as error:
                    _LOG.warning("The sandbox at %s was lost in the middle of a cell: %r", _host(address), error)
                    found = CodeResult(_CUT_OFF, failed=True, lost=True)
                if isinstance(found, CodeResult):
                    self._ran[str(manifest.key)] = address
                    return found
                sends = found
        raise _AwayError("it asks for the same again and again")

    async def _said(self, address: str, path: str, manifest: wire.Manifest) -> dict[str, Any]:
        """The one line that is answered. Raises ToolError, _AwayError."""
        try:
            async with asyncio.timeout(_FORGET):
                for _ in range(_TRIES):
                    async with self._asked(address, path, manifest, {}) as answer:
                        if answer is not None:
                            said = await answer.next()
                            await answer.finish()
                            return said
        except TimeoutError as error:
            raise _AwayError("it does not answer in time") from error
        except (wire.UnreadableError, httpx.HTTPError) as error:
            raise _AwayError(f"what it says cannot be read ({error})") from error
        raise _AwayError("it starts again and again")

    @asynccontextmanager
    async def _asked(
        self, address: str, path: str, manifest: wire.Manifest, paths: Mapping[str, Path]
    ) -> AsyncGenerator[wire.Answer | None]:
        """The answer to a question; `None` where it has to be asked again. Raises ToolError, _AwayError."""
        raw = manifest.model_dump_json(exclude_defaults=True).encode()
        header, nonce = wire.asking(self._key, path, self._boots.get(address, ""), raw)
        request = self._client.build_request(
            "POST", address + path, headers={"authorization": header}, content=_body(raw, manifest, paths)
        )
        try:
            response = await self._client.send(request, stream=True)
        except (httpx.HTTPError, OSError) as error:
            raise _AwayError(str(error) or type(error).__name__) from error
        try:
            if response.status_code == 200:
                self._refusing.discard(address)
                yield wire.Answer(response.aiter_raw(), self._key, nonce)
            else:
                await self._refused(address, response)
                yield None
        finally:
            await response.aclose()

    async def _refused(self, address: str, response: httpx.Response) -> None:
        """Take a refusal in; returns where the question has but to be asked again. Raises ToolError, _AwayError."""
        host = _host(address)
        try:
            said = await anext(response.aiter_bytes(), b"")
        except httpx.HTTPError as error:
            raise _AwayError(str(error)) from error
        match response.status_code:
            case 409:
                if _BOOT.fullmatch(said) is None:  # it goes into the header of the next question
                    raise _AwayError("what it says of its start cannot be read")
                self._boots[address] = said.decode()
            case 401:
                if address not in self._refusing:
                    self._refusing.add(address)
                    _LOG.warning(
                        "The sandbox at %s refuses this Parlour: PARLOUR_SANDBOX_SECRET (or PARLOUR_SECRET) differs, "
                        "or the clocks do, by more than ten minutes.",
                        host,
                    )
                raise ToolError(f"The sandbox {host} refuses this Parlour; its log says why.", key="sandbox_refuses")
            case 413:
                raise ToolError("This is more than the sandbox takes at once.", key="sandbox_too_large")
            case 429:
                raise ToolError("All code interpreters are busy; try again in a moment.", key="sandbox_busy")
            case other:
                raise _AwayError(f"it answers with {other}")


async def _read(
    answer: wire.Answer, paths: Mapping[str, Path], progress: Callable[..., None] | None
) -> CodeResult | tuple[str, ...]:
    """The result, or the digests of the files that have to be sent. Raises ToolError, UnreadableError, HTTPError."""
    while True:
        said = await answer.next()
        if "told" in said and progress is not None:
            progress(wire.text_of(said, "told")[:200], None, None)
        elif "lacks" in said:
            await answer.finish()
            lacks = wire.texts_of(said["lacks"])
            if not set(lacks) <= paths.keys():
                raise wire.UnreadableError("it asks for files that are not meant for it")
            return lacks
        elif "done" in said:
            result = await answer.result(said["done"])
            await answer.finish()
            return result
        elif "error" in said:
            await answer.finish()
            _raise(wire.object_of(said["error"]))


def _raise(error: Mapping[str, Any]) -> NoReturn:
    """Raises ToolError, UnreadableError."""
    key = wire.text_of(error, "key")
    details = {"reason": wire.text_of(error, "reason")[:500]}
    raise ToolError(wire.text_of(error, "message")[:500], key=key if key in _THEIR_ERRORS else "", **details)


def _noted(result: CodeResult, left_out: Sequence[str], before: str | None, address: str) -> CodeResult:
    """The result with what is to be said of it: that variables are gone, and what could not be put there."""
    note = ""
    if before is not None and result.fresh and not result.text.startswith(FRESH):
        note = FRESH
    elif before not in {None, address} and not result.fresh and not result.lost:
        note = _ELSEWHERE
    if not note and not left_out:
        return result
    text = "\n".join(part for part in (note, result.text, *left_out) if part)
    return replace(result, text=text, failed=result.failed or bool(left_out))


def _host(address: str) -> str:
    return urlsplit(address).hostname or address


async def _body(raw: bytes, manifest: wire.Manifest, paths: Mapping[str, Path]) -> AsyncIterator[bytes]:
    """What is sent. Raises ToolError: a file is not what it was when its digest was taken."""
    yield len(raw).to_bytes(wire.LENGTH, "big") + raw
    for digest in manifest.sends:
        found = sha256()
        try:
            file = await asyncio.to_thread(paths[digest].open, "rb")
            with file:
                while piece := await asyncio.to_thread(file.read, wire.PIECE):
                    found.update(piece)
                    yield piece
        except OSError as error:
            raise _changed(manifest, digest) from error
        if found.hexdigest() != digest:
            raise _changed(manifest, digest)


def _changed(manifest: wire.Manifest, digest: str) -> ToolError:
    name = next(one.name for one in manifest.files if one.digest == digest)
    sentence = f"The file {name} was changed or deleted while it was sent to the sandbox; run this again."
    return ToolError(sentence, key="sandbox_file_changed", name=name)


def _digest_of(path: Path) -> str:
    found = sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            found.update(piece)
    return found.hexdigest()
