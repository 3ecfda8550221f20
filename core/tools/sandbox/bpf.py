"""The filter of system calls: a small program for the kernel, put together here, readable from top to bottom."""

from __future__ import annotations

import errno
import struct
from typing import TYPE_CHECKING, Final

from core.tools.sandbox.syscalls import (
    DENIED,
    NUMBERS,
    OF_ONES_OWN,
    PRETENDED,
    PRETENDED_FOR_OTHERS,
    SIGNALS,
    UNSUPPORTED,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

OWN_PID: Final = 0x70_69_64_21
"""Stands in the filter for the process's own number; `inside/confine.py` puts the number there."""

ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW: Final = 0x7FFF0000
KILL: Final = 0x80000000
_ERRNO: Final = 0x00050000

_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16  # offsets in `struct seccomp_data`
_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_EQUAL, _AT_LEAST, _ANY_OF = 0x15, 0x35, 0x45

_X32: Final = 0x40000000
_NEW_NAMESPACES: Final = 0x7E020080  # CLONE_NEWTIME to CLONE_NEWNET
_TERMINAL_INPUT: Final = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_AF_UNIX, _SOCK_STREAM, _SOCK_SEQPACKET = 1, 1, 5


def syscall_filter(machine: str, *, only_own_signals: bool = False) -> bytes:
    """The program as the kernel wants it: eight bytes for each instruction.

    What a notebook has no use for is refused; sockets are those of the Unix family alone, and none connects; threads
    and processes are allowed, new namespaces are not.

    Args:
        machine: `x86_64` or `aarch64`.
        only_own_signals: Signals go to the own process and its group alone, where Landlock cannot see to that.

    Raises:
        KeyError: Another machine.
    """
    return b"".join(_program(NUMBERS[machine], ARCHITECTURES[machine], only_own_signals=only_own_signals))


def _program(numbers: dict[str, int], architecture: int, *, only_own_signals: bool) -> Iterator[bytes]:
    yield _step(_LOAD, _ARCH)
    yield from _when(_EQUAL, architecture, skip=1)
    yield _step(_RETURN, KILL)
    yield _step(_LOAD, _NUMBER)
    yield from _answer(_AT_LEAST, _X32, errno.ENOSYS)
    for name in sorted(numbers):
        if name in DENIED:
            yield from _answer(_EQUAL, numbers[name], errno.EPERM)
        elif name in PRETENDED:
            yield from _answer(_EQUAL, numbers[name], 0)
        elif name in UNSUPPORTED:
            yield from _answer(_EQUAL, numbers[name], errno.EOPNOTSUPP)
    yield from _answer(_EQUAL, numbers["clone3"], errno.ENOSYS)  # its flags lie out of sight; libc then takes `clone`
    yield from _rule(numbers["clone"], [*_argument(0), *_answer(_ANY_OF, _NEW_NAMESPACES, errno.EPERM)])
    terminal = [step for request in _TERMINAL_INPUT for step in _answer(_EQUAL, request, errno.EPERM)]
    yield from _rule(numbers["ioctl"], [*_argument(1), *terminal])
    for name in ("socket", "socketpair"):
        yield from _rule(numbers[name], _sockets())
    for name, which in OF_ONES_OWN.items():
        yield from _rule(numbers[name], _own_alone(name, which))
    if only_own_signals:
        for name in sorted(SIGNALS):
            own = [*_argument(0), *_own_pid()] if name in {"kill", "tgkill"} else []
            yield from _rule(numbers[name], [*own, _step(_RETURN, _ERRNO | errno.EPERM)])
    yield _step(_RETURN, ALLOW)


def _sockets() -> list[bytes]:
    """Streams of the Unix family: what the notebook's own channels are. A datagram could be sent to any path."""
    return [
        *_argument(0),
        *_when(_EQUAL, _AF_UNIX, skip=1),
        _step(_RETURN, _ERRNO | errno.EAFNOSUPPORT),
        *_argument(1),
        _step(_AND, 0xF),
        *_when(_EQUAL, _SOCK_STREAM, skip=2),
        *_when(_EQUAL, _SOCK_SEQPACKET, skip=1),
        _step(_RETURN, _ERRNO | errno.EPROTONOSUPPORT),
    ]


def _own_alone(name: str, which: int) -> list[bytes]:
    """The process that is named must be the caller, by 0; of `setpriority` no group and no user either."""
    answer = _step(_RETURN, _ERRNO | (0 if name in PRETENDED_FOR_OTHERS else errno.EPERM))
    own = [*_when(_EQUAL, 0, skip=1), answer]
    return [*(_argument(0) + own if name == "setpriority" else []), *_argument(which), *own]


def _own_pid() -> list[bytes]:
    """Allowed for the own process; for its group (its number below zero) too, which the launcher writes second."""
    return [
        *_when(_EQUAL, OWN_PID, skip=1),
        *_when(_EQUAL, -OWN_PID & 0xFFFFFFFF, skip=0, otherwise=1),
        _step(_RETURN, ALLOW),
    ]


def _rule(number: int, steps: list[bytes]) -> list[bytes]:
    """Steps for one call alone; past them the call's number is loaded again."""
    body = [*steps, _step(_LOAD, _NUMBER)]
    return [*_when(_EQUAL, number, skip=0, otherwise=len(body)), *body]


def _argument(which: int) -> list[bytes]:
    """Load the lower half of an argument."""
    return [_step(_LOAD, _FIRST_ARGUMENT + 8 * which)]


def _answer(test: int, value: int, error: int) -> list[bytes]:
    """If the test holds, the call fails with `error`, or with 0 does nothing."""
    return [_step(test, value, 0, 1), _step(_RETURN, _ERRNO | error)]


def _when(test: int, value: int, *, skip: int, otherwise: int = 0) -> list[bytes]:
    """Skip so many steps where the test holds, and so many where it does not."""
    return [_step(test, value, skip, otherwise)]


def _step(code: int, value: int, when: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("<HBBI", code, when, otherwise, value)
