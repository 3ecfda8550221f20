"""The near side of the embedding processes: one for each model, shared by all libraries, ended when nobody asks."""

from __future__ import annotations

import atexit
import json
import struct
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import numpy as np

from core.errors import ModelServiceError
from core.rag.child import environment
from core.rag.embedding.in_turn import InTurn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.embedding.base import Floats

_IDLE_SECONDS = 60.0
_PROBE = "A"


class Workers:
    """Processes by the name of their model."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._workers: dict[str, _Worker] = {}

    def embed(self, name: str, texts: Sequence[str]) -> Floats:
        """Rows for the texts, made in the model's process; who comes second waits.

        Raises:
            ModelServiceError: The process ended: the model does not run here.
        """
        with self._guard:
            if not self._workers:
                atexit.register(self.stop)
            worker = self._workers.setdefault(name, _Worker(name))
        return worker.embed(texts)

    def runs(self, name: str) -> bool:
        """Whether the model's process answers."""
        try:
            self.embed(name, [_PROBE])
        except ModelServiceError:
            return False
        return True

    def stop(self) -> None:
        """End all processes; the next text starts them again."""
        with self._guard:
            workers, self._workers = list(self._workers.values()), {}
        for worker in workers:
            worker.stop()


class _Worker:
    def __init__(self, name: str) -> None:
        self._name = name
        self._turn = InTurn()
        self._process: subprocess.Popen[bytes] | None = None
        self._timer: threading.Timer | None = None

    def embed(self, texts: Sequence[str]) -> Floats:
        with self._turn:
            if self._timer is not None:
                self._timer.cancel()
            try:
                rows = self._asked(self._started(), texts)
            except (OSError, EOFError) as error:
                self._end()
                raise ModelServiceError(
                    f"The embedding model {self._name!r} does not run on this machine.",
                    hint="Search by words goes on without it.",
                ) from error
            self._timer = threading.Timer(_IDLE_SECONDS, self.stop)
            self._timer.daemon = True
            self._timer.start()
            return rows

    def stop(self) -> None:
        with self._turn:
            self._end()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            # `-P` keeps the current folder, which may be anybody's, out of where modules are looked for.
            self._process = subprocess.Popen(  # noqa: S603 - our own words alone
                [sys.executable, "-P", "-m", "core.rag.embedding.worker", self._name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment() | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            )
        return self._process

    @staticmethod
    def _asked(process: subprocess.Popen[bytes], texts: Sequence[str]) -> Floats:
        entry, answers = process.stdin, process.stdout
        if entry is None or answers is None:
            raise EOFError
        entry.write(json.dumps(list(texts)).encode() + b"\n")
        entry.flush()
        head = answers.read(8)
        if len(head) < 8:
            raise EOFError
        (size,) = struct.unpack("<q", head)
        data = answers.read(size)
        if len(data) < size:
            raise EOFError
        rows: Floats = np.frombuffer(data, dtype=np.float32).reshape(len(texts), -1)
        return rows

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


WORKERS = Workers()
