"""All kernels of one process: one for each conversation, one ready beforehand, few in all, none left behind."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import shutil
import stat
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from core.bridge.pool import BoundedDict
from core.bridge.sync import run, shared_loop
from core.errors import ParlourError, ToolError
from core.extras import install_command
from core.tools.sandbox.box import Box, Limits
from core.tools.sandbox.drivers import DRIVERS
from core.tools.sandbox.kernel import Kernel
from core.tools.sandbox.results import FRESH, CodeResult
from core.tools.sandbox.self_test import Choice, Verdict, choose

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping


_BEGINNING: Final = "parlour-code-"
_LOCK: Final = "in-use"
_LONGEST: Final = 50  # characters of its path: addresses of sockets below it may have 107


def make_root() -> tuple[Path, int]:
    """A new folder and the lock on it, which ends with the process; what others left behind is removed.

    Returns:
        The folder, which others may walk through but not list, and the descriptor that holds the lock.

    Raises:
        OSError: It cannot be made.
    """
    place = Path(tempfile.gettempdir())
    place = place if len(str(place)) < _LONGEST else Path("/tmp")  # noqa: S108 - made below it, under a new name
    _remove_abandoned(place)
    folder = Path(tempfile.mkdtemp(prefix=_BEGINNING, dir=place))
    lock = _locked(folder)
    if lock is None:
        raise OSError(f"The folder {folder} cannot be locked.")
    folder.chmod(0o711)
    return folder, lock


def drop_root(folder: Path, lock: int) -> None:
    """Remove the folder and let go of the lock."""
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


def _remove_abandoned(place: Path) -> None:
    for folder in place.glob(f"{_BEGINNING}*"):
        with suppress(FileNotFoundError):  # another process is removing it
            about = folder.lstat()
            if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
                continue
            if not (folder / _LOCK).exists():
                continue  # somebody is just making it
            lock = _locked(folder)
            if lock is not None:
                drop_root(folder, lock)


def _locked(folder: Path) -> int | None:
    """The lock on a folder; None where somebody has it."""
    import fcntl

    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def put_fonts(share: Path) -> None:
    """Make the folder that all sandboxes read, with the font where PyMuPDF is there to give it. Raises OSError."""
    from core.rag.parsers.pdf_mupdf import cjk_font

    fonts = share / "fonts"
    for folder in (share, fonts):
        folder.mkdir(mode=0o755, exist_ok=True)
        folder.chmod(0o755)
    font = cjk_font()
    if font:
        path = fonts / "cjk.ttf"
        path.write_bytes(font)
        path.chmod(0o644)


_LOG = logging.getLogger(__name__)
_IDLE: Final = 30 * 60.0
_MOST: Final = 4
_SPARED: Final = 5 * 60.0  # seconds that another owner's idle kernel is safe
_CALL: Final = 120.0
_SOON: Final = 10.0
_REMEMBERED: Final = 5_000


class Kernels:
    """The code interpreter's kernels. It belongs to the event loop that starts it, and closes with `aclose`.

    Args:
        wanted: `auto`, the name of a driver (`bubblewrap`, `landlock`, `docker`, `runsc`), or `off`.
        private: Folders that must not be seen from inside, such as the data folder; the self-test looks for them.
        known: A file that keeps what the self-test found, until the machine starts again or something changes.
        limits: What each kernel may use.
        idle: Seconds after which an unused kernel is closed.
        most: Kernels with a conversation at the same time.
        most_of: How many of them the conversations of an owner may have; without it, any number.
        changed: Called when the self-test is done.
        ahead: Whether a kernel is made ready for the next conversation.
        patience: Seconds that the self-test waits for whatever else begins; less where somebody asks for it.
    """

    def __init__(  # noqa: PLR0913 - each by name
        self,
        *,
        wanted: str = "auto",
        private: tuple[Path, ...] = (),
        known: Path | None = None,
        limits: Limits | None = None,
        idle: float = _IDLE,
        most: int = _MOST,
        most_of: Callable[[str], int] | None = None,
        changed: Callable[[], None] | None = None,
        ahead: bool = True,
        patience: float = 0.0,
    ) -> None:
        self._wanted, self._private, self._known = wanted, private, known
        self._limits, self._idle, self._most = limits or Limits(), idle, most
        self._most_of = most_of
        self._owners: dict[str, str] = {}
        self._changed, self._ahead, self._patience = changed, ahead, patience
        self._asked = asyncio.Event()
        self._trying = False
        self._testing: asyncio.Task[Choice] | None = None
        self._root: Path | None = None
        self._lock = -1
        self._context: Any = None
        self._kernels: dict[str, asyncio.Task[Kernel]] = {}
        self._spare: asyncio.Task[Kernel] | None = None
        self._lost = BoundedDict[str, None](_REMEMBERED)  # conversations that are told that their variables are gone
        self._tidying: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False

    # ---- whether there is a sandbox

    def start(self) -> None:
        """Begin the self-test in the background."""
        if self._testing is None:
            self._testing = asyncio.create_task(self._tested(), name="sandbox-test")

    @property
    def hosts(self) -> tuple[str, ...]:
        """None: code runs on this machine."""
        return ()

    @property
    def choice(self) -> Choice | None:
        """What the self-test found; None before it is done."""
        testing = self._testing
        if testing is None or not testing.done() or testing.cancelled():
            return None
        error = testing.exception()
        return testing.result() if error is None else self._none(f"the self-test failed ({error!r})")

    async def chosen(self) -> Choice:
        """What the self-test finds."""
        self.start()
        self._asked.set()
        await asyncio.wait({cast("asyncio.Task[Choice]", self._testing)})
        return self.choice or self._none("it was closed")

    # ---- running code

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
            key: A conversation of an owner.
            code: Python, as in a notebook.
            files: Files that the code finds in its folder, by name.
            timeout: Seconds.
            progress: Called with (line, None, None) as it prints.

        Raises:
            ToolError: There is no sandbox here, all kernels are busy or others', or none starts.
        """
        choice = await self.chosen()
        if not choice.driver:
            reason = choice.reason
            raise ToolError(f"The code interpreter is off on this machine: {reason}.", key="sandbox_off", reason=reason)

        def told(line: str) -> None:
            if progress is not None:
                progress(line, None, None)

        kernel, fresh = await self._kernel(key, owner)
        result = await kernel.run(code, files or {}, timeout, told)
        while result.untouched:  # the call before ended it while this one waited
            await self._close_one(key, kernel)
            kernel, fresh = await self._kernel(key, owner)
            result = await kernel.run(code, files or {}, timeout, told)
        if result.lost:
            await self._close_one(key, kernel)
            return result
        if fresh and key in self._lost:
            self._lost.pop(key, None)
            return replace(result, text=f"{FRESH}\n{result.text}".strip(), fresh=True)
        return replace(result, fresh=fresh)

    @property
    def keys(self) -> tuple[str, ...]:
        """The conversations that have a kernel."""
        return tuple(self._kernels)

    def warm(self) -> None:
        """Have a kernel ready before it is asked for; does nothing where there is one or no sandbox."""
        choice = self.choice
        if choice is None or not choice.driver or self._root is None:
            return
        if not self._ahead or self._closed or self._spare is not None:
            return
        self._spare = asyncio.create_task(self._made(), name="sandbox-spare")
        self._spare.add_done_callback(self._spare_done)

    async def warmed(self) -> None:
        """Wait until the kernel that is made ready beforehand is ready."""
        if self._spare is not None:
            await asyncio.wait({self._spare})
        await asyncio.gather(*self._closing)

    async def forget(self, key: str) -> None:
        """End the kernel of a conversation, if it has one, with all its files."""
        self._lost.pop(key, None)
        await self._close_one(key)
        self._lost.pop(key, None)

    async def aclose(self) -> None:
        """End all; no process and no folder stays, and none begins."""
        self._closed = True
        for task in (self._testing, self._tidying):
            if task is not None:
                if task is not self._testing or not self._trying:  # what it tries out is waited for: it ends by itself
                    task.cancel()
                await asyncio.wait({task})
        waiting = [*self._kernels.values(), *([self._spare] if self._spare is not None else [])]
        self._kernels.clear()
        self._spare = None
        await asyncio.gather(*(self._ended(one) for one in waiting), *self._closing, return_exceptions=True)
        if self._context is not None:
            self._context.term()
            self._context = None
        if self._root is not None:
            drop_root(self._root, self._lock)  # not in a thread: at the end of a program there are no more
            self._root = None

    # ---- inside

    async def _tested(self) -> Choice:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                await self._asked.wait()
        self._trying = True
        try:
            if self._wanted == "off":
                return Choice("", ())
            missing = _missing()
            if missing:
                return self._none(missing)
            self._root, self._lock = await asyncio.to_thread(make_root)
            await asyncio.to_thread(put_fonts, self._root / "share")
            return await asyncio.to_thread(choose, self._wanted, self._root, self._private, self._known)
        except (OSError, ParlourError) as error:
            return self._none(f"it cannot be tried ({error})")
        finally:
            if self._changed is not None:
                asyncio.get_running_loop().call_soon(self._changed)

    def _none(self, why: str) -> Choice:
        return Choice("", (Verdict(self._wanted, held=False, reason=why),))

    async def _kernel(self, key: str, owner: str) -> tuple[Kernel, bool]:
        """The kernel of a conversation, and whether it is new to it."""
        while (starting := self._kernels.get(key)) is not None:
            if not _is_dead(starting):
                return await self._begun(key, starting), False
            await self._close_one(key)  # meanwhile another call may have begun the next
        if self._closed:
            raise ToolError("The code interpreter is closed.")
        self._make_room(owner)
        self._owners[key] = owner
        spare, self._spare = self._spare, None
        task = spare if spare is not None and not _is_dead(spare) else asyncio.create_task(self._made())
        self._kernels[key] = task
        if self._tidying is None:
            self._tidying = asyncio.create_task(self._tidy(), name="sandbox-tidy")
        kernel = await self._begun(key, task)
        self.warm()
        return kernel, True

    async def _begun(self, key: str, task: asyncio.Task[Kernel]) -> Kernel:
        """Wait for a kernel that starts. Raises ToolError."""
        await asyncio.wait({task})
        if task.cancelled():
            raise ToolError("The code interpreter was closed while it started.")
        if task.exception() is not None and self._kernels.get(key) is task:
            del self._kernels[key]
        return task.result()

    def _make_room(self, owner: str) -> None:
        """Close a kernel, where there are too many: the owner's own that was not used for longest.

        Another owner's goes only when it has long been idle, as it soon would by itself: else a few visitors who ran
        code once would keep it from everybody.

        Raises:
            ToolError: All of them work, or are others' that were used lately.
        """
        self._owners = {key: one for key, one in self._owners.items() if key in self._kernels}
        own = [key for key in self._kernels if self._owners.get(key) == owner]
        too_many = self._most_of is not None and len(own) >= self._most_of(owner)
        if not too_many and len(self._kernels) < self._most:
            return
        idle = {key: kernel.idle_for for key, kernel in self._idle_ones().items()}
        mine = {key: seconds for key, seconds in idle.items() if key in own}
        if too_many and not mine:
            raise ToolError(
                "The code interpreter is at work in another conversation; try again when that is done.",
                key="own_kernel_busy",
            )
        others = {key: seconds for key, seconds in idle.items() if seconds > _SPARED}
        if not mine and not others:
            raise ToolError(f"All {self._most} code interpreters are busy; try again in a moment.", key="sandbox_busy")
        candidates = mine or others
        oldest = max(candidates, key=lambda key: candidates[key])
        self._lost[oldest] = None
        self._later(self._ended(self._kernels.pop(oldest)))  # taken out at once: nobody begins a cell in it

    def _idle_ones(self) -> dict[str, Kernel]:
        """The kernels that run nothing, by their conversations."""
        alive = {key: task.result() for key, task in self._kernels.items() if task.done() and not _is_dead(task)}
        return {key: kernel for key, kernel in alive.items() if not kernel.busy}

    async def _made(self) -> Kernel:
        """A kernel that is ready; one that ends at once is tried once more before anybody hears of it.

        Raises:
            ToolError: It does not start; it is not tried again where that alone took long, as somebody waits.
        """
        began = time.monotonic()
        try:
            return await self._made_once()
        except ToolError as error:
            if self._closed or time.monotonic() - began > _SOON:
                raise
            _LOG.warning("A kernel is tried once more: %s", error)
        return await self._made_once()

    async def _made_once(self) -> Kernel:
        """A kernel that is ready. Raises ToolError."""
        import zmq.asyncio

        if self._context is None:
            self._context = zmq.asyncio.Context()
        root = cast("Path", self._root)
        driver = DRIVERS[cast("Choice", self.choice).driver]()
        making = asyncio.ensure_future(asyncio.to_thread(Box.make, root, root / "share", self._limits))
        try:
            box = await asyncio.shield(making)
        except asyncio.CancelledError:
            await asyncio.wait({making})  # a thread goes on by itself
            if making.exception() is None:
                making.result().remove()
            raise
        except OSError as error:
            raise ToolError(f"The code interpreter has no folder to work in: {error.strerror}.") from error
        try:
            kernel = Kernel(self._context, driver, box)
        except OSError as error:
            box.remove()
            raise ToolError(f"The code interpreter does not start. {error.strerror}.") from error
        try:
            await kernel.start()
        except asyncio.CancelledError:
            await kernel.aclose()
            raise
        return kernel

    def _spare_done(self, spare: asyncio.Task[Kernel]) -> None:
        if spare.cancelled():
            return
        if spare.exception() is not None:
            _LOG.warning("No kernel could be made ready: %s", spare.exception())
            if self._spare is spare:
                self._spare = None
            return
        self._later(spare.result().prepare(cast("Path", self._root) / "share"))

    async def _tidy(self) -> None:
        """Close what is not used."""
        while True:
            await asyncio.sleep(min(self._idle / 4, 30.0))
            for key, task in list(self._kernels.items()):
                if task.done() and not _is_dead(task) and task.result().idle_for > self._idle:
                    await self._close_one(key)
            spare = self._spare
            if spare is not None and spare.done() and (_is_dead(spare) or spare.result().idle_for > self._idle):
                self._spare = None
                await self._ended(spare)

    async def _close_one(self, key: str, only: Kernel | None = None) -> None:
        """End the kernel of a conversation, if there is one; `only` that one, if another may be there by now."""
        task = self._kernels.get(key)
        if task is None or (only is not None and _of(task) is not only):
            return
        del self._kernels[key]
        self._lost[key] = None
        await self._ended(task)

    async def _ended(self, task: asyncio.Task[Kernel]) -> None:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
        if not task.cancelled() and task.exception() is None:
            await task.result().aclose()

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _is_dead(task: asyncio.Task[Kernel]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None or not task.result().alive)


def _of(task: asyncio.Task[Kernel]) -> Kernel | None:
    """The kernel that a start has brought."""
    return task.result() if task.done() and not task.cancelled() and task.exception() is None else None


def _missing() -> str:
    """What stands in the way of trying any sandbox."""
    if sys.platform == "win32":
        return "it needs Linux"
    missing = [name for name in ("ipykernel", "jupyter_client", "zmq") if find_spec(name) is None]
    return f"the package {missing[0]} is not installed; run: {install_command('code')}" if missing else ""


async def run_here(
    key: str, code: str, files: Mapping[str, Path], timeout: float, progress: Callable[..., None] | None
) -> CodeResult:
    """Run code in this process's own kernels, from any loop. Raises ToolError."""
    work = _kernels().run(key, code, files=files, timeout=timeout, progress=progress)
    loop = shared_loop()
    if asyncio.get_running_loop() is loop:
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


@cache
def _kernels() -> Kernels:
    made = Kernels()
    shared_loop()  # it ends at exit as well: what is registered later ends sooner
    atexit.register(_close, made)
    return made


def _close(kernels: Kernels) -> None:
    run(kernels.aclose())
