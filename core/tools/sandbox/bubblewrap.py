"""bubblewrap: namespaces of its own for files, processes and the network; inside them Landlock, filter and limits."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.tools.sandbox import surroundings
from core.tools.sandbox.box import Box, Places, spec
from core.tools.sandbox.drivers import Launch, stated
from core.tools.sandbox.landlock import hide_environment, landlock_version

if TYPE_CHECKING:
    from collections.abc import Sequence

_INNER: Final = Places(Path("/run"), Path("/channels"), Path("/job"), Path("/tmp"), Path("/share"))  # noqa: S108 - its own
_NOBODY: Final = "65534"


class Bubblewrap:
    """The program `bwrap`, which distributions ship as `bubblewrap`."""

    name = "bubblewrap"
    exempt: tuple[str, ...] = ()

    def lacking(self) -> str:
        """Why it cannot even be tried."""
        if not surroundings.machine():
            return "it needs Linux on x86_64 or aarch64"
        return "" if _program() else "the program bwrap is not installed (on Debian and Ubuntu: bubblewrap)"

    def version(self) -> str:
        """Of the program and of Landlock."""
        return f"{stated(_program())} {landlock_version()}"

    def inside(self, box: Box) -> Places:
        """Short names of its own."""
        del box
        return _INNER

    def launch(self, box: Box, words: Sequence[str], *, info: int | None = None) -> Launch:
        """`bwrap` around the launcher; whoever starts it must give it an empty environment."""
        if box.user is None:
            hide_environment()
        how = {
            "uid": box.user,
            "landlock": landlock_version(),
            "anchors": (),
            "already": 0,  # the user inside is counted by itself
            "own_signals": False,  # there is nobody else inside
            "more": (Path("/proc"),),
        }
        box.put("spec.json", spec(box, _INNER, words, how))
        told = ("--info-fd", str(info)) if info is not None else ()
        python, run = str(surroundings.python()), _INNER.run
        launcher = (python, "-I", "-S", str(run / "confine.py"), str(run / "spec.json"))
        command = (str(_program()), *told, *_namespaces(box), *_folders(box), "--remount-ro", "/", "--", *launcher)
        return Launch(command, _INNER, own_quota=True, job_of_process=True)

    def end(self, box: Box) -> Sequence[str]:
        """Nothing more: with its first process everything inside ends."""
        del box
        return ()


def _namespaces(box: Box) -> list[str]:
    """Started by root, the launcher itself becomes the other user, whose processes are then counted and limited."""
    words = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    words += ["--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
    if box.user is None:
        return [*words, "--unshare-user", "--uid", _NOBODY, "--gid", _NOBODY]
    return [
        *words,
        "--cap-add",
        "CAP_SETUID",
        "--cap-add",
        "CAP_SETGID",
        "--cap-add",
        "CAP_DAC_READ_SEARCH",
        "--cap-add",
        "CAP_SETPCAP",
    ]


def _folders(box: Box) -> list[str]:
    words: list[str] = []
    # Before what is shown: Python itself may stand below the temporary folder.
    for place, size in ((_INNER.scratch, box.limits.scratch), (_INNER.job, box.limits.folder)):
        words += ["--perms", "0700" if box.user is None else "0777", "--size", str(size), "--tmpfs", str(place)]
    seen: set[Path] = set()
    made: set[Path] = set()
    for path in (*surroundings.code_folders(), *surroundings.shown_paths()):
        if path.is_symlink() and path.parent == Path("/"):
            words += ["--symlink", str(path.readlink()), str(path)]
        elif not any(parent in seen for parent in path.parents):
            for parent in reversed(path.parents[:-1]):
                if parent not in made:  # made beforehand, or it would be as closed as it is outside
                    words += ["--perms", "0755", "--dir", str(parent)]
                    made.add(parent)
            seen.add(path)
            words += ["--ro-bind", str(path), str(path)]
    words += ["--proc", "/proc", "--dev", "/dev"]
    here = box.here
    words += ["--ro-bind", str(here.run), str(_INNER.run), "--bind", str(here.channels), str(_INNER.channels)]
    return [*words, "--ro-bind", str(here.share), str(_INNER.share)]


def _program() -> Path | None:
    found = shutil.which("bwrap")
    return Path(found) if found else None
