"""Whether there is room for what people send and get."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from core import disk
from core.engine import Engine
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel


def test_a_disk_with_room_is_ready_and_a_full_one_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert disk.told(tmp_path)["ready"] is True
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1_000_000))
    assert disk.told(tmp_path) == {"ready": False, "free": 1_000_000}
    engine = Engine(Settings.load(home=tmp_path), model=ScriptedModel("x"))
    assert engine.readiness.as_dict()["disk"]["ready"] is False


def test_a_disk_that_is_gone_is_not_ready(tmp_path: Path) -> None:
    assert disk.told(tmp_path / "unplugged")["ready"] is False
