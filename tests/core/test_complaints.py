"""What is wrong with a setting is said in a plain sentence, without the words of the library that found it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from core.errors import SettingsError
from core.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path


def said(**arguments: object) -> str:
    with pytest.raises(SettingsError) as caught:
        Settings.load(**arguments)
    return str(caught.value)


@pytest.mark.parametrize(
    "address", ["not a url", "ftp://x", "http://", "http://:80", "127.0.0.1:11434/v1", "http://a b"]
)
@pytest.mark.parametrize("name", ["base_url", "openai_base_url"])
def test_an_address_that_names_no_server_stops_the_start(name: str, address: str) -> None:
    sentence = said(**{name: address})
    assert sentence.startswith(f"The setting '{name}' must be an address such as http://127.0.0.1:8000/v1.")
    assert address not in sentence.replace("http://127.0.0.1:8000/v1", "")


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:11434/v1", "https://example.com", "http://[::1]:8/v1", "dashscope"]
)
def test_an_address_of_a_server_is_taken(address: str) -> None:
    assert Settings.load(base_url=address).base_url == address


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"port": "abc"}, "The setting 'port' must be a whole number from 0 to 65535."),
        ({"port": 70000}, "The setting 'port' must be a whole number from 0 to 65535."),
        ({"max_upload_mb": "many"}, "The setting 'max_upload_mb' must be a whole number, 1 or more."),
        ({"max_upload_mb": 0}, "The setting 'max_upload_mb' must be a whole number, 1 or more."),
        ({"max_iteration": 100}, "The setting 'max_iteration' must be a whole number from 1 to 99."),
        ({"max_iteration": 0}, "The setting 'max_iteration' must be a whole number from 1 to 99."),
        ({"max_iteration": "many"}, "The setting 'max_iteration' must be a whole number from 1 to 99."),
        ({"reply_seconds": 0}, "The setting 'reply_seconds' must be a number, above 0."),
        ({"reply_cost": -1}, "The setting 'reply_cost' must be a number, above 0."),
        ({"new_owners_per_minute": -1}, "The setting 'new_owners_per_minute' must be a whole number, 0 or more."),
        ({"lang": "fr"}, "The setting 'lang' must be 'auto', 'en' or 'zh'."),
        ({"model_options": 3}, "The setting 'model_options' must be a section of names and values."),
        ({"colour": "red"}, "There is no setting 'colour'."),
        ({"baseurl": "x"}, "There is no setting 'baseurl'. Did you mean 'base_url'"),
    ],
)
def test_a_wrong_setting_is_said_in_our_own_words(arguments: dict[str, object], sentence: str) -> None:
    assert said(**arguments).startswith(sentence)


def test_a_variable_that_must_be_json_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLOUR_GENERATE_CFG", "sk-secret")
    sentence = said()
    assert sentence.startswith("The setting 'generate_cfg' (PARLOUR_GENERATE_CFG) must be written as JSON")
    assert "sk-secret" not in sentence


def test_a_broken_file_is_named_with_the_line(tmp_path: Path) -> None:
    file = tmp_path / "parlour.toml"
    file.write_text("host = '127.0.0.1'\nport = = 1\n")
    assert said(config=file).startswith(f"The settings file {file} cannot be read at line 2, column 8: invalid value.")
