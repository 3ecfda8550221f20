"""A Space reads the header of the README and a list of packages: both fit what is in this repository."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement

from core.llm.weights_catalog import DEFAULT, WEIGHTS

ROOT = Path(__file__).resolve().parent.parent
# The platform's own, in the versions that it wants; and what only builds packages.
OF_THE_PLATFORM = {"gradio", "gradio-client", "hf-gradio", "huggingface-hub", "hf-xet", "spaces", "hatchling"}
ZERO_GPU = {"3.10", "3.12"}


def header() -> dict[str, Any]:
    _, text, _ = (ROOT / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(text)


def locked(name: str) -> list[str]:
    return (ROOT / name).read_text(encoding="utf-8").splitlines()


def test_the_header_names_what_the_platform_has_and_the_built_in_model() -> None:
    told = header()
    assert (told["sdk"], (ROOT / told["app_file"]).is_file()) == ("gradio", True)
    assert f"gradio=={told['sdk_version']}" in locked("requirements.lock")
    assert told["python_version"] in ZERO_GPU
    least = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    assert least == ">=3.11"
    assert len(told["short_description"]) <= 60
    files = {f"{one.repository} {one.remote_file}": one for one in WEIGHTS.values()}
    (preloaded,) = told["preload_from_hub"]
    assert files[preloaded] is WEIGHTS[DEFAULT]
    assert files[preloaded].repository in told["models"]


def test_the_packages_of_a_space_with_zerogpu_are_these_and_those_of_the_extra_without_the_platforms() -> None:
    first, *added = locked("requirements-zerogpu.txt")
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    wanted = {Requirement(one).name: Requirement(one).specifier for one in extra["zerogpu"]}
    assert first == "-r requirements-space.txt"
    assert {Requirement(one).name for one in added} == wanted.keys() - OF_THE_PLATFORM
    for one in map(Requirement, added):
        assert set(wanted[one.name]) <= set(one.specifier), one


def test_the_packages_of_a_space_are_the_same_without_those_of_the_platform() -> None:
    others = [one for one in locked("requirements.lock") if one.partition("==")[0] not in OF_THE_PLATFORM]
    assert locked("requirements-space.txt") == others
