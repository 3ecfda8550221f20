"""One kernel: a Python that remembers, in a sandbox, for one conversation."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from contextlib import aclosing, closing, suppress
from queue import Empty
from typing import TYPE_CHECKING, Any, Final, cast

from core.errors import ToolError
from core.tools.sandbox import surroundings
from core.tools.sandbox.process import SandboxProcess
from core.tools.sandbox.results import LOST, CodeResult, Gathering
from core.tools.sandbox.work_folder import Taken, WorkFolder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from pathlib import Path

    import zmq.asyncio

    from core.tools.sandbox.box import Box
    from core.tools.sandbox.drivers import Driver


_NUMBERS: Final = {"shell": 1, "iopub": 2, "stdin": 3, "control": 4, "hb": 5}
_LARGEST: Final = 16 << 20  # bytes of one message: what is larger ends the connection
_WAITING: Final = 16  # messages taken in before anybody reads them
_ASK_AGAIN: Final = 1.0  # seconds


class Channels:
    """What is said to a kernel and what comes back.

    Args:
        context: The sockets' context, of the loop that uses them.
        folder: The folder of the sockets as this process sees it.
    """

    def __init__(self, context: zmq.asyncio.Context, folder: Path) -> None:
        from jupyter_client.session import Session

        self._context = context
        self._folder = folder
        self._key = secrets.token_hex(32)
        self._session: Any = Session(key=self._key.encode(), username="parlour", copy_threshold=1 << 62)
        self._sockets: dict[str, Any] = {}

    def connection(self, folder: Path) -> str:
        """The connection file for the kernel, which sees the sockets in `folder`."""
        ports = {f"{name}_port": number for name, number in _NUMBERS.items()}
        told = {"transport": "ipc", "ip": f"{folder}/k", "key": self._key, "signature_scheme": "hmac-sha256"}
        return json.dumps({**told, **ports})

    def open(self) -> None:
        """Connect, as soon as the kernel is there."""
        import zmq

        for name, kind in (("shell", zmq.DEALER), ("control", zmq.DEALER), ("iopub", zmq.SUB)):
            one = self._context.socket(kind)
            one.setsockopt(zmq.LINGER, 0)
            one.setsockopt(zmq.MAXMSGSIZE, _LARGEST)
            one.setsockopt(zmq.RCVHWM, _WAITING)
            one.setsockopt(zmq.RECONNECT_IVL, 20)
            if name == "iopub":
                one.setsockopt(zmq.SUBSCRIBE, b"")
            one.connect(f"ipc://{self._folder}/k-{_NUMBERS[name]}")
            self._sockets[name] = one

    def close(self) -> None:
        """Let go of the sockets."""
        for one in self._sockets.values():
            one.close()
        self._sockets.clear()

    async def ready(self) -> None:
        """Wait until the kernel answers, and what it prints is heard.

        It is asked again and again: threads of a kernel that is just starting sometimes miss what came first, and see
        it when more comes.
        """
        asked: set[str] = set()
        is_heard = False
        while True:
            asked.add(await self._say("shell", "kernel_info_request", {}))
            with suppress(TimeoutError):
                async with asyncio.timeout(_ASK_AGAIN):
                    if not is_heard:
                        await self._hear("iopub")  # whatever it is: what the kernel prints from now on comes as well
                        is_heard = True
                    while (await self._hear("shell"))["parent_header"].get("msg_id") not in asked:
                        pass
                    return

    async def execute(self, code: str, *, silent: bool = False) -> AsyncGenerator[dict[str, Any], None]:
        """Run code; the messages that belong to it, without the last, which says that it is done."""
        content: dict[str, Any] = {
            "code": code,
            "silent": silent,
            "store_history": not silent,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        asked = await self._say("shell", "execute_request", content)
        while True:
            message = await self._hear("iopub")
            if message["parent_header"].get("msg_id") != asked:
                continue
            if message["msg_type"] == "status":
                if message["content"].get("execution_state") == "idle":
                    break
                continue
            yield message
        await self._answer(asked)

    async def interrupt(self) -> None:
        """Ask the kernel to break off what it runs."""
        await self._say("control", "interrupt_request", {})

    async def _say(self, channel: str, kind: str, content: dict[str, Any]) -> str:
        message: dict[str, Any] = self._session.msg(kind, content)
        await self._sockets[channel].send_multipart(self._session.serialize(message))
        return str(message["header"]["msg_id"])

    async def _answer(self, asked: str) -> None:
        while (await self._hear("shell"))["parent_header"].get("msg_id") != asked:
            pass

    async def _hear(self, channel: str) -> dict[str, Any]:
        """The next message that is whole and signed; what is not, is passed over."""
        while True:
            try:
                parts: list[bytes] = await self._sockets[channel].recv_multipart()
                _, own = self._session.feed_identities(parts)
                message = cast("dict[str, Any]", self._session.deserialize(own))
            except (ValueError, TypeError, KeyError, Empty):
                continue
            finally:
                await asyncio.sleep(0)  # where there always is a next message, nothing else would have its turn
            if isinstance(message.get("content"), dict) and isinstance(message.get("parent_header"), dict):
                return message


_START: Final = 30.0
_INTERRUPT: Final = 3.0
_WATCH: Final = 0.5
_ALREADY_IMPORTED: Final = """
try:
    import matplotlib.pyplot as _, pandas as _, numpy as _
except ImportError:
    pass
finally:
    globals().pop("_", None)
"""
_PLOTS_RC: Final = "font.family: DejaVu Sans, Droid Sans Fallback\nfigure.dpi: 110\naxes.unicode_minus: True\n"


class Kernel:
    """A running kernel. One cell at a time: whoever uses it waits for the one before.

    Args:
        context: For its sockets.
        driver: How it is locked in.
    """

    def __init__(self, context: zmq.asyncio.Context, driver: Driver, box: Box) -> None:
        self._limits = box.limits
        self._channels = Channels(context, box.here.channels)
        inner = driver.inside(box)
        box.put("connection.json", self._channels.connection(inner.channels))
        settings = {
            "connection": str(inner.run / "connection.json"),
            "output_limit": box.limits.output,
            "share": str(inner.share),
            "plots": str(inner.scratch / "plots"),
            "plots_rc": _PLOTS_RC,
            "packages": surroundings.packages_told(),
        }
        box.put("settings.json", json.dumps(settings))
        packages = map(str, surroundings.packages())  # among the words, where the launcher can say another way to them
        self.process = SandboxProcess(driver, box, ("kernel.py", str(inner.run / "settings.json"), *packages))
        # One cell at a time: two would mix their output, and an interrupt would hit the wrong one.
        self._turn = asyncio.Lock()  # noqa: TID251 - said above
        self._why_ended = ""
        self._trouble = ""  # what went wrong on the wires last
        self._stopped = False
        self._used = time.monotonic()
        self._watching: asyncio.Task[None] | None = None
        self._calming: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        """Whether it can run another cell."""
        return not self.process.ended.is_set() and not self._why_ended

    @property
    def busy(self) -> bool:
        """Whether it runs a cell."""
        return self._turn.locked() or (self._calming is not None and not self._calming.done())

    @property
    def idle_for(self) -> float:
        """Seconds since it was used last."""
        return 0.0 if self.busy else time.monotonic() - self._used

    async def start(self) -> None:
        """Wait until it is ready.

        Raises:
            ToolError: It does not come up.
        """
        self._channels.open()
        is_ready = await self._while_alive(self._channels.ready(), _START)
        try:
            if not is_ready:
                raise OSError(self.process.last_words() or self._silence())
            self._folder = self.process.work_folder()
        except (OSError, ValueError) as error:  # it may have ended just after it answered
            await self.aclose()
            raise ToolError(f"The code interpreter does not start. {error}".strip()) from error

    async def prepare(self, share: Path) -> None:
        """Import what most cells begin with, so that the first need not wait for it.

        The list of fonts that this makes is kept in `share` for the kernels to come: nobody's code has run here yet.
        """
        async with self._turn:
            if await self._while_alive(self._drain(_ALREADY_IMPORTED), _START):
                await asyncio.to_thread(self._keep_fonts, share)

    async def run(
        self, code: str, files: Mapping[str, Path], within: float, told: Callable[[str], None] | None
    ) -> CodeResult:
        """Run a cell.

        Args:
            code: Python, as in a notebook.
            files: Files that are to lie in its folder, by name.
            within: Seconds; then it is interrupted, and ended if it does not listen.
            told: Called with lines that it prints.

        Returns:
            What came of it; `untouched` where the kernel ended before its turn came, and nothing was run.
        """
        if self._calming is not None:
            await asyncio.wait({self._calming})
        async with self._turn:
            if self._stopped:  # whoever waited already while the cell before was stopped has its turn first
                await self._broken_off()
            if not self.alive:
                return CodeResult(failed=True, lost=True, untouched=True)
            self._watching = self._watching or asyncio.create_task(self._watch(), name="sandbox-watch")
            missing = await asyncio.to_thread(self._put, files)
            before = await asyncio.to_thread(self._folder.seen)
            gathered = Gathering(self._limits.output, surroundings.packages_told(), told)
            try:
                notes = missing + await self._cell(code, gathered, within)
            except asyncio.CancelledError:
                self._stopped = True
                self._calming = asyncio.create_task(self._calm(), name="sandbox-calm")
                raise
            finally:
                self._used = time.monotonic()
            made, left = await asyncio.to_thread(self._folder.made, before) if self.alive else ([], [])
        lost = not self.alive
        text = "\n".join(part for part in (gathered.text, *notes, *left) if part)
        failed = gathered.failed or bool(notes)
        return CodeResult(text, tuple(gathered.pictures), tuple(made), failed=failed, lost=lost)

    async def aclose(self) -> None:
        """End it and remove what it had."""
        self._why_ended = self._why_ended or "it was closed"
        for task in (self._watching, self._calming):
            if task is not None:
                task.cancel()
                await asyncio.wait({task})
        self._channels.close()
        await self.process.aclose()
        if hasattr(self, "_folder"):
            self._folder.close()
            del self._folder

    async def _cell(self, code: str, gathered: Gathering, within: float) -> list[str]:
        """Run it; sentences on what went wrong beside the code itself."""
        running = asyncio.create_task(self._gather(code, gathered))
        ended = asyncio.create_task(self.process.ended.wait())
        try:
            await asyncio.wait({running, ended}, timeout=within, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                return self._unread(running)
            if not ended.done():
                await self._channels.interrupt()
                await asyncio.wait({running, ended}, timeout=_INTERRUPT, return_when=asyncio.FIRST_COMPLETED)
                if running.done():
                    return [f"Stopped: it was not done within {within:g} seconds. Variables are kept."]
                self._end(f"it was not done within {within:g} seconds and did not stop when asked")
            why = self._why_ended or "it ran out of memory, or the code ended it"
            self._why_ended = why
            return [f"The interpreter ended: {why}. {LOST}"]
        finally:
            await _cancelled(running, ended)

    def _unread(self, running: asyncio.Task[None]) -> list[str]:
        """Nothing, unless what the kernel said cannot be read: then somebody inside has changed it."""
        if running.cancelled() or running.exception() is None:
            return []
        self._end("what it answered cannot be read")
        return [f"The interpreter ended: {self._why_ended}. {LOST}"]

    async def _gather(self, code: str, gathered: Gathering) -> None:
        async with aclosing(self._channels.execute(code)) as messages:
            async for message in messages:
                gathered.take(message)

    async def _drain(self, code: str) -> None:
        async with aclosing(self._channels.execute(code, silent=True)) as messages:
            async for _ in messages:
                pass

    def _silence(self) -> str:
        """What is known of a start that failed without a word."""
        if self.process.ended.is_set():
            return "It ended at once."
        return self._trouble or f"It did not answer within {_START:.0f} seconds."

    async def _while_alive(self, work: Any, within: float) -> bool:
        """Whether the work was done in time and before the process ended."""
        running, ended = asyncio.create_task(work), asyncio.create_task(self.process.ended.wait())
        try:
            await asyncio.wait({running, ended}, timeout=within, return_when=asyncio.FIRST_COMPLETED)
            if not running.done() or running.cancelled():
                return False
            error = running.exception()
            self._trouble = str(error or "")
            return error is None
        finally:
            await _cancelled(running, ended)

    async def _calm(self) -> None:
        """After a stop: break off what runs."""
        async with self._turn:
            if self._stopped:
                await self._broken_off()

    async def _broken_off(self) -> None:
        """Break off what runs; end the process if it does not listen."""
        await self._channels.interrupt()
        if not await self._while_alive(self._drain(""), _INTERRUPT):
            self._end("it did not stop when asked")
        self._stopped = False

    async def _watch(self) -> None:
        """End it when its processes together, or its files, take too much."""
        while self.alive:
            if await asyncio.to_thread(self.process.uses_more_than, self._limits.memory):
                return self._end(f"it used more than {self._limits.memory >> 30} GB of memory")
            taken = Taken(0, 0) if self.process.own_quota else await asyncio.to_thread(self._taken)
            if taken.size > self._limits.folder:
                return self._end(f"its files took more than {self._limits.folder >> 20} MB")
            if taken.entries > self._limits.entries:
                return self._end(f"it made more than {self._limits.entries:,} files and folders")
            with suppress(TimeoutError):
                async with asyncio.timeout(_WATCH if self.busy else 4 * _WATCH):
                    await self.process.ended.wait()
        return None

    def _taken(self) -> Taken:
        size, entries = self._folder.taken()
        size += self.process.deleted()
        for place in ("scratch", "channels"):
            with closing(WorkFolder(self.process.open_place(place), None)) as other:
                more = other.taken()
                size, entries = size + more.size, entries + more.entries
        return Taken(size, entries)

    def _keep_fonts(self, share: Path) -> None:
        with suppress(OSError), closing(WorkFolder(self.process.open_place("scratch"), None)) as scratch:
            for path in scratch.seen():
                name = path.removeprefix("plots/")
                data = scratch.read(path) if name.startswith("fontlist-") and not (share / name).exists() else None
                if data:
                    (share / name).write_bytes(data)
                    (share / name).chmod(0o644)

    def _end(self, why: str) -> None:
        self._why_ended = why
        self.process.kill()

    def _put(self, files: Mapping[str, Path]) -> list[str]:
        missing: list[str] = []
        for name, path in files.items():
            try:
                self._folder.put(name, path)
            except OSError as error:
                missing.append(f"The file {name} could not be put into the folder: {error.strerror}.")
        return missing


async def _cancelled(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
