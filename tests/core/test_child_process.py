"""What child processes get of their parent's environment."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from core.child_process import environment

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_what_children_alone_import_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_in_children.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    subprocess.run([sys.executable, "-P", "-c", "import only_in_children"], env=environment(), check=True)
    assert list(tmp_path.glob("__pycache__/only_in_children.*"))


def test_they_get_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert "sk-secret" not in str(environment())
