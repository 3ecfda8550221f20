"""A program with agents of its own as a process, in place of `python -m webui`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Self

from tests.e2e.app_process import ROOT, AppProcess


class OwnProcess(AppProcess):
    """The program `agents_on_a_page.py`."""

    def start(self) -> Self:
        """Start it and wait until every part is ready."""
        assert self.model is not None
        program = Path(__file__).with_name("agents_on_a_page.py")
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(program), self.model.base_url, str(self.port)],
                cwd=ROOT,
                env={**self._environment(), "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.wait_until_ready()
        return self
