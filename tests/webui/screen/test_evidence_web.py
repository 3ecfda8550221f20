"""A passage from the web: quoted as it was read, with a link that shows where it leads and that nothing follows."""

from __future__ import annotations

from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from core.tools.web.passages import passage
from webui.panels.evidence import evidence_html
from webui.render.citations import cite_marks, passage_label
from webui.words import Words

EN, ZH = Words("en"), Words("zh")
URL = "https://energy.example/cooling?a=1&b=2"


def row(url: str = URL, title: str = "Reactor cooling", **more: Any) -> dict[str, Any]:
    return {**passage("Water carries the heat away.", url, title).as_dict(), "number": 1, **more}


def panel(one: dict[str, Any], words: Words = EN) -> LexborHTMLParser:
    return LexborHTMLParser(evidence_html([one], 1, words, message_id="m", page=None))


@pytest.mark.parametrize("words", [EN, ZH], ids=["en", "zh"])
def test_its_words_are_quoted_with_a_link_that_shows_the_host(words: Words) -> None:
    tree = panel(row(), words)
    (link,) = tree.css(".p-web a")
    assert link.attributes["href"] == URL
    assert "energy.example" in (link.text() or "")
    assert set((link.attributes["rel"] or "").split()) == {"noopener", "noreferrer", "nofollow"}
    assert "Water carries the heat away." in tree.css(".p-here .p-quote")[0].text()


def test_the_mark_says_title_and_host() -> None:
    cite = cite_marks([row()], "m", EN)
    assert cite
    (mark,) = LexborHTMLParser(cite([1])).css("a.cite")
    assert mark.attributes["title"] == "Reactor cooling · energy.example"
    assert passage_label(row(title=""), EN) == "energy.example"
    assert passage_label(row(page=3), EN) == "Reactor cooling · energy.example, page 3"


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", "https://[broken", "//energy.example/x", ""]
)
def test_what_is_no_web_address_is_no_link(url: str) -> None:
    tree = panel(row() | {"url": url})
    assert not tree.css(".p-web")
    assert tree.css(".p-none")


def test_whatever_a_title_or_an_address_says_is_text() -> None:
    tree = panel(row('https://energy.example/"><img src=x onerror=alert(1)>', "<script>alert(1)</script>"))
    assert not tree.css("script, img, [onerror]")
    assert len(tree.css(".p-web a")) == 1


def test_p2_the_whole_host_is_shown_and_nothing_is_fetched_by_showing_it() -> None:
    host = "accounts.example.com." + "a" * 60 + ".evil.example"
    tree = panel(row(f"https://accounts.example.com@{host}/x"))
    assert host in tree.css(".p-web a")[0].text()
    assert not tree.css("link, img, iframe, [ping]")
