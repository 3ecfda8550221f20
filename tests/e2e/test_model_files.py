"""The files of built-in models in the dialog of model settings: downloaded, cancelled, gone on with, deleted."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess
from tests.model_hub import ModelHub, model_hub

BODY = random.Random(11).randbytes(3_000_000)


@pytest.fixture
def hub() -> Iterator[ModelHub]:
    with model_hub("Qwen/Qwen3-0.6B-GGUF", {"Qwen3-0.6B-Q8_0.gguf": BODY}) as running:
        yield running


@pytest.fixture
def app(tmp_path: Path, hub: ModelHub, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppProcess]:
    """An app whose hub is ours, with a folder of models of its own."""
    monkeypatch.setenv("HF_ENDPOINT", hub.address)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    given = {"RETRIEVAL": "keyword", "WEIGHTS_DIR": str(tmp_path / "weights")}
    with ModelServer(behave) as model:
        running = AppProcess(tmp_path / "home", model, given).start()
        yield running
        running.stop()


def opened(page: Page) -> Locator:
    page.locator("#top").get_by_role("button", name="Model settings").click()
    dialog = page.get_by_role("dialog", name="Model settings")
    expect(dialog.get_by_label("Service")).to_be_focused()
    dialog.get_by_label("Service").select_option("llama_cpp")
    return dialog


def press(row: Locator, name: str) -> None:
    row.get_by_role("button", name=name).click()


def test_a_model_is_downloaded_cancelled_gone_on_with_and_deleted(
    app: AppProcess, open_page: Callable[..., Page], hub: ModelHub, tmp_path: Path
) -> None:
    page = open_page(app)
    dialog = opened(page)
    row = dialog.get_by_role("listitem").filter(has_text="Qwen3 0.6B")
    expect(row).to_contain_text("about 600 MB · Apache-2.0 · Chinese, English and more")
    expect(row).to_contain_text("hash from the repository’s own record")
    expect(row).to_contain_text("not downloaded")
    hub.pause.clear()
    press(row, "Download: Qwen3 0.6B")
    expect(row).to_contain_text("of 3 MB")
    press(row, "Cancel: Qwen3 0.6B")
    hub.pause.set()
    expect(row).to_contain_text("begun: ")
    press(row, "Go on: Qwen3 0.6B")
    expect(row.locator(".p-weight-state")).to_contain_text("here")
    assert (tmp_path / "weights" / "qwen3-0.6b.gguf").read_bytes() == BODY
    press(row, "Choose: Qwen3 0.6B")
    expect(dialog.get_by_label("Model")).to_have_value("qwen3-0.6b")
    press(row, "Delete: Qwen3 0.6B")
    press(row, "Really delete?: Qwen3 0.6B")
    expect(row).to_contain_text("not downloaded")
    assert not (tmp_path / "weights" / "qwen3-0.6b.gguf").exists()
    dialog.get_by_label("Service").select_option("openai")
    expect(row).to_be_hidden()


def test_why_a_download_failed_stands_beside_the_model(
    app: AppProcess, open_page: Callable[..., Page], hub: ModelHub
) -> None:
    hub.told["Qwen3-0.6B-Q8_0.gguf"] = "0" * 64
    dialog = opened(open_page(app))
    row = dialog.get_by_role("listitem").filter(has_text="Qwen3 0.6B")
    press(row, "Download: Qwen3 0.6B")
    expect(row).to_contain_text("could not be asked for this model’s size and hash")
    assert not hub.downloads
