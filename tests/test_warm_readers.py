"""Readers of documents that tests fork from a warm process end, fail and see as little as those of the product."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.warm_readers import Origin

READER = [sys.executable, "-P", "-m", "core.rag.parsers.worker"]
BOUNDS = dict.fromkeys(("memory", "memory_for_scans", "writes"), 10**9)
BOUNDS |= dict.fromkeys(("seconds", "seconds_per_page", "seconds_per_scan"), 9)


def started(origin: Origin, folder: Path, log: Any) -> Any:
    env = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
    return origin.subprocess.Popen(READER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=env)


def test_one_that_reads_what_fails_and_what_is_killed_say_so_as_programs_do(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The lamp is green.", "utf-8")
    request = {"do": "parse", "path": str(tmp_path / "a.txt"), "name": "a.txt", "parser": "plain", "password": ""}
    request |= {"pictures": False, "first_page": 1, "limits": BOUNDS}
    origin = Origin()
    with tempfile.TemporaryFile() as log:
        reads, fails, waits = (started(origin, tmp_path, log) for _ in range(3))
        reads.stdin.write(json.dumps(request).encode() + b"\n")
        fails.stdin.write(b"no request\n")
        for one in (reads, fails):
            one.stdin.close()
        assert "The lamp is green." in reads.stdout.read().decode()
        assert (reads.wait(), fails.wait()) == (0, 1)
        waits.kill()
        assert waits.wait() == -signal.SIGKILL
        waits.kill()  # that it has ended is no error
        waits.stdin.close()
        for one in (reads, fails, waits):
            one.stdout.close()
        log.seek(0)
        assert "JSONDecodeError" in log.read().decode()
    origin.close()
