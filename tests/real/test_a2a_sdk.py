"""The A2A project's own client, in the environment of its own that `make test-all` makes for it, asks an agent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core import Assistant
from core.testing.scripted_model import ScriptedModel
from tests.doors.test_one_agent import TOKEN, opened

pytestmark = pytest.mark.slow

PYTHON = Path(sys.prefix) / "a2a-sdk" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
PROGRAM = Path(__file__).with_name("a2a_program.py")


@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_its_client_reads_the_card_asks_whole_and_as_a_stream_and_goes_on(version: str) -> None:
    agent = Assistant([], ScriptedModel("Herons wade.", "They fish."), name="heron", description="Knows herons.")
    with opened(agent) as address:
        command = [str(PYTHON), str(PROGRAM), address, TOKEN, version]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    card, streamed, whole, *refused = map(json.loads, ran.stdout.splitlines())
    assert card == {"name": "heron", "versions": ["1.0", "0.3"]}
    assert (streamed["kinds"][0], streamed["kinds"][-1]) == ("task", "status_update")
    assert "artifact_update" in streamed["kinds"]
    assert whole["kinds"] == ["task"]
    assert [streamed["texts"], whole["texts"]] == [["Herons wade."], ["They fish."]]
    assert streamed["state"] == whole["state"] == 3, "completed"
    assert streamed["context"] == whole["context"]
    assert [one["refused"] for one in refused][:1] == ["TaskNotCancelableError"]
    assert len(refused) == (1 if version == "1.0" else 2), "and nobody without the token"
