"""Options of tools that count something."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import SettingsError
from core.tools.base import int_option
from core.tools.builtin.document_search import KeywordSearch
from core.tools.builtin.web_extractor import WebExtractor
from core.tools.builtin.web_search import ImageSearch, WebSearch


@pytest.mark.parametrize("given", ["8", 0, 21, 2.5, True, [8]])
def test_what_is_no_count_is_told_when_the_tool_is_made(given: Any) -> None:
    with pytest.raises(SettingsError, match="'count' must be a whole number from 1 to 20"):
        WebSearch({"count": given})


def test_a_count_that_is_left_out_is_the_usual_one() -> None:
    assert (int_option({}, "count", 8, 1, 20), int_option({"count": 3}, "count", 8, 1, 20)) == (8, 3)


@pytest.mark.parametrize(
    ("tool", "name"), [(ImageSearch, "thumbnails"), (WebExtractor, "max_tokens"), (KeywordSearch, "max_ref_token")]
)
def test_each_tool_names_its_own_option(tool: Any, name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        tool({name: "many"})
