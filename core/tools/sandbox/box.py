"""The folders of one sandbox, and what its launcher is told."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from core.tools.sandbox import surroundings
from core.tools.sandbox.bpf import OWN_PID, syscall_filter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_INSIDE: Final = Path(__file__).parent / "inside"
_PROGRAMS: Final = ("confine.py", "kernel.py", "probe.py")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a sandbox may use.

    Args:
        memory: Bytes of address space for each process.
        processes: Processes and threads in all.
        file: Bytes of one file.
        folder: Bytes of all files in the work folder.
        entries: Files and folders in all its folders together, where no file system of its own bounds them.
        scratch: Bytes of all temporary files.
        output: Bytes that one cell may print.
    """

    memory: int = 4 << 30
    processes: int = 128
    files: int = 256
    file: int = 100 << 20
    folder: int = 256 << 20
    entries: int = 20_000
    scratch: int = 128 << 20
    output: int = 256 << 10

    def for_launcher(self, already: int) -> dict[str, int]:
        """For `setrlimit`; `already` are processes of the same user that count as well."""
        return {
            "RLIMIT_AS": self.memory,
            "RLIMIT_NPROC": self.processes + already,
            "RLIMIT_NOFILE": self.files,
            "RLIMIT_FSIZE": self.file,
            "RLIMIT_CORE": 0,
        }


@dataclass(frozen=True, slots=True)
class Places:
    """The folders as the sandbox sees them."""

    run: Path
    channels: Path
    job: Path
    scratch: Path
    share: Path


@dataclass(slots=True)
class Box:
    """One sandbox's folders on this machine: for its user alone, under a name that cannot be guessed.

    Args:
        folder: Its folder, which this class made.
        user: The user it runs as; None for the own one.
        share: A folder with fonts for all sandboxes.
    """

    folder: Path
    user: int | None
    share: Path
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def make(cls, root: Path, share: Path, limits: Limits) -> Box:
        """Make the folders below `root`. Raises OSError."""
        folder = root / secrets.token_hex(8)
        folder.mkdir(mode=0o700)
        box = cls(folder, surroundings.user_of_its_own(root), share, limits)
        try:
            box.give(folder)
        except OSError:
            box.user = None  # root in name alone, as in some containers
        for path in (box.here.run, box.here.channels, box.here.job, box.here.scratch):
            path.mkdir(mode=0o700)
            box.give(path)
        for name in _PROGRAMS:
            box.put(name, (_INSIDE / name).read_text("utf-8"))
        return box

    @property
    def here(self) -> Places:
        """The folders as this machine has them."""
        at = self.folder
        return Places(at / "run", at / "ch", at / "job", at / "tmp", self.share)

    def put(self, name: str, text: str) -> None:
        """A file for the launcher or kernel to read."""
        path = self.here.run / name
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "w", encoding="utf-8") as file:
            file.write(text)
        self.give(path)

    def give(self, path: Path) -> None:
        """Make the sandbox's user the owner."""
        if self.user is not None:
            os.chown(path, self.user, self.user)

    def remove(self) -> None:
        """Delete all of it; links are removed, never followed."""
        shutil.rmtree(self.folder, ignore_errors=True)


def environment(inner: Places) -> dict[str, str]:
    """All variables that there are inside."""
    scratch = str(inner.scratch)
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2")
    return {
        "HOME": str(inner.job),
        "TMPDIR": scratch,
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "MPLCONFIGDIR": f"{scratch}/plots",
        "IPYTHONDIR": f"{scratch}/ipython",
        "JUPYTER_PLATFORM_DIRS": "1",
        "XDG_DATA_HOME": str(inner.share),
        **{f"XDG_{kind.upper()}_HOME": f"{scratch}/{kind}" for kind in ("cache", "config", "state")},
        **threads,
    }


def spec(box: Box, inner: Places, words: Sequence[str], how: Mapping[str, Any]) -> str:
    """What `confine.py` reads.

    Args:
        inner: Its folders as the sandbox sees them.
        words: The program to run: a name in the run folder, and its arguments.
        how: The driver's part: `uid`, `landlock` (its version, 0 for none), `anchors`, `already`, `own_signals`; `more`
            folders to be read; `image` are the folders of a container's programs, where Python is another.
    """
    python = str(surroundings.python()) if "image" not in how else ""  # the launcher's own
    paths = [(path, "run") for path in how.get("image", surroundings.code_folders())]
    paths += [(path, "read") for path in (*surroundings.shown_paths(), inner.run, inner.share, *how.get("more", ()))]
    paths += [(Path(path), "device") for path in surroundings.DEVICES]
    paths += [(inner.channels, "channels"), (inner.job, "write"), (inner.scratch, "write")]
    program = syscall_filter(surroundings.machine(), only_own_signals=bool(how["own_signals"]))
    variables = environment(inner)
    if how["anchors"]:  # Python's own library is looked for where it was built to lie, past a closed door
        variables["LD_LIBRARY_PATH"] = str(surroundings.python().parent.parent / "lib")
    told = {
        "uid": how["uid"],
        "limits": box.limits.for_launcher(how["already"]),
        "landlock": how["landlock"],
        "networks": True,
        "paths": [(str(path), kind) for path, kind in paths],
        "anchors": [str(path) for path in how["anchors"]],
        "folder": str(inner.job),
        "filter": program.hex(),
        "pid_mark": OWN_PID,
        "command": [python, "-I", *([] if "image" in how else ["-S"]), "-B", str(inner.run / words[0]), *words[1:]],
        "environment": variables,
    }
    return json.dumps(told)
