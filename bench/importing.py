"""What `import core` costs in a fresh interpreter."""

from __future__ import annotations

import statistics
import subprocess
import sys

from bench.figures import Figure, report

CODE = "import time; began = time.process_time(); import {module}; print(time.process_time() - began)"


def cpu_of_import(module: str, rounds: int = 9) -> float:
    """Median CPU seconds."""
    command = [sys.executable, "-c", CODE.format(module=module)]
    return statistics.median(
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(rounds)
    )


def main() -> None:
    """`core`, beside the package it saves a caller from importing."""
    ours, whole, peer = (cpu_of_import(name) for name in ("core", "core.agents.assistant", "openai"))
    said = f"with `Assistant`: {whole:.2f} s; `import openai`: {peer:.2f} s"
    report([Figure("`import core`, CPU", ours, 0.3, "s", said)])


if __name__ == "__main__":
    main()
