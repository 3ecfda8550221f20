"""What a user of Qwen-Agent writes in `rag_cfg` means here what it meant there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.errors import SettingsError
from core.rag.config import RAGConfig
from core.rag.library import Library


@pytest.mark.parametrize(
    ("searchers", "kind", "beginnings_first"),
    [
        (["keyword_search"], "keyword", False),
        (["vector_search"], "vector", False),
        (["keyword_search", "vector_search"], "hybrid", False),
        (["hybrid_search"], "hybrid", False),
        (["front_page_search"], "front_page", False),
        (["keyword_search", "front_page_search"], "keyword", True),
        (["keyword", "vector", "front_page"], "hybrid", True),
    ],
)
def test_searchers_are_one_way_of_searching(searchers: list[str], kind: str, beginnings_first: bool) -> None:
    config = RAGConfig.of({"rag_searchers": searchers})
    assert (config.retrieval_type, config.starts_with_first_passages) == (kind, beginnings_first)
    assert RAGConfig.of({"rag_searchers": searchers, "retrieval_type": kind}).retrieval_type == kind


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ("none", "none"),
        ("None", "none"),
        (None, "none"),
        ("GenKeyword", "keywords"),
        ("genkeyword", "keywords"),
        ("GenKeywordWithKnowledge", "keywords_with_knowledge"),
        ("SplitQueryThenGenKeyword", "split"),
        ("SplitQueryThenGenKeywordWithKnowledge", "split_with_knowledge"),
        ("split", "split"),
    ],
)
def test_strategies_have_both_names(given: str | None, ours: str) -> None:
    assert RAGConfig.of({"rag_keygen_strategy": given}).rag_keygen_strategy == ours


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"rag_keygen_strategy": "GenKeywords"}, "rag_keygen_strategy"),
        ({"rag_searchers": ["keyword_serch"]}, "rag_searchers"),
        ({"rag_searchers": []}, "rag_searchers"),
        ({"rag_searchers": ["keyword_search"], "retrieval_type": "vector"}, "rag_searchers and retrieval_type"),
        ({"max_ref_token": 1}, "max_ref_token"),
        ({"parser_page_size": 1}, "chunk_size"),
        ({"follow_up": "maybe"}, "follow_up"),
        ({"index_path": ""}, "index_path"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], named: str) -> None:
    before = dict(given)
    with pytest.raises(SettingsError, match=named):
        RAGConfig.of(given)
    assert given == before


@pytest.mark.parametrize("given", [3, "keyword", ["keyword"]])
def test_settings_that_are_no_dict_are_one_clear_error(given: Any) -> None:
    with pytest.raises(SettingsError, match="are a dict"):
        RAGConfig.of(given)


def test_the_whole_of_a_rag_cfg_is_kept() -> None:
    config = RAGConfig.of(
        {
            "max_ref_token": 20_000,
            "parser_page_size": 500,
            "rag_keygen_strategy": "GenKeyword",
            "rag_searchers": ["keyword_search", "front_page_search"],
            "index_path": Path("index"),
        }
    )
    assert (config.max_ref_token, config.chunk_size, config.index_path) == (20_000, 500, "index")
    assert RAGConfig.of(config) is config


def test_keys_of_services_are_not_in_what_is_printed() -> None:
    config = RAGConfig.of({"reranker": {"api_key": "sk-x"}, "embedding_model": {"api_key": "sk-y"}})
    assert "sk-" not in repr(config)


def test_with_front_pages_the_beginning_of_a_single_document_comes_first(tmp_path: Path) -> None:
    searchers = {"rag_searchers": ["keyword_search", "front_page_search"], "chunk_size": 32}
    with Library.open(tmp_path / "front", searchers) as library:
        pages = [f"Part {number} speaks at length of things that nobody has asked for." * 2 for number in range(8)]
        first = library.add_text("\n\n".join([*pages, "The heron eats fish at dawn."]), name="one.txt")
        found = library.find("What does the heron eat?", 4)
        assert [found[0].text[:6], found[1].text[:6]] == ["Part 0", "Part 1"]
        assert "heron" in found[2].text
        assert found[0].score == found[2].score
        assert len(found) <= 4
        assert "heron" in library.find("What does the heron eat?", 1, "keyword")[0].text
        library.add_text("Another text, about bread.", name="two.txt")
        assert "heron" in library.find("What does the heron eat?", 4)[0].text
        assert library.find("What does the heron eat?", 4, documents=[first.id])[0].text.startswith("Part 0")
