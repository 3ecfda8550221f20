"""Tries to break out, as code in a cell could, and says for each case whether it was held. Standard library alone.

Run inside the sandbox as `python -I -B probe.py settings.json`; prints one JSON object: case to `[held, what was
seen]`. The numbers are those of the list in the tests.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import mmap
import os
import resource
import shutil
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Answer: TypeAlias = "tuple[bool, str]"

_libc = ctypes.CDLL(None, use_errno=True)
_NUMBERS = {"x86_64": (272, 101, 425, 319), "aarch64": (97, 117, 425, 279)}  # unshare, ptrace, io_uring_setup, memfd


def refused(do: Callable[[], object], *allowed: int) -> Answer:
    """Held if `do` fails, where numbers are given with one of these."""
    try:
        seen = do()
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, str(error))
        return not allowed or error.errno in allowed, name
    return False, f"it worked: {str(seen)[:80]}"


def read(path: str) -> object:
    """The beginning of a file, or the names in a folder."""
    whole = Path(path)
    return [one.name for one in whole.iterdir()][:5] if whole.is_dir() else whole.read_bytes()[:40]


def write(path: str) -> object:
    """A file made in a folder where none may be made."""
    made = Path(path, f"made-by-the-sandbox-{os.getpid()}")
    with made.open("xb") as file:
        size = file.write(b"x")
    made.unlink()  # it should never have come to this
    return size


def all_refused(attempts: Iterable[Callable[[], object]]) -> Answer:
    """Held if each attempt fails."""
    seen = [refused(attempt) for attempt in attempts]
    return all(held for held, _ in seen), ", ".join(dict.fromkeys(said for _, said in seen))


def both(one: Answer, other: Answer) -> Answer:
    """Held if both are."""
    return one[0] and other[0], f"{one[1]}, {other[1]}"


def call(number: int, *arguments: int) -> int:
    """A system call by its number."""
    result = _libc.syscall(ctypes.c_long(number), *[ctypes.c_long(one) for one in arguments])
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def passwd(settings: dict[str, Any]) -> Answer:
    """C1: the users of this machine; a container may have a list of its own."""
    other = Path("/etc/passwd")
    held, seen = refused(other.read_bytes)
    if not held and hashlib.sha256(other.read_bytes()).hexdigest() != settings["passwd"]:
        return True, "another file"
    return held, seen


def environment(settings: dict[str, Any]) -> Answer:
    """C6: nothing but what was put there."""
    names = set(os.environ)  # noqa: TID251 - it is what is looked at
    more = sorted(names - set(settings["environment"]) - {"LC_CTYPE"})
    return not more, f"{len(names)} names" if not more else f"also {more[:5]}"


def processes(settings: dict[str, Any]) -> Answer:
    """C7 and L6: of other processes nothing is seen, least of all the environment of Parlour."""
    try:
        seen = [path.name for path in Path("/proc").iterdir() if path.name.isdigit()]
    except OSError as error:
        seen, said = [], errno.errorcode.get(error.errno or 0, "")
    else:
        said = f"{len(seen)} processes"
    ours = refused(lambda: read(f"/proc/{settings['parent']}/environ"))
    own = {str(os.getpid()), str(os.getppid()), "1"}
    if not seen:
        return ours[0], said
    marks = [Path(f"/proc/{one}/environ") for one in sorted(own & set(seen))]
    leak = settings["canary"] and any(settings["canary"].encode() in content for content in map(_content, marks))
    return ours[0] and not leak and len(seen) <= 4, said


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def rights(_: dict[str, Any]) -> Answer:
    """C8: no capabilities, no new privileges, a filter."""
    header, data = struct.pack("<Ii", 0x20080522, 0), ctypes.create_string_buffer(24)
    _libc.capget(ctypes.c_char_p(header), data)
    effective = struct.unpack("<6I", data.raw)[0::3]
    locked, filtered = _libc.prctl(39, 0, 0, 0, 0), _libc.prctl(21, 0, 0, 0, 0)
    held = not any(effective) and locked == 1 and filtered == 2
    return held, f"capabilities {effective}, no_new_privs {locked}, seccomp {filtered}, uid {os.getuid()}"


def connect(family: int, kind: int, address: Any) -> None:
    """Open a socket and connect it."""
    with socket.socket(family, kind) as one:
        one.settimeout(1)
        one.connect(address)


def unix(path: str) -> None:
    """Reach another program's socket."""
    connect(socket.AF_UNIX, socket.SOCK_STREAM, path)


def own_program(settings: dict[str, Any]) -> Answer:
    """C19: a program brought along is not started as one; what the system's loader makes of it is told.

    The loader maps a file as it maps a library. What it runs may do no more than Python's own code, which is proved.
    """
    path = Path(settings["folder"], "brought")
    shutil.copyfile(sys.executable, path)
    try:
        held, seen = refused(lambda: _started([str(path), "-c", "pass"]))
        loader = _loader(sys.executable)
        if held and loader:
            held, more = _by_loader(loader, path, settings)
            seen = f"{seen}; {more}"
    finally:
        path.unlink()
    return held, seen


def _by_loader(loader: str, path: Path, settings: dict[str, Any]) -> Answer:
    """Whether a program that the loader runs has the rights of this one: it looks for itself, as this one does."""
    told, answer = path.with_name("brought.json"), path.with_name("brought.out")
    told.write_text(json.dumps({**settings, "cases": ["C8", "C10", "C14"]}), encoding="utf-8")
    words = [loader, str(path), "-I", "-S", "-B", __file__, str(told), str(answer)]
    try:
        status = _started(words, {"PYTHONHOME": sys.base_prefix})
        if status or not answer.is_file():
            return True, f"handed to the system's loader it does not run ({status})"
        found: dict[str, Answer] = json.loads(answer.read_text("utf-8"))
    except OSError as error:
        return True, f"nor does the system's loader run it ({errno.errorcode.get(error.errno or 0, '')})"
    finally:
        told.unlink()
        answer.unlink(missing_ok=True)
    more = [name for name, (held, _) in found.items() if not held]
    if more:
        return False, f"handed to the system's loader it runs, with more rights: {more}"
    return True, "handed to the system's loader it runs, with no more rights than Python's own code"


def _loader(program: str) -> str:
    """The loader that a program names in its ELF header; empty where it names none."""
    with Path(program).open("rb") as file:
        head = file.read(64)
        if head[:5] != b"\x7fELF\x02":
            return ""
        start, size, count = struct.unpack("<Q", head[32:40])[0], *struct.unpack("<HH", head[54:58])
        for number in range(count):
            file.seek(start + number * size)
            kind, _, offset, _, _, length = struct.unpack("<IIQQQQ", file.read(40))
            if kind == 3:
                file.seek(offset)
                return file.read(length).rstrip(b"\0").decode()
    return ""


def _started(words: list[str], environment: dict[str, str] | None = None) -> int:
    """The exit code of a program. Raises OSError where it is not started."""
    child = os.fork()
    if not child:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 2)
        try:
            os.execve(words[0], words, environment or {})  # noqa: S606 - no shell is meant
        except OSError as error:
            os._exit(error.errno or 1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status in {errno.EACCES, errno.EPERM, errno.ENOEXEC, errno.ENOENT}:
        raise OSError(status, os.strerror(status))
    return status


def fill(settings: dict[str, Any]) -> Answer:
    """C20: one file ends at its limit, and no folder takes one in but the two that are meant."""
    path = Path(settings["folder"], "large")
    limit, block, written = settings["file_limit"], b"\0" * (1 << 20), 0
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    seen = "no limit"
    try:
        with path.open("wb", buffering=0) as file:
            os.posix_fallocate(file.fileno(), 0, limit + (1 << 20))
            written = file.write(block)
    except OSError as error:
        seen = errno.errorcode.get(error.errno or 0, "")
    finally:
        path.unlink(missing_ok=True)
    others = all_refused(lambda place=place: write(place) for place in settings["not_writable"])
    return seen in {"EFBIG", "ENOSPC"} and others[0] and not written, f"{seen}; elsewhere {others[1]}"


def allocate(settings: dict[str, Any]) -> Answer:
    """C21: six gigabytes are refused, and the process lives."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    try:
        with mmap.mmap(-1, 6 << 30):
            return False, "6 GB were given"
    except (OSError, MemoryError):
        return 0 < limit <= settings["memory"], "MemoryError"


def fork(settings: dict[str, Any]) -> Answer:
    """C22: a bomb ends early. Each child waits for the pipe to close, so that all end with the probe."""
    ends, count, stopped = os.pipe(), 0, ""
    try:
        while count < settings["processes"] + 50:
            child = os.fork()
            if not child:
                os.close(ends[1])
                os.read(ends[0], 1)
                os._exit(0)
            count += 1
    except OSError as error:
        stopped = errno.errorcode.get(error.errno or 0, "")
    os.close(ends[1])
    for _ in range(count):
        os.wait()
    return stopped == "EAGAIN" and count <= settings["processes"], f"{stopped or 'no limit'} after {count}"


def main(settings: dict[str, Any]) -> dict[str, Answer]:
    """All cases."""
    unshare, ptrace, uring, memfd = _NUMBERS[os.uname().machine]
    listening, stream = settings["listening"], socket.SOCK_STREAM
    inet, vsock, netlink = socket.AF_INET, getattr(socket, "AF_VSOCK", 40), getattr(socket, "AF_NETLINK", 16)
    call_out(settings["wire"])
    cases = {
        "C1": lambda: passwd(settings),
        "C2": lambda: all_refused(lambda path=path: read(path) for path in settings["source"]),
        "C3": lambda: all_refused(lambda path=path: read(path) for path in settings["private"]),
        "C4": lambda: refused(lambda: read(settings["others_file"])),
        "C5": lambda: all_refused(lambda path=path: write(path) for path in settings["packages"]),
        "C6": lambda: environment(settings),
        "C7": lambda: processes(settings),
        "C8": lambda: rights(settings),
        "C9": lambda: refused(lambda: connect(inet, stream, ("127.0.0.1", listening))),
        "C10": lambda: refused(lambda: connect(inet, stream, ("192.0.2.1", 53))),
        "C11": lambda: refused(lambda: socket.getaddrinfo("example.com", 80)),
        "C12": lambda: refused(lambda: connect(vsock, stream, (2, 1024)), errno.EAFNOSUPPORT),
        "C13": lambda: refused(lambda: socket.socket(netlink, socket.SOCK_RAW, 0)),
        "C14": lambda: refused(lambda: call(unshare, 0x10000000), errno.EPERM),
        "C15": lambda: refused(lambda: call(ptrace, 16, os.getppid(), 0, 0), errno.EPERM),
        "C16": lambda: refused(lambda: call(uring, 4, 0), errno.EPERM, errno.ENOSYS),
        "C17": lambda: refused(lambda: mount(settings["folder"])),
        "C18": lambda: all_refused(lambda pid=pid: os.kill(pid, 0) for pid in settings["pids"]),
        "C19": lambda: both(refused(lambda: call(memfd, 0, 0), errno.EPERM), own_program(settings)),
        "C20": lambda: fill(settings),
        "C21": lambda: allocate(settings),
        "C22": lambda: fork(settings),
        "C27": lambda: all_refused([lambda: unix(settings["socket"]), lambda: read(settings["neighbour"])]),
        "C30": lambda: all_refused(lambda pid=pid: limits_of(pid) for pid in settings["pids"]),
    }
    wanted = settings.get("cases") or [name for name in cases if name not in settings["exempt"]]
    return {name: _tried(cases[name]) for name in wanted}


def limits_of(pid: int) -> object:
    """C30: whoever may read the limits of another process with one and the same call may change them."""
    return resource.prlimit(pid, resource.RLIMIT_CORE)


def _tried(case: Callable[[], Answer]) -> Answer:
    try:
        return case()
    except Exception as error:  # noqa: BLE001 - what cannot be tried is not proved to be held
        return False, f"{type(error).__name__}: {error}"


def mount(folder: str) -> None:
    """C17."""
    if _libc.mount(b"none", folder.encode(), b"tmpfs", 0, None):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def call_out(path: str) -> None:
    """Make a socket as a kernel does; whether it is seen outside is looked at there."""
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path)
    except OSError:
        pass


if __name__ == "__main__":
    answers = json.dumps(main(json.loads(Path(sys.argv[1]).read_text("utf-8"))))
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(answers, encoding="utf-8")
    else:
        print(answers)  # noqa: T201 - its answer
