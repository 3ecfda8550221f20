"""A scripted model service in a process of its own, so that its work is not counted as ours."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


@contextmanager
def service(*, chunks: int = 0, pace: float = 0.0, script: Any = None) -> Iterator[str]:
    """Serve a reply of `chunks` chunks, or `script`; gives the base URL."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "core.testing.model_server", "--port", "0"]
        if chunks:
            command += ["--chunks", str(chunks), "--pace", str(pace)]
        if script is not None:
            path = Path(folder) / "script.json"
            path.write_text(json.dumps(script), encoding="utf-8")
            command += ["--script", str(path)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        try:
            line = process.stdout.readline() if process.stdout else ""
            yield line.split()[-1]
        finally:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()


def model_cfg(base_url: str) -> dict[str, Any]:
    """What `get_chat_model` and agents take for that service."""
    return {"model": "scripted", "model_type": "openai", "base_url": base_url, "api_key": "any"}
