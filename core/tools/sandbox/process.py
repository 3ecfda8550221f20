"""The process of one sandbox: started, watched and ended with all that it started itself."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import stat
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.tools.sandbox.work_folder import WorkFolder

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psutil

    from core.tools.sandbox.box import Box
    from core.tools.sandbox.drivers import Driver, Launch

_LOG = logging.getLogger(__name__)
_ENDING: Final = 5.0


class SandboxProcess:
    """A program in a box. Made on an event loop, whose thread must outlive it: it dies with that thread.

    Args:
        driver: How it is locked in.
        box: Its folders; removed with it.
        words: The program in the run folder, and its arguments.

    Raises:
        OSError: It cannot be started.
    """

    def __init__(self, driver: Driver, box: Box, words: Sequence[str]) -> None:
        self._driver, self._box = driver, box
        self._info, info = os.pipe()
        said, says = os.pipe()
        os.set_blocking(says, False)  # what nobody reads must hold up nobody
        try:
            self._launch: Launch = driver.launch(box, words, info=info)
            self._process = subprocess.Popen(  # noqa: S603 - our own words alone
                self._launch.command,
                env={},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=says,
                pass_fds=(info,) if self._launch.job_of_process else (),
                start_new_session=True,
                cwd="/",
            )
        except BaseException:
            os.close(said)
            os.close(self._info)
            raise
        finally:
            os.close(info)
            os.close(says)
        self._said = said
        self.ended = asyncio.Event()
        self._watched = os.pidfd_open(self._process.pid)
        asyncio.get_running_loop().add_reader(self._watched, self._over)

    @property
    def pid(self) -> int:
        """The number of the process that was started; those inside are below it."""
        return self._process.pid

    @property
    def own_quota(self) -> bool:
        """Whether the work folder is bounded by itself."""
        return self._launch.own_quota

    def open_place(self, name: str) -> int:
        """Open the `job` or `scratch` folder, once the program has begun. Raises OSError."""
        inner = getattr(self._launch.inner, name)
        path = Path(getattr(self._box.here, name))
        if self._launch.job_of_process:
            if not hasattr(self, "_inside"):
                self._inside = int(json.loads(os.read(self._info, 1000))["child-pid"])
            path = Path(f"/proc/{self._inside}/root{inner}")
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def work_folder(self) -> WorkFolder:
        """The work folder, from outside. Raises OSError."""
        return WorkFolder(self.open_place("job"), self._box.user)

    def last_words(self) -> str:
        """What it complained of last."""
        os.set_blocking(self._said, False)
        try:
            return os.read(self._said, 65536).decode(errors="replace").strip().rpartition("\n")[2][:300]
        except BlockingIOError:
            return ""

    def kill(self) -> None:
        """End it with all that it started; returns at once."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        last = self._driver.end(self._box)
        if last:
            subprocess.run(last, capture_output=True, check=False, timeout=_ENDING)  # noqa: S603 - our own words

    async def aclose(self) -> None:
        """End it, wait for that, and remove its folders."""
        self.kill()
        try:
            async with asyncio.timeout(_ENDING):
                await self.ended.wait()
        except TimeoutError:
            _LOG.warning("A sandbox did not end when it was killed.")
        self.tidy()

    def tidy(self) -> None:
        """Close and remove what is left; also where no loop runs any more."""
        for descriptor in (self._said, self._info):
            with suppress(OSError):
                os.close(descriptor)
        self._said = self._info = -1
        self._box.remove()

    def uses_more_than(self, limit: int) -> bool:
        """Whether all its processes together have more memory than so many bytes, what they share counted once."""
        import psutil

        family = self._family()
        alone = shared = 0
        for one in family:
            with suppress(psutil.Error):
                alone += one.memory_info().rss
        if alone <= limit:
            return False
        for one in family:  # only now, since it takes long: a forked process shares most of its memory
            with suppress(psutil.Error):
                shared += one.memory_full_info().pss
        return shared > limit

    def deleted(self) -> int:
        """Bytes of files that have no name any more, and stay as long as a process inside has them open."""
        sizes: dict[tuple[int, int], int] = {}
        for one in self._family():
            with suppress(OSError):  # it ended
                for path in Path(f"/proc/{one.pid}/fd").iterdir():
                    with suppress(OSError):
                        about = path.stat()
                        if stat.S_ISREG(about.st_mode) and not about.st_nlink:
                            sizes[about.st_dev, about.st_ino] = about.st_blocks * 512
        return sum(sizes.values())

    def _family(self) -> list[psutil.Process]:
        """Those below the process, and those of its group: one whose parent ended is below somebody else."""
        import psutil

        numbers = set[int]()
        with suppress(psutil.Error):
            top = psutil.Process(self.pid)
            numbers = {top.pid, *(one.pid for one in top.children(recursive=True))}
        found: list[psutil.Process] = []
        for number in psutil.pids():
            with suppress(OSError, psutil.Error):
                if number in numbers or os.getpgid(number) == self.pid:
                    found.append(psutil.Process(number))
        return found

    def _over(self) -> None:
        asyncio.get_running_loop().remove_reader(self._watched)
        os.close(self._watched)
        self._process.wait()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)  # what it left behind in its group
        self.ended.set()
