"""The self-test: tries to break out of each driver, in a real child, and keeps the first that holds."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from core.storage.data_folder import drafted
from core.tools.sandbox import surroundings
from core.tools.sandbox.box import Box, Limits, environment
from core.tools.sandbox.drivers import DRIVERS, ON_THEIR_OWN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.tools.sandbox.drivers import Driver

_LOG = logging.getLogger(__name__)
_WITHIN: Final = 60.0
_SOURCE: Final = Path(__file__).resolve().parents[2]
_FEW: Final = 3
_WIRE: Final = "wire"
_UNHEARD: Final = "a socket that it makes is not seen outside; gVisor needs its option --host-uds=create"
_SLOW: Final = "nothing was heard within"
_RIGHTS: Final = ("Cap", "NoNewPrivs", "Seccomp", "Groups")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the self-test says of one driver.

    Args:
        held: Whether every case was refused.
        reason: Why it cannot be used; empty where it can.
        cases: What each case met, by its number.
    """

    driver: str
    held: bool
    reason: str = ""
    cases: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Choice:
    """The driver that is used, if any, and what was said of those that were tried."""

    driver: str
    verdicts: tuple[Verdict, ...]

    @property
    def reason(self) -> str:
        """One sentence for `/readyz` and for people."""
        not_held = [one for one in self.verdicts if not one.held]
        refused = "; ".join(f"{one.driver}: {one.reason}" if one.driver else one.reason for one in not_held)
        if self.driver:
            cases = self.verdicts[-1].cases
            own = f"; a program that code brings along: {cases['C19']}" if "C19" in cases else ""
            return f"{self.driver} held all {len(cases)} cases{own}" + (f" ({refused})" if refused else "")
        return refused or "it is switched off by the settings"


def choose(wanted: str, root: Path, private: Iterable[Path] = (), known: Path | None = None) -> Choice:
    """Try the drivers; takes about a second each, and nothing where the answer of this start of the machine is known.

    Args:
        wanted: `auto`, the name of a driver, or `off`.
        root: A folder to work in.
        private: Folders that must not be seen inside.
        known: A file that keeps the answer.

    Raises:
        OSError: The folder cannot be used.
    """
    if wanted == "off":
        return Choice("", ())
    drivers = [DRIVERS[name]() for name in (ON_THEIR_OWN if wanted == "auto" else (wanted,))]
    private = tuple(private)
    mark = _mark(drivers, private)
    kept = _kept(known, mark)
    if kept is not None:
        return kept
    verdicts: list[Verdict] = []
    for driver in drivers:
        verdicts.append(try_out(driver, root, private))
        if verdicts[-1].held:
            break
    choice = Choice(verdicts[-1].driver if verdicts[-1].held else "", tuple(verdicts))
    _LOG.info("Sandbox: %s.", choice.reason)
    # Where nothing held, or one was too slow, it may be otherwise next time: what is kept is what was seen to hold.
    if known is not None and choice.driver and not any(_SLOW in one.reason for one in verdicts):
        _keep(known, mark, choice)
    return choice


def try_out(driver: Driver, root: Path, private: Iterable[Path] = (), limits: Limits | None = None) -> Verdict:
    """Run all cases in one driver. Raises OSError."""
    lacking = driver.lacking()
    if lacking:
        return Verdict(driver.name, held=False, reason=lacking)
    try:
        answers = _answers(driver, root, private, limits or Limits())
    except (subprocess.SubprocessError, OSError, ValueError) as error:
        return Verdict(driver.name, held=False, reason=f"it does not start here ({_said(error)})")
    cases = {name: seen for name, (_, seen) in answers.items()}
    open_ones = [f"{name} ({seen})" for name, (held, seen) in answers.items() if not held]
    reason = f"it does not hold {', '.join(open_ones[:_FEW])}" if open_ones else ""
    return Verdict(driver.name, held=not open_ones, reason=reason, cases=cases)


def _answers(driver: Driver, root: Path, private: Iterable[Path], limits: Limits) -> dict[str, tuple[bool, str]]:
    with ExitStack() as stack:
        share = root / "share"
        share.mkdir(mode=0o755, exist_ok=True)
        box, neighbour = Box.make(root, share, limits), Box.make(root, share, limits)
        stack.callback(box.remove)
        stack.callback(neighbour.remove)
        bait = stack.enter_context(_Bait(root))
        box.put("settings.json", json.dumps(_told(driver, box, neighbour, bait, private)))
        settings = str(driver.inside(box).run / "settings.json")
        command = driver.launch(box, ("probe.py", settings)).command
        done = subprocess.run(  # noqa: S603 - our own words alone
            command, capture_output=True, timeout=_WITHIN, env={}, stdin=subprocess.DEVNULL, check=False
        )
        if done.returncode or not done.stdout.strip():
            raise ValueError(done.stderr.decode(errors="replace").strip().rpartition("\n")[2] or done.returncode)
        if not (box.here.channels / _WIRE).is_socket():
            raise ValueError(_UNHEARD)
        return {name: (bool(one[0]), str(one[1])) for name, one in json.loads(done.stdout).items()}


class _Bait:
    """What is there to be reached from inside: a port, a socket with a name, a file of another."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._port = socket.create_server(("127.0.0.1", 0))
        self._named = socket.socket(socket.AF_UNIX)
        self.path = root / f"bait-{os.getpid()}"
        self.file = root / f"file-{os.getpid()}"

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._port.getsockname()[1])

    def __enter__(self) -> _Bait:
        self._named.bind(str(self.path))
        self._named.listen(1)
        self.path.chmod(0o777)
        self.file.write_text("private", encoding="ascii")
        return self

    def __exit__(self, *_: object) -> None:
        self._port.close()
        self._named.close()
        self.path.unlink(missing_ok=True)
        self.file.unlink(missing_ok=True)


def _told(driver: Driver, box: Box, neighbour: Box, bait: _Bait, private: Iterable[Path]) -> dict[str, Any]:
    inner = driver.inside(box)
    elsewhere = inner.run != box.here.run  # in a world of its own, where our numbers of processes mean others
    code = surroundings.code_folders()
    shown = any(_SOURCE.is_relative_to(folder) for folder in code)  # installed among the packages, for all to read
    hidden = [entry for folder in (Path.home(), *private) for entry in _entries(folder, code)]
    return {
        "exempt": driver.exempt,
        "passwd": _digest(Path("/etc/passwd")),
        "parent": 0 if elsewhere else os.getpid(),
        "canary": "",
        "wire": str(inner.channels / _WIRE),
        "environment": [*environment(inner), "LD_LIBRARY_PATH"],
        "source": [] if shown else [str(_SOURCE), str(_SOURCE / "errors.py")],
        "private": [str(path) for path in hidden],
        "others_file": str(bait.file),
        "packages": [str(path) for path in (*surroundings.packages(), *code[:1])],
        "listening": bait.port,
        "socket": str(bait.path),
        "neighbour": str(neighbour.here.job),
        "folder": str(inner.job),
        "not_writable": ["/", "/dev/shm", *map(str, (inner.run, inner.channels, inner.share))],  # noqa: S108 - a case
        "pids": [1, os.getpid()] if not elsewhere else [os.getpid() + 4_000_000],
        "file_limit": box.limits.file,
        "memory": box.limits.memory,
        "processes": box.limits.processes + (surroundings.processes_of_user() if box.user is None else 0),
    }


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _entries(folder: Path, shown: Iterable[Path]) -> list[Path]:
    """A few things in a folder, less those on the way to what is shown; the folder itself where it has none."""
    try:
        names = [folder / name for name in sorted(os.listdir(folder))]  # noqa: PTH208 - names alone
    except OSError:
        return []
    hidden = [path for path in names if not any(one.is_relative_to(path) for one in shown)]
    return hidden[:_FEW] or [folder]


def _said(error: Exception) -> str:
    if isinstance(error, subprocess.TimeoutExpired):
        return f"{_SLOW} {_WITHIN:.0f} seconds"
    return str(error)[:200] or type(error).__name__


def _mark(drivers: Iterable[Driver], private: Iterable[Path]) -> str:
    """Changes with the start of the machine, the drivers, Python, the user, what is shown and hidden, and these tests.

    A container has the machine's start and often its data folder, but neither its rights nor its namespaces.
    """
    boot = Path("/proc/sys/kernel/random/boot_id")
    parts = [boot.read_text("ascii") if boot.exists() else "", sys.version, sys.executable, str(os.getuid())]
    parts += [_rights(), *map(str, (*private, Path.home(), *surroundings.code_folders(), *surroundings.shown_paths()))]
    parts += [f"{driver.name} {driver.version()}" for driver in drivers]
    parts += [path.read_text("utf-8") for path in sorted(Path(__file__).parent.rglob("*.py"))]
    return sha256("\n".join(parts).encode()).hexdigest()


def _rights() -> str:
    """What this process may do, and in which world it is."""
    told: list[str] = []
    with suppress(OSError):
        told += [os.readlink(f"/proc/self/ns/{kind}") for kind in ("mnt", "pid", "user")]  # noqa: PTH115 - no paths
        told += [Path("/proc/sys/user/max_user_namespaces").read_text("ascii")]
    with suppress(OSError):
        status = Path("/proc/self/status").read_text("utf-8", "replace")
        told += [line for line in status.splitlines() if line.startswith(_RIGHTS)]
    return "\n".join(told)


def _kept(path: Path | None, mark: str) -> Choice | None:
    try:
        told: dict[str, Any] = json.loads(path.read_text("utf-8")) if path is not None else {}
        if told.get("mark") != mark:
            return None
        return Choice(told["driver"], tuple(Verdict(**one) for one in cast("list[Any]", told["verdicts"])))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _keep(path: Path, mark: str, choice: Choice) -> None:
    try:
        with drafted(path, lasts=False) as draft:
            draft.touch(mode=0o600)
            draft.write_text(json.dumps({"mark": mark, **asdict(choice)}), encoding="utf-8")
    except OSError as error:
        _LOG.warning("What the sandbox's test found is not kept: %s.", error)
