"""Which process answers a run, and what can be proved about it from here."""

from __future__ import annotations

import os
import platform
import uuid
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

import psutil

Standing: TypeAlias = Literal["alive", "dead", "unknown"]

_PROC = Path("/proc")


def this_worker() -> str:
    """The name of this process."""
    return worker_of(os.getpid())


def worker_of(number: int) -> str:
    """The name of a process: where it runs, its number there and when it began, since numbers are used again."""
    return f"{_place()}/{number}@{_began(number)}"


def standing(worker: str) -> Standing:
    """Whether a process lives, as far as it can be proved.

    Process numbers mean something only where they were given: a process of another machine, of another container or of
    before the last start of the machine is `unknown`, never `dead`.
    """
    place, _, process = worker.rpartition("/")
    number, _, began = process.partition("@")
    if place != _place() or not number.isdecimal() or not began:
        return "unknown"
    return "alive" if _began(int(number)) == began else "dead"


@cache
def _place() -> str:
    """The space in which this process has its number; one of its own where that cannot be told."""
    if platform.system() != "Linux":
        return f"{platform.node()}-{uuid.getnode():x}"
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        namespace = (_PROC / "self/ns/pid").readlink().name
    except OSError:
        return uuid.uuid4().hex
    return f"{boot}-{''.join(filter(str.isdigit, namespace))}"


def _began(number: int) -> str:
    """When a process began; empty where there is none. Setting the machine's clock does not change it."""
    if platform.system() == "Linux":
        try:
            fields = (_PROC / str(number) / "stat").read_bytes().rpartition(b")")[2].split()
            return "" if fields[0] in {b"Z", b"X"} else fields[19].decode("ascii")  # in ticks since the machine started
        except (OSError, IndexError):
            return ""
    try:
        return f"{psutil.Process(number).create_time():.2f}"
    except (psutil.Error, ValueError, OverflowError):
        return ""
