"""Reading that is held where a test wants it."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def every_step_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fast machine would read a whole document between two reports, and there would be nothing left to hold."""
    monkeypatch.setattr("core.rag.readings._OFTEN", 0.0001)
