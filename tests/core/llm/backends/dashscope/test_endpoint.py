"""Where DashScope is and the key for it: the settings, else the SDK's own."""

from __future__ import annotations

import subprocess
import sys

import dashscope
import pytest
from dashscope.common import api_key

from core.errors import ModelRefusedError, SettingsError
from core.llm.backends.dashscope.service import checked_address, resolve_endpoint
from core.llm.open_model import get_chat_model

VENDOR = "https://dashscope.aliyuncs.com/api/v1"
USUAL = "sk-from-the-environment"


@pytest.fixture(autouse=True)
def usual(monkeypatch, tmp_path):
    """What the SDK found in its variables when it was imported."""
    monkeypatch.setattr(dashscope, "base_http_api_url", VENDOR)
    monkeypatch.setattr(dashscope, "api_key", USUAL)
    monkeypatch.setattr(dashscope, "api_key_file_path", None)
    monkeypatch.setattr(api_key, "DEFAULT_DASHSCOPE_API_KEY_FILE_PATH", str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("given", "used"),
    [
        (None, None),
        ("", None),
        ("dashscope", None),
        ("https://dashscope.aliyuncs.com/api/v1/", VENDOR),
        ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "https://dashscope-intl.aliyuncs.com/api/v1"),
        ("127.0.0.1:8100/api/v1", "http://127.0.0.1:8100/api/v1"),
    ],
)
def test_addresses_people_have_at_hand(given, used):
    assert checked_address(given) == used


def test_what_the_settings_leave_out_the_sdk_knows():
    assert resolve_endpoint(None, "", None)[:2] == (VENDOR, USUAL)
    assert resolve_endpoint(None, "sk-own-key", None)[:2] == (VENDOR, "sk-own-key")
    assert resolve_endpoint("https://dashscope-intl.aliyuncs.com/api/v1", "", None).api_key == USUAL


@pytest.mark.parametrize(
    "address",
    [
        "https://elsewhere.example/api/v1",
        "http://dashscope.aliyuncs.com/api/v1",
        "https://aliyuncs.com.example/api/v1",
        "https://mine.oss-cn-beijing.aliyuncs.com/api/v1",
    ],
)
def test_the_usual_key_goes_to_the_vendor_alone(address):
    place = resolve_endpoint(address, "", None)
    assert (place.address, place.api_key) == (address, "")
    assert "api_key" in place.hint


def test_an_address_of_the_environment_gets_the_key_of_the_environment(monkeypatch):
    monkeypatch.setattr(dashscope, "base_http_api_url", "http://gateway.example/api/v1")
    assert resolve_endpoint(None, "", None)[:2] == ("http://gateway.example/api/v1", USUAL)
    assert resolve_endpoint("http://gateway.example/api/v1", "", None).api_key == USUAL


def test_a_regions_address_has_the_workspace_in_it(monkeypatch):
    monkeypatch.setattr(dashscope, "base_http_api_url", "https://{workspace_id}.eu.maas.aliyuncs.com/api/v1")
    assert resolve_endpoint(None, "", "ws-1").address == "https://ws-1.eu.maas.aliyuncs.com/api/v1"
    with pytest.raises(SettingsError, match="workspace"):
        resolve_endpoint(None, "", None)


def test_no_key_anywhere_is_said_at_the_first_question(monkeypatch):
    monkeypatch.setattr(dashscope, "api_key", None)
    for cfg in ({}, {"api_key": ""}, {"api_key": "  "}):
        model = get_chat_model({"model": "qwen-max", "model_type": "qwen_dashscope", **cfg})
        with pytest.raises(ModelRefusedError, match="DASHSCOPE_API_KEY") as caught:
            model.quick_chat("q")
        assert caught.value.words_key == "model_key_missing"
        assert caught.value.details["host"] == "dashscope.aliyuncs.com"


def test_the_sdk_is_not_imported_for_what_is_known():
    cfg = {"model": "m", "model_type": "qwen_dashscope", "api_key": "sk-own-key", "base_url": VENDOR}
    code = f"import sys; from core import get_chat_model; get_chat_model({cfg}); print('dashscope' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
