"""`parlour models`: what there is, fetched from a hub of ours, and deleted."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from tests.model_hub import ModelHub, model_hub
from webui.__main__ import main

BODY = random.Random(13).randbytes(2_000_000)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelHub]:
    monkeypatch.setenv("PARLOUR_WEIGHTS_DIR", str(tmp_path / "weights"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with model_hub("ibm-granite/granite-4.0-350m-GGUF", {"granite-4.0-350m-Q4_K_M.gguf": BODY}) as running:
        monkeypatch.setattr(constants, "ENDPOINT", running.address)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", running.address + "/{repo_id}/resolve/{revision}/{filename}"
        )
        yield running


def test_a_model_is_listed_fetched_and_deleted(
    hub: ModelHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "--lang", "en"]) == 0
    said = capsys.readouterr().out
    assert "granite-4.0-350m  Granite 4.0 350M\n    size about 220 MB, licence Apache-2.0" in said
    assert "qwen3.5-2b  Qwen3.5 2B\n    size not known" in said
    assert main(["models", "get", "granite-4.0-350m", "--lang", "en"]) == 0
    path = tmp_path / "weights" / "granite-4.0-350m.gguf"
    assert path.read_bytes() == BODY
    assert str(path) in capsys.readouterr().err
    assert main(["models", "list", "--lang", "zh"]) == 0
    assert "大小 2 MB，许可证 Apache-2.0" in capsys.readouterr().out
    assert main(["models", "remove", "granite-4.0-350m", "--lang", "en"]) == 0
    assert "granite-4.0-350m: deleted, 2 MB are free" in capsys.readouterr().err
    assert not path.exists()
    assert main(["models", "remove", "granite-4.0-350m", "--lang", "en"]) == 0
    assert "only what it has downloaded" in capsys.readouterr().err


def test_what_goes_wrong_is_one_sentence(hub: ModelHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hub.linked = False
    assert main(["models", "get", "granite-4.0-350m", "--lang", "en"]) == 1
    assert "size and hash of Granite 4.0 350M" in capsys.readouterr().err
    assert main(["models", "get", "granite-350m", "--lang", "zh"]) == 1
    assert "granite-4.0-350m" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["models", "get"])
    assert "needs the name of a model" in capsys.readouterr().err
