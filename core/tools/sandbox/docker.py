"""A container engine, for administrators who chose one: plain containers, or gVisor's (`runsc`) as their runtime."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.tools.sandbox import surroundings
from core.tools.sandbox.box import Box, Places, spec
from core.tools.sandbox.drivers import Launch, stated
from core.tools.sandbox.landlock import landlock_version

if TYPE_CHECKING:
    from collections.abc import Sequence

_INNER: Final = Places(Path("/run"), Path("/channels"), Path("/job"), Path("/tmp"), Path("/share"))  # noqa: S108 - its own
IMAGE: Final = "parlour-code"
"""The image that must be there: it has `python` with the packages of the extra `code`."""


class Docker:
    """`docker run` without a network, without rights, with the box's folders alone; inside it the same launcher."""

    name = "docker"
    runtime = ""
    exempt: tuple[str, ...] = ()

    def lacking(self) -> str:
        """Why it cannot even be tried."""
        if not surroundings.machine():
            return "it needs Linux on x86_64 or aarch64"
        return "" if shutil.which("docker") else "the program docker is not installed"

    def version(self) -> str:
        """Of the client."""
        found = shutil.which("docker")
        return stated(Path(found)) if found else ""

    def inside(self, box: Box) -> Places:
        """Short names of its own."""
        del box
        return _INNER

    def launch(self, box: Box, words: Sequence[str], *, info: int | None = None) -> Launch:
        """The container, named after the box so that it can be ended."""
        del info
        limits, here = box.limits, box.here
        user = box.user if box.user is not None else here.job.stat().st_uid
        how = {
            "uid": None,  # the container begins as the other user
            "landlock": landlock_version() if not self.runtime else 0,
            "anchors": (),
            "already": surroundings.processes_of_user() if box.user is None else 0,
            "own_signals": False,
            "more": (Path("/proc"),),
            "image": tuple(map(Path, ("/usr", "/lib", "/lib64", "/bin", "/opt", "/etc"))),
        }
        box.put("spec.json", spec(box, _INNER, words, how))
        command = [shutil.which("docker") or "docker", "run", "--rm", "--name", _name(box), "--pull", "never"]
        command += ["--runtime", self.runtime] if self.runtime else []
        command += ["--network", "none", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
        command += ["--pids-limit", str(limits.processes), "--memory", str(limits.memory), "--ipc", "none"]
        command += ["--ulimit", f"fsize={limits.file}", "--workdir", "/job"]
        command += ["--user", f"{user}:{user}"]
        command += ["--tmpfs", f"/tmp:rw,noexec,nosuid,nodev,size={limits.scratch},mode=1777"]  # noqa: S108 - inside
        for outside, inner, how in (
            (here.run, _INNER.run, "ro"),
            (here.channels, _INNER.channels, "rw"),
            (here.job, _INNER.job, "rw"),
            (here.share, _INNER.share, "ro"),
        ):
            command += ["--volume", f"{outside}:{inner}:{how}"]
        run = _INNER.run
        command += [IMAGE, "python", "-I", "-S", str(run / "confine.py"), str(run / "spec.json")]
        return Launch(tuple(command), _INNER)

    def end(self, box: Box) -> Sequence[str]:
        """Killing the client leaves the container behind."""
        return (shutil.which("docker") or "docker", "kill", _name(box))


class Runsc(Docker):
    """The same in gVisor, a kernel of its own in user space."""

    name = "runsc"
    runtime = "runsc"
    exempt = ("C19", "C20")  # without Landlock: a program brought along meets gVisor alone, files are watched


def _name(box: Box) -> str:
    return f"parlour-{box.folder.name}"
