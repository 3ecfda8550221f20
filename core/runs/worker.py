"""Which process answers a run, and whether it still lives."""

from __future__ import annotations

import psutil


def this_worker() -> str:
    """This process: its number and when it began, since numbers are used again."""
    process = psutil.Process()
    return f"{process.pid}@{process.create_time():.2f}"


def is_alive(worker: str) -> bool:
    """Whether the process still lives."""
    number, _, began = worker.partition("@")
    try:
        return f"{psutil.Process(int(number)).create_time():.2f}" == began
    except (psutil.Error, ValueError, OverflowError):
        return False
