"""`parlour serve`: the agents of files in the page."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from pathlib import Path

import pytest

from tests.webui.commands.own_terminal import Terminal
from webui import WebUI
from webui.__main__ import main


def written(folder: Path, name: str, **config: object) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"model": "scripted", "name": name, **config}), encoding="utf-8")
    return path


@pytest.mark.slow
def test_a_file_opens_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLOUR_HOME", str(tmp_path / "home"))
    given = ["serve", str(written(tmp_path, "Ann")), "--port", "0"]
    with Terminal(*given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        try:
            ready = next(line for line in map(bytes.decode, process.stdout) if "is ready at" in line)
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            with browser.open(ready.split()[-1], timeout=30) as page:
                assert page.status == 200
        finally:
            process.interrupt()
    assert process.returncode == 0


def test_the_page_gets_the_agents_of_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[tuple[list[str | None], dict[str, object]]] = []

    class Recorded(WebUI):
        def run(self, *args: object, **kwargs: object) -> None:
            served.append(([agent.name for agent in self.agents], kwargs))

    monkeypatch.setattr("webui.web_ui.WebUI", Recorded)
    written(tmp_path, "Cat")
    team = {"type": "router", "agents": ["Cat.json", {"name": "Dan"}]}
    files = [str(written(tmp_path, "Ann")), str(written(tmp_path, "Ben", **team))]
    assert main(["serve", *files, "--port", "7901"]) == 0
    assert served == [(["Ann", "Ben"], {"server_name": None, "server_port": 7901, "enable_mention": True})]


@pytest.mark.parametrize("second", ["Ann", "missing"])
def test_agents_that_cannot_be_made_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], second: str
) -> None:
    first = written(tmp_path, "Ann")
    other = tmp_path / "other.json"
    if second == "Ann":
        other.write_text(first.read_text(encoding="utf-8"), encoding="utf-8")
    assert main(["serve", str(first), str(other), "--lang", "en"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert ("Ann" if second == "Ann" else "other.json") in said[0]
