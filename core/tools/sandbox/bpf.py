"""The filter of system calls: a small program for the kernel, put together here, readable from top to bottom."""

from __future__ import annotations

import errno
import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator


# name: (x86_64, aarch64); None where an architecture has no such call
_TABLE: Final = """
    acct 163 89             add_key 248 217         adjtimex 159 171         bpf 321 280
    chroot 161 51           clock_adjtime 305 266   clock_settime 227 112    connect 42 203
    delete_module 176 106   fanotify_init 300 262   fanotify_mark 301 263    finit_module 313 273
    fsconfig 431 431        fsmount 432 432         fsopen 430 430           fspick 433 433
    init_module 175 105     io_uring_enter 426 426  io_uring_register 427 427 io_uring_setup 425 425
    ioperm 173 -            iopl 172 -              kcmp 312 272             kexec_file_load 320 294
    kexec_load 246 104      keyctl 250 219          lookup_dcookie 212 18    mbind 237 235
    memfd_create 319 279    memfd_secret 447 447    migrate_pages 256 238    mknod 133 -
    mknodat 259 33          modify_ldt 154 -        mount 165 40             mount_setattr 442 442
    move_mount 429 429      move_pages 279 239      mq_open 240 180          msgget 68 186
    name_to_handle_at 303 264 nfsservctl 180 42     open_by_handle_at 304 265 open_tree 428 428
    perf_event_open 298 241 personality 135 92      pidfd_getfd 438 438      pivot_root 155 41
    process_madvise 440 440 process_vm_readv 310 270 process_vm_writev 311 271 ptrace 101 117
    quotactl 179 60         quotactl_fd 443 443     reboot 169 142           request_key 249 218
    semget 64 190           setdomainname 171 162   sethostname 170 161      set_mempolicy 238 237
    setns 308 268           setpgid 109 154         setsid 112 157           settimeofday 164 170
    shmget 29 194           swapoff 168 225         swapon 167 224           syslog 103 116
    truncate 76 45          umount2 166 39          unshare 272 97           uselib 134 -
    userfaultfd 323 282     vhangup 153 58          inotify_add_watch 254 27 inotify_init 253 -
    inotify_init1 294 26    ioprio_set 251 30       mq_unlink 241 181       msgctl 71 187
    msgrcv 70 188           msgsnd 69 189           semctl 66 191           semop 65 193
    semtimedop 220 192      shmat 30 196            shmctl 31 195
    chmod 90 -              chown 92 -              fchmod 91 52             fchmodat 268 53
    fchmodat2 452 452       fchown 93 55            fchownat 260 54          futimesat 261 -
    lchown 94 -             utime 132 -             utimensat 280 88         utimes 235 -
    setxattr 188 5          lsetxattr 189 6         fsetxattr 190 7          setxattrat 463 463
    removexattr 197 14      lremovexattr 198 15     fremovexattr 199 16      removexattrat 466 466
    clone 56 220            clone3 435 435          ioctl 16 29              kill 62 129
    pidfd_send_signal 424 424 rt_sigqueueinfo 129 138 rt_tgsigqueueinfo 297 240 socket 41 198
    socketpair 53 199       tgkill 234 131          tkill 200 130
    prlimit64 302 261       sched_setaffinity 203 122 sched_setattr 314 274  sched_setparam 142 118
    sched_setscheduler 144 119 setpriority 141 140
"""
_WORDS: Final = _TABLE.split()


def _column(which: int) -> dict[str, int]:
    rows = zip(_WORDS[::3], _WORDS[which::3], strict=True)
    return {name: int(number) for name, number in rows if number != "-"}


NUMBERS: Final = {"x86_64": _column(1), "aarch64": _column(2)}

# Nothing is changed, and the caller is told that it was: copying a file sets its mode and times, and where the kernel
# runs as Parlour's own user these calls would reach files that Landlock does not guard.
PRETENDED: Final = frozenset(
    (
        "chmod",
        "chown",
        "fchmod",
        "fchmodat",
        "fchmodat2",
        "fchown",
        "fchownat",
        "futimesat",
        "lchown",
        "utime",
        "utimensat",
        "utimes",
    )
)
UNSUPPORTED: Final = frozenset(
    ("setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr", "removexattrat")
)
# Changed for the caller alone: where the kernel runs as Parlour's own user, Parlour's limits could be changed as well.
# The place is that of the argument which names the process; 0 is the caller.
OF_ONES_OWN: Final = {
    **dict.fromkeys(("prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"), 0),
    "setpriority": 1,
}
# For its own threads, which have numbers too, the notebook's channels insist on it.
PRETENDED_FOR_OTHERS: Final = frozenset(("sched_setparam", "sched_setscheduler"))
IN_PART: Final = frozenset(("clone", "clone3", "ioctl", "socket", "socketpair", *OF_ONES_OWN))
SIGNALS: Final = frozenset(("kill", "tgkill", "tkill", "pidfd_send_signal", "rt_sigqueueinfo", "rt_tgsigqueueinfo"))
DENIED: Final = frozenset(_WORDS[::3]) - PRETENDED - UNSUPPORTED - IN_PART - SIGNALS


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
