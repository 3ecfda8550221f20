"""Models of this process: what cannot work is said before anything is fetched."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.errors import ParlourError
from core.models.own_models import Draft
from core.settings import Settings
from core.storage.base import LOCAL_OWNER as ME
from core.testing.scripted_model import ScriptedModel
from tests.core.talks import model_of, models_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with Engine(Settings.load(home=tmp_path / "home"), model=ScriptedModel()) as engine:
        yield engine


async def refusal_of(work: Any) -> ParlourError:
    with pytest.raises(ParlourError) as caught:
        await work
    return caught.value


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The packages that are said to be installed for Transformers."""
    names = {"torch", "transformers"}
    monkeypatch.setattr("core.errors.find_spec", lambda name: name if name in names else None)
    return names


async def test_a_model_in_this_process_is_tried_only_where_it_is_loaded(engine: Engine, installed: set[str]) -> None:
    assert installed
    for given in (Draft("llama_cpp"), Draft("llama_cpp", "", "smollm2-135m"), Draft("transformers", "", "a/b")):
        assert (await refusal_of(models_of(engine, ME).test(given))).words_key == "built_in_not_loaded"
        await models_of(engine, ME).save(given, use=False)
        assert (await models_of(engine, ME).kept())[-1].model == given.model


async def test_a_model_in_this_process_that_cannot_work_is_neither_promised_nor_used(
    engine: Engine, tmp_path: Path, installed: set[str]
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF")
    missing = [
        (Draft("llama_cpp", "", str(tmp_path / "no such.gguf")), "model_path_missing"),
        (Draft("llama_cpp", "", str(broken)), "weights_not_loaded"),
        (Draft("transformers", "", str(tmp_path / "nowhere")), "model_path_missing"),
        (Draft("transformers", "", str(broken)), "missing_extra"),
    ]
    for given, key in missing:
        assert (await refusal_of(models_of(engine, ME).test(given))).words_key == key
        assert (await refusal_of(models_of(engine, ME).save(given, use=True))).words_key == key
        await models_of(engine, ME).save(given, use=False)  # it may come later
    installed.clear()
    error = await refusal_of(models_of(engine, ME).save(Draft("transformers", "", "a/b"), use=True))
    assert (error.words_key, error.details["package"]) == ("missing_extra", "torch")
    assert (await model_of(engine, ME)).service == ""
