"""What a tool is called and what is said of it, on the page: its words there, else those of its class."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

import pytest

from core.tools.base import BaseTool
from core.tools.catalog import TOOL_REGISTRY, register_tool
from webui.render.tool_words import about_of, label_of
from webui.words import Words

EN, ZH = Words("en"), Words("zh")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
OURS = [name for name in TOOL_REGISTRY if TOOL_REGISTRY[name].__module__.startswith("core.")]


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """Tools that the page has no words for."""

    @register_tool("tide_table")
    class Tides(BaseTool):
        description = "Returns the times of high water for a harbour."
        labels: ClassVar[Mapping[str, str]] = {"en": "Tides", "zh": "潮汐"}
        about: ClassVar[Mapping[str, str]] = {"en": "Says when the tide is high.", "zh": "告诉你何时涨潮。"}

    @register_tool("plain_tool")
    class Plain(BaseTool):
        description = "Returns nothing."

    @register_tool("english_tool")
    class English(BaseTool):
        description = "Returns a word."
        labels: ClassVar[Mapping[str, str]] = {"en": "A word"}
        about: ClassVar[Mapping[str, str]] = {"en": "Says a word."}

    yield
    for name in ("tide_table", "plain_tool", "english_tool"):
        TOOL_REGISTRY.remove(name)


def test_the_words_of_the_page_come_first() -> None:
    assert (label_of("storage", ZH), about_of("storage", EN)) == (ZH("tool.storage"), EN("tools.about.storage"))


def test_a_tool_that_the_page_has_no_words_for_has_those_of_its_class() -> None:
    assert (label_of("tide_table", EN), about_of("tide_table", EN)) == ("Tides", "Says when the tide is high.")
    assert (label_of("tide_table", ZH), about_of("tide_table", ZH)) == ("潮汐", "告诉你何时涨潮。")
    assert (label_of("english_tool", ZH), about_of("english_tool", ZH)) == ("A word", "Says a word.")


def test_a_tool_without_words_for_people_is_shown_with_what_a_model_is_told() -> None:
    assert (label_of("plain_tool", ZH), about_of("plain_tool", ZH)) == ("", "Returns nothing.")


def test_of_a_tool_that_is_unknown_nothing_is_said() -> None:
    assert (label_of("files-read_file", EN), about_of("files-read_file", EN)) == ("", "")


@pytest.mark.parametrize("name", OURS)
def test_a_tool_has_one_label_in_each_language(name: str) -> None:
    assert label_of(name, EN) == TOOL_REGISTRY[name].labels["en"]
    assert label_of(name, ZH) == TOOL_REGISTRY[name].labels["zh"]
    assert CHINESE.search(label_of(name, ZH))


@pytest.mark.parametrize("name", [one.name for one in TOOL_REGISTRY.on_page() if one.name in OURS])
def test_what_the_page_offers_is_described_in_both_languages(name: str) -> None:
    assert about_of(name, EN) != TOOL_REGISTRY[name].description
    assert CHINESE.search(about_of(name, ZH))
