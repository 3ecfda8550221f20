"""Paths and `file:` URLs are files, whatever is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.llm.local_files import path_of, user_path


def test_a_path_and_its_url_are_the_same_file(tmp_path: Path) -> None:
    file = tmp_path / "a picture.png"
    assert path_of(str(file)) == path_of(file.as_uri()) == file


@pytest.mark.parametrize("address", ["file://[x", "file:", "a%20b"])
def test_what_is_no_url_is_a_name(address: str) -> None:
    assert not path_of(address).is_file()


def test_home_is_found_and_a_stranger_s_is_not() -> None:
    assert user_path("~/x") == Path.home() / "x"
    assert str(user_path("~nobody-has-this-name/x")).startswith("~")
