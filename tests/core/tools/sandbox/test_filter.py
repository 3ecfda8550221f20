"""The filter of system calls, read by a small interpreter of its language, instruction by instruction."""

from __future__ import annotations

import errno
import struct

import pytest

from core.tools.sandbox.bpf import (
    ALLOW,
    ARCHITECTURES,
    DENIED,
    IN_PART,
    KILL,
    NUMBERS,
    OF_ONES_OWN,
    OWN_PID,
    PRETENDED,
    PRETENDED_FOR_OTHERS,
    SIGNALS,
    UNSUPPORTED,
    syscall_filter,
)

MACHINES = tuple(NUMBERS)


def verdict(program: bytes, machine: str, number: int, *arguments: int) -> int:
    """What the kernel would do with a call."""
    given = [*arguments, *[0] * (6 - len(arguments))]
    halves = [part for value in given for part in (value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF)]
    data = struct.pack("<IIQ12I", number & 0xFFFFFFFF, ARCHITECTURES[machine], 0, *halves)
    steps = list(struct.iter_unpack("<HBBI", program))
    held = at = 0
    while True:
        code, when, otherwise, value = steps[at]
        at += 1
        match code:
            case 0x20:
                (held,) = struct.unpack_from("<I", data, value)
            case 0x54:
                held &= value
            case 0x15:
                at += when if held == value else otherwise
            case 0x35:
                at += when if held >= value else otherwise
            case 0x45:
                at += when if held & value else otherwise
            case 0x06:
                return value
            case _:
                raise AssertionError(f"no such instruction: {code:#x}")


def error(answer: int) -> int:
    assert answer & 0xFFFF0000 == 0x00050000, hex(answer)
    return answer & 0xFFFF


@pytest.mark.parametrize("machine", MACHINES)
def test_c14_to_c17_what_a_notebook_never_needs_is_refused(machine: str) -> None:
    program = syscall_filter(machine)
    for name in DENIED & set(NUMBERS[machine]):
        assert error(verdict(program, machine, NUMBERS[machine][name])) == errno.EPERM, name
    for name in UNSUPPORTED:
        assert error(verdict(program, machine, NUMBERS[machine][name])) == errno.EOPNOTSUPP, name
    for name in PRETENDED & set(NUMBERS[machine]):
        assert verdict(program, machine, NUMBERS[machine][name]) == 0x00050000, name
    assert len(DENIED) >= 57


@pytest.mark.parametrize("machine", MACHINES)
def test_c9_to_c13_sockets_are_streams_of_the_unix_family_alone(machine: str) -> None:
    program, numbers = syscall_filter(machine), NUMBERS[machine]
    for name in ("socket", "socketpair"):
        assert verdict(program, machine, numbers[name], 1, 1 | 0o2000000) == ALLOW
        assert verdict(program, machine, numbers[name], 1, 5) == ALLOW
        assert error(verdict(program, machine, numbers[name], 1, 2)) == errno.EPROTONOSUPPORT
        for family in (0, 2, 10, 16, 17, 38, 40, 44):
            assert error(verdict(program, machine, numbers[name], family, 1)) == errno.EAFNOSUPPORT
    assert error(verdict(program, machine, numbers["connect"])) == errno.EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_threads_and_processes_are_made_but_no_namespaces(machine: str) -> None:
    program, numbers = syscall_filter(machine), NUMBERS[machine]
    assert verdict(program, machine, numbers["clone"], 0x003D0F00) == ALLOW  # a thread, as libc makes it
    for flag in (0x80, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x00020000):
        answer = verdict(program, machine, numbers["clone"], flag | 17)
        assert error(answer) == errno.EPERM, hex(flag)
    assert error(verdict(program, machine, numbers["clone3"])) == errno.ENOSYS
    assert error(verdict(program, machine, numbers["ioctl"], 0, 0x5412)) == errno.EPERM
    assert verdict(program, machine, numbers["ioctl"], 0, 0x5401) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_everyday_calls_pass(machine: str) -> None:
    program, taken = syscall_filter(machine), set(NUMBERS[machine].values())
    assert all(verdict(program, machine, number) == ALLOW for number in range(470) if number not in taken)
    assert set(NUMBERS[machine]) >= IN_PART


def test_a_call_of_another_architecture_ends_the_process() -> None:
    program = syscall_filter("x86_64")
    assert verdict(program, "aarch64", 0) == KILL
    assert error(verdict(program, "x86_64", 0x40000000 | 41)) == errno.ENOSYS  # the same calls by other numbers


@pytest.mark.parametrize("machine", MACHINES)
def test_c18_signals_stay_at_home_where_landlock_cannot_see_to_it(machine: str) -> None:
    strict, loose, numbers = syscall_filter(machine, only_own_signals=True), syscall_filter(machine), NUMBERS[machine]
    for name in SIGNALS:
        assert verdict(loose, machine, numbers[name], 1) == ALLOW
        assert error(verdict(strict, machine, numbers[name], 1)) == errno.EPERM, name
    for name in ("kill", "tgkill"):
        assert verdict(strict, machine, numbers[name], OWN_PID) == ALLOW
        assert verdict(strict, machine, numbers[name], -OWN_PID) == ALLOW
        assert error(verdict(strict, machine, numbers[name], -1)) == errno.EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_c30_limits_and_turns_are_changed_for_the_caller_alone(machine: str) -> None:
    program, numbers = syscall_filter(machine), NUMBERS[machine]
    for name, which in OF_ONES_OWN.items():
        assert verdict(program, machine, numbers[name], 0, 0) == ALLOW, name
        wrong = 0 if name in PRETENDED_FOR_OTHERS else errno.EPERM
        assert error(verdict(program, machine, numbers[name], *[0] * which, 4321)) == wrong, name
    assert error(verdict(program, machine, numbers["setpriority"], 2, 0)) == errno.EPERM  # all of a user
    assert error(verdict(program, machine, numbers["setpriority"], 1, 0)) == errno.EPERM  # all of a group


@pytest.mark.parametrize("machine", MACHINES)
def test_a_thread_that_sets_its_own_turn_by_its_number_goes_on(machine: str) -> None:
    """As libc's `pthread_setschedparam` asks for it; the notebook's channels end the process where it is refused."""
    program, numbers = syscall_filter(machine), NUMBERS[machine]
    for name in ("sched_setscheduler", "sched_setparam"):
        assert error(verdict(program, machine, numbers[name], 4321, 0)) == 0, name
