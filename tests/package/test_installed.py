"""An installed wheel passes the public tests in a folder whose own `core` and `webui` are something else entirely."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest

from build_wheel import with_one_name
from set_up import SERVERS, server_environment
from tests.package.installing import ROOT, built_wheel, environment_with

pytestmark = pytest.mark.slow

# Programs of users, what every implementation promises, and what they are made of.
PUBLIC = ("tests/compat", "tests/contract", "tests/core/messages", "tests/core/agents/test_assistant.py")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    return environment_with(built_wheel(folder), folder / "environment")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stranger's project, with the public tests in it."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("core", "webui"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(f"raise SystemExit('the project\\'s own {name} was imported')\n")
    (folder / "tests").mkdir()
    (folder / "tests/slow.txt").write_text((ROOT / "tests/slow.txt").read_text("utf-8"), "utf-8")
    for path in (ROOT / "tests").rglob("*.py"):
        place = path.relative_to(ROOT).as_posix()
        shared = not path.name.startswith("test_") and place != "tests/texts/finding.py"  # it looks at the checkout
        if shared or place.startswith(PUBLIC):
            copy = folder / place
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(with_one_name(path.read_text("utf-8")), "utf-8")
    (folder / "set_up.py").write_text((ROOT / "set_up.py").read_text("utf-8"), "utf-8")  # knows where servers are
    settings = (ROOT / "pyproject.toml").read_text("utf-8")
    ours = settings[settings.index("[tool.pytest.ini_options]") : settings.index("[tool.coverage.run]")]
    (folder / "pyproject.toml").write_text(ours, "utf-8")
    return folder


def said(python: Path, project: Path, *words: str, seconds: int = 60) -> str:
    places = os.pathsep.join([os.environ["PATH"], str(SERVERS / "usr/bin")])
    done = subprocess.run(
        [python, *words],
        cwd=project,
        env={**server_environment(), "PATH": places},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout


def test_the_public_tests_pass_beside_a_project_with_a_core_of_its_own(python: Path, project: Path) -> None:
    found = said(python, project, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", *PUBLIC, seconds=600)
    assert " passed" in found
    assert "failed" not in found
    assert "skipped" not in found


def test_a_document_is_read_by_the_wheels_own_processes(python: Path, project: Path) -> None:
    (project / "heron.md").write_text("# Heron\n\nThe heron eats fish at noon.\n", "utf-8")
    program = (
        "from parlour import Library\nimport sys\n"
        "with Library.open('library') as library:\n"
        "    library.add('heron.md')\n"
        "    print(library.find('What eats fish?')[0].text)\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('core', 'webui')])"
    )
    assert said(python, project, "-c", program).splitlines() == ["The heron eats fish at noon.", "[]"]


def test_the_page_and_the_command_are_there(python: Path, project: Path) -> None:
    program = "from parlour.webui import WebUI; print(WebUI.__module__)"
    assert said(python, project, "-c", program) == "parlour.webui.web_ui\n"
    assert said(python, project, "-m", "parlour", "--help").startswith("usage: parlour")
    command = python.with_name("parlour")
    assert subprocess.run([command, "--help"], cwd=project, capture_output=True, check=True, timeout=60).stdout


def test_the_wheel_brings_one_name(tmp_path: Path) -> None:
    with ZipFile(built_wheel(tmp_path)) as wheel:
        tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"parlour"}
