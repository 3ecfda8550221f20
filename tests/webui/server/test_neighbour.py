"""Whoever opens Parlour a second time on the same data is told where the first one is."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from core.readiness import Readiness
from core.runs.lease import worker_of
from webui.serving import opened_at
from webui.terminal import Terminal


def test_the_first_is_told_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    with opened_at(tmp_path, "http://127.0.0.1:7860") as other:
        assert other == ""
        assert json.loads((tmp_path / "address").read_text())["url"] == "http://127.0.0.1:7860"
    assert not list(tmp_path.iterdir())


def test_the_note_is_private_in_a_folder_that_is_not(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "address").write_text("{}")
    with opened_at(tmp_path, "http://127.0.0.1:7860"):
        assert (tmp_path / "address").stat().st_mode & 0o777 == 0o600


def test_the_second_is_told_where_the_first_is_and_leaves_its_note_alone(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as first:
        worker = worker_of(first.pid)
        (tmp_path / "address").write_text(json.dumps({"worker": worker, "url": "http://127.0.0.1:7860"}))
        with opened_at(tmp_path, "http://127.0.0.1:7861") as other:
            assert other == "http://127.0.0.1:7860"
        assert (tmp_path / "address").exists()
        first.communicate(b"\n")


@pytest.mark.parametrize("left", ['{"worker": "1@0.00", "url": "http://x"}', "half a li", "[]", '{"url": 3}'])
def test_a_note_of_a_process_that_is_gone_means_nothing(tmp_path: Path, left: str) -> None:
    (tmp_path / "address").write_text(left)
    with opened_at(tmp_path, "http://127.0.0.1:7860") as other:
        assert other == ""


def test_the_terminal_says_where_the_first_is_and_names_a_built_in_model_in_a_whole_sentence() -> None:
    out = io.StringIO()
    terminal = Terminal("http://127.0.0.1:7861", out)
    terminal.opening(beside="http://127.0.0.1:7860")
    readiness = Readiness()
    readiness.mark("model", "ready", label="Qwen 0.5B, built in", in_process=True)
    terminal.tell(readiness)
    assert "Parlour is already open at http://127.0.0.1:7860; this is a second one on the same data." in out.getvalue()
    readiness.mark("model", "ready", label="foo · host", in_process=False)
    terminal.tell(readiness)
    assert "foo · host is set up." in out.getvalue()
    assert "Qwen 0.5B, built in, is ready." in out.getvalue()
