"""Commands in processes that hear Ctrl-C, also where the tests themselves do not: a shell's job in the background."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
_HEARS = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from webui.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


class Terminal(subprocess.Popen[bytes]):
    """`parlour` with these arguments; a test that fails ends it.

    Args:
        arguments: What stands after `parlour`.
        options: As of `subprocess.Popen`.
    """

    def __init__(self, *arguments: str, **options: Any) -> None:
        super().__init__([sys.executable, "-c", _HEARS, *arguments], cwd=ROOT, **options)

    def interrupt(self) -> str:
        """Press Ctrl-C, and wait; what it says then."""
        self.send_signal(signal.SIGINT)
        said = self.communicate(timeout=30)
        return (said[0] or said[1] or b"").decode()

    def __exit__(self, *about: Any) -> None:
        if about[0] is not None:
            self.kill()
        super().__exit__(*about)
