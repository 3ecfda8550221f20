"""Figures beside passages: a model that sees gets their pictures, another one their captions and their words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.agents.assistant import Assistant
from core.agents.retrieval import material
from core.messages.events import ToolFinished
from core.messages.message import Message
from core.rag.config import RAGConfig
from core.rag.library import Library
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

PROSE = "The harbour was built in 1904 by the town. Ships bring rope and grain to it every day of the year. "
Figures = Callable[..., Path]


@pytest.fixture
def report(tmp_path: Path) -> Figures:
    """A PDF of prose, in which each page that is named has a drawn chart with a caption."""

    def make(captions: dict[int, str], pages: int = 4, font: str = "helv") -> Path:
        import pymupdf

        document = pymupdf.open()
        for number in range(1, pages + 1):
            page = document.new_page(width=400, height=560)
            page.insert_textbox((40, 40, 360, 240), PROSE * 4 + f"This is leaf {number}.", fontsize=11)
            if number in captions:
                for at in range(12):
                    page.draw_circle((80 + 20 * at, 400 - 9 * at), 8, color=(0.8, 0, 0), fill=(0.8, 0, 0))
                page.insert_text((200, 420), "tons a year", fontsize=9)
                page.insert_text((60, 450), captions[number], fontsize=10, fontname=font)
        path = tmp_path / "report.pdf"
        document.save(path)
        return path

    return make


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "library") as opened:
        yield opened


def model_that(says: str, *, sees: bool) -> ScriptedModel:
    model = ScriptedModel(says)
    model.support_multimodal_input = sees
    return model


async def asked(library: Library, question: str, *, sees: bool, **config: Any) -> tuple[Message, Any]:
    """The result of the search, and the request that the model got."""
    model = model_that("Grain grew. [1]", sees=sees)
    agent = Assistant(llm=model, library=library, rag_cfg={"whole_documents": False, "top_k": 2, **config})
    events = [event async for event in agent.stream([Message("user", question)])]
    (result,) = [event.message for event in events if isinstance(event, ToolFinished)]
    return result, model.requests[-1]


def pictures(request: Any) -> list[str]:
    return [str(item.image) for message in request.messages for item in message.items if item.type == "image"]


CAPTIONS = {2: "Figure 3: Grain by ship, 1904 to 1915", 4: "Figure 4: Rope by ship"}


async def test_a_figure_that_is_asked_for_is_found_by_its_caption_and_its_cut_out_is_seen(
    library: Library, report: Figures
) -> None:
    from PIL import Image

    library.add(report(CAPTIONS))
    result, request = await asked(library, "What does figure 3 show?", sees=True)
    extra = result.extra or {}
    assert extra["passages"][0]["text"].startswith("[Figure] Figure 3: Grain by ship, 1904 to 1915")
    assert "[Words in the figure] tons a year" in extra["passages"][0]["text"]
    assert (extra["passages"][0]["page"], extra["passages"][0]["seen"]) == (2, True)
    assert next((one["page"], one["passages"]) for one in extra["pictures"]) == (2, [1])
    with Image.open(pictures(request)[0]) as seen:
        assert seen.width > 1.5 * seen.height  # the chart, not the page
        assert seen.width * seen.height <= RAGConfig().max_picture_pixels
    assert "“Figure 3: Grain by ship, 1904 to 1915” in report.pdf, page 2 (for [1])" in result.get_text_content()


async def test_a_model_that_does_not_see_gets_words_alone(library: Library, report: Figures) -> None:
    library.add(report(CAPTIONS))
    result, request = await asked(library, "What does figure 3 show?", sees=False)
    assert not pictures(request)
    assert "pictures" not in (result.extra or {})
    assert "[Figure] Figure 3" in result.get_text_content()


async def test_a_chinese_figure_is_found_by_its_number(library: Library, report: Figures) -> None:
    library.add(report({3: "图 2：历年吞吐量"}, font="china-s"))
    result, _ = await asked(library, "图2说明了什么？", sees=False)
    assert (result.extra or {})["passages"][0]["text"].startswith("[图] 图 2：历年吞吐量")


@pytest.mark.parametrize(
    ("config", "most"), [({}, 2), ({"max_pictures": 1}, 1), ({"max_pictures": 0}, 0), ({"max_picture_tokens": 0}, 0)]
)
async def test_how_many_pictures_go_along_is_a_setting(
    library: Library, report: Figures, config: dict[str, Any], most: int
) -> None:
    library.add(report(CAPTIONS))
    _, request = await asked(library, "Compare figure 3 and figure 4", sees=True, **config)
    assert len(pictures(request)) == most


async def test_the_meter_counts_the_pictures_that_may_go_along(library: Library, report: Figures) -> None:
    document = library.add(report(CAPTIONS))
    config = RAGConfig(max_picture_pixels=100_000)
    blind, seeing = [
        await material(library, [document.id], model_that("", sees=sees), config) for sees in (False, True)
    ]
    assert 100 < seeing.whole - blind.whole < 2_000
    assert seeing.whole - blind.whole == seeing.passages - blind.passages


async def test_what_is_stored_of_a_reply_names_pictures_and_holds_none(library: Library, report: Figures) -> None:
    library.add(report(CAPTIONS))
    result, _ = await asked(library, "What does figure 4 show?", sees=True)
    assert isinstance(result.content, str)
    assert "base64" not in result.model_dump_json()
