"""Locks a process in, then becomes the program that it is to run. Standard library alone: nothing else is at hand.

Run as `python -I -S confine.py spec.json`. In this order: what must be opened while it still can be, another user,
limits, Landlock, the filter of system calls, the program.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import struct
import sys
from pathlib import Path
from typing import Any

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446  # of Landlock, the same on both machines
_PDEATHSIG, _NO_NEW_PRIVS, _SECCOMP, _FILTER, _DROP_FROM_BOUNDS = 1, 38, 22, 2, 24
_READ, _RUN = 0x4 | 0x8, 0x1 | 0x4 | 0x8
_WRITE = 0x2 | 0x4 | 0x8 | 0x10 | 0x20 | 0x80 | 0x100 | 0x1000 | 0x400 | 0x2000 | 0x4000
_DEVICE = 0x2 | 0x4
_CHANNELS = 0x4 | 0x8 | 0x20 | 0x200  # sockets may be made there, files not
_RIGHTS = {"read": _READ, "run": _RUN, "write": _WRITE, "device": _DEVICE, "channels": _CHANNELS}
_OF_FILES = 0x1 | 0x2 | 0x4 | 0x4000  # the rights that a path has which is no folder
_ALL_OF_ABI = (0, 0x1FFF, 0x3FFF, 0x7FFF, 0x7FFF, 0xFFFF)

_libc = ctypes.CDLL(None, use_errno=True)


def main(spec: dict[str, Any]) -> None:
    """Do it; never returns."""
    opened = _opened(spec["paths"])
    anchors = _anchored(spec["anchors"])
    _empty_bounding_set()  # another user may no more
    if spec["uid"] is not None:
        os.setgroups([])
        os.setresgid(spec["uid"], spec["uid"], spec["uid"])
        os.setresuid(spec["uid"], spec["uid"], spec["uid"])
    os.umask(0o077)
    _prctl(_PDEATHSIG, signal.SIGKILL)
    if os.getsid(0) != os.getpid():
        os.setsid()
    for name, most in spec["limits"].items():
        resource.setrlimit(getattr(resource, name), (most, most))
    _empty_bounding_set()
    _drop_capabilities()
    _prctl(_NO_NEW_PRIVS, 1)
    if spec["landlock"]:
        _landlock(opened, spec["landlock"], networks=spec["networks"])
    for descriptor, _ in opened:
        os.close(descriptor)
    os.chdir(spec["folder"])
    _seccomp(bytes.fromhex(spec["filter"]), spec["pid_mark"])
    words = [_moved(word, anchors) for word in spec["command"]]
    words[0] = words[0] or sys.executable
    environment = {name: _moved(value, anchors) for name, value in spec["environment"].items()}
    os.execve(words[0], words, environment)  # noqa: S606 - no shell is meant


def _empty_bounding_set() -> None:
    """No program that is started later gets capabilities."""
    for number in range(64):
        if _libc.prctl(_DROP_FROM_BOUNDS, number, 0, 0, 0):
            break  # past the last, or not allowed


def _drop_capabilities() -> None:
    """For a root in name alone, who stays root: there are none now."""
    header, none = struct.pack("<Ii", 0x20080522, 0), bytes(24)
    _libc.capset(ctypes.c_char_p(header), ctypes.c_char_p(none))


def _opened(paths: list[tuple[str, str]]) -> list[tuple[int, int]]:
    """Each path that there is, with its rights; opened before the user changes, who may not be let through to it."""
    found: list[tuple[int, int]] = []
    for path, kind in paths:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        folder = Path(path).is_dir()
        found.append((descriptor, _RIGHTS[kind] if folder else _RIGHTS[kind] & _OF_FILES))
    return found


def _anchored(folders: list[str]) -> list[tuple[str, str]]:
    """Folders that the other user cannot walk to, such as a Python below somebody's home: reached by descriptor."""
    found: list[tuple[str, str]] = []
    for folder in folders:
        descriptor = os.open(folder, os.O_PATH)
        os.set_inheritable(descriptor, True)  # noqa: FBT003 - its own form
        found.append((folder, f"/proc/self/fd/{descriptor}"))
    return found


def _moved(word: str, anchors: list[tuple[str, str]]) -> str:
    for folder, place in anchors:
        word = word.replace(folder, place)
    return word


def _landlock(opened: list[tuple[int, int]], abi: int, *, networks: bool) -> None:
    handled = _ALL_OF_ABI[min(abi, 5)]
    ports, scoped = (3 if abi >= 4 and networks else 0), (3 if abi >= 6 else 0)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    rules = _called(_CREATE, struct.pack("<QQQ", handled, ports, scoped)[:size], size, 0)
    for descriptor, rights in opened:
        _called(_ADD_RULE, rules, 1, struct.pack("<Qi", rights & handled, descriptor), 0)
    _called(_RESTRICT, rules, 0)
    os.close(rules)


def _seccomp(program: bytes, mark: int) -> None:
    own = os.getpid()
    program = program.replace(struct.pack("<I", mark), struct.pack("<I", own))
    program = program.replace(struct.pack("<i", -mark), struct.pack("<i", -own))
    steps = ctypes.create_string_buffer(program, len(program))
    whole = struct.pack("HL", len(program) // 8, ctypes.addressof(steps))
    _prctl(_SECCOMP, _FILTER, ctypes.c_char_p(whole))


def _called(number: int, *arguments: bytes | int) -> int:
    given = [ctypes.c_char_p(one) if isinstance(one, bytes) else ctypes.c_long(one) for one in arguments]
    result = _libc.syscall(ctypes.c_long(number), *given)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"Landlock: {os.strerror(ctypes.get_errno())}")
    return result


def _prctl(option: int, *arguments: Any) -> None:
    given: list[Any] = [one if isinstance(one, ctypes.c_char_p) else ctypes.c_ulong(one) for one in arguments]
    given += [ctypes.c_ulong(0)] * (4 - len(given))
    if _libc.prctl(option, *given):
        raise OSError(ctypes.get_errno(), f"prctl {option}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text("utf-8")))
