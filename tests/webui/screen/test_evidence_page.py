"""Slides, sheets and texts as they are shown, with the passages marked; and passages in lists."""

from __future__ import annotations

from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode

from core.rag.document import Block, PageShape, Passage, table
from core.rag.page_content import PageContent
from webui.panels.evidence import Listing, Lists, ShownPage, ShownText, evidence_html
from webui.panels.evidence_text import Found
from webui.render.markup import verbatim
from webui.words import Words

EN, ZH = Words("en"), Words("zh")
EVIL = '<img src=x onerror=alert(1)> **x** `y` "quoted" {z} $a$ [1](#do-new)'


def parsed(markup: str) -> LexborHTMLParser:
    assert "\n" not in markup, "a blank line would end the HTML block"
    tree = LexborHTMLParser(markup)
    assert not tree.css("script, style, iframe, [onerror], a[href^='#do-']")
    return tree


def one(tree: LexborHTMLParser, selector: str) -> LexborNode:
    found = tree.css(selector)
    assert len(found) == 1, f"{selector}: {len(found)}"
    return found[0]


def quote(number: int, text: str, page: int | None = None, **more: Any) -> dict[str, Any]:
    return {"number": number, "text": text, "document": "d", "document_id": "d", "page": page, "rectangles": [], **more}


def content(kind: Any, *blocks: Block, page: int | None = None, **options: Any) -> PageContent:
    given: dict[str, Any] = {"parts": 1, "part": 1, "last": 1, "first": 1, **options}
    return PageContent(kind, page, blocks=blocks, **given)


def panel(shown: ShownText, *passages: dict[str, Any], number: int | None = 1, **lists: Any) -> LexborHTMLParser:
    return parsed(evidence_html(passages, number, EN, message_id="m", page=shown, lists=Lists(**lists)))


def text_of(what: PageContent, *found: Found, name: str = "notes.md", pages: int | None = None) -> ShownText:
    return ShownText("d", name, pages, what, found)


def lines(*texts: str, first: int = 1) -> Block:
    return Block("code", "", cells=tuple((str(number), text) for number, text in enumerate(texts, first)))


def marks(tree: LexborHTMLParser, strength: int) -> list[str]:
    return [mark.text() or "" for mark in tree.css(f"mark.p-m{strength}")]


def test_lines_have_their_numbers_and_the_cited_sentence_is_marked_strongest() -> None:
    passage = "One. Two is cited. Three."
    found = Found(1, passage, is_open=True, cited=((5, 18),))
    shown = text_of(content("lines", lines("# Title", "One. Two is cited.", "Three. Four.")), found)
    tree = panel(shown, quote(1, passage))
    assert [number.text() for number in tree.css(".p-line .p-no")] == ["1", "2", "3"]
    assert marks(tree, 3) == ["Two is cited."]
    assert marks(tree, 2) == ["One. ", "Three."]
    assert [line.text() for line in tree.css(".p-line .p-words")] == ["# Title", "One. Two is cited.", "Three. Four."]
    tab = one(tree, ".p-line a.cite.p-at.p-on")
    assert (tab.attributes["href"], tab.attributes["aria-label"]) == ("#cite-m-1", "Open passage 1")
    assert one(tree, ".p-turner span").text() == "Lines 1 to 3"


def test_other_passages_of_the_text_are_marked_weakly() -> None:
    found = (Found(1, "Here.", is_open=True), Found(2, "There."), Found(3, "Nowhere."))
    tree = panel(text_of(content("lines", lines("Here.", "There.")), *found), quote(1, "Here."), quote(2, "There."))
    assert (marks(tree, 2), marks(tree, 1), marks(tree, 3)) == (["Here."], ["There."], [])
    assert [tab.text() for tab in tree.css(".p-at")] == ["1", "2"]


@pytest.mark.parametrize("kind", ["lines", "text", "sheet", "slide"])
def test_whatever_stands_in_a_document_is_text(kind: str) -> None:
    blocks = {
        "lines": [lines(EVIL, "    indented")],
        "text": [Block("paragraph", EVIL), table([(EVIL, "b")]), Block("heading", EVIL, level=1)],
        "sheet": [Block("table", "", 1, cells=(("", "A"), ("1", EVIL)))],
        "slide": [Block("paragraph", EVIL, 1, ((0, (10, 10, 300, 60)),)), Block("paragraph", EVIL, 1)],
    }
    page = 1 if kind in {"sheet", "slide"} else None
    shown = text_of(content(kind, *blocks[kind], page=page, title=EVIL), Found(1, EVIL, is_open=True), name=EVIL)
    tree = panel(shown, quote(1, EVIL, page))
    assert not tree.css(".p-desk :is(img, strong, em, code)")
    assert EVIL in (one(tree, ".p-desk").text() or "")


def test_indents_and_line_ends_are_kept() -> None:
    assert LexborHTMLParser(verbatim("a\n    b\tc  d")).body.text() == "a    b\tc  d"  # pyright: ignore[reportOptionalMemberAccess]
    assert verbatim("a\nb") == "a<br>b"
    assert "\n" not in verbatim("a\n\n\nb\r\n")


def test_code_is_set_as_code_and_prose_as_prose() -> None:
    prose, code = (panel(text_of(content("lines", lines("x")), name=name)) for name in ("a.md", "a.py"))
    assert not prose.css(".p-lines.p-code")
    assert code.css(".p-lines.p-code")


def test_paragraphs_are_numbered_and_tables_are_tables() -> None:
    blocks = (
        Block("heading", "Prices", level=1),
        Block("paragraph", "In euros."),
        table([("Fire", "300"), ("Ice", "5")]),
    )
    found = Found(1, "Fire | 300", is_open=True, cited=((0, 10),))
    tree = panel(text_of(content("text", *blocks, first=41, parts=3, part=2, last=2), found), quote(1, "Fire | 300"))
    assert [number.text() for number in tree.css(".p-no")] == ["41", "42", "43"]
    assert one(tree, "tr.p-m3").text() == "Fire300"
    assert len(tree.css("tr")) == 2
    assert one(tree, ".p-turner span").text() == "Part 2 of 3"
    before, after = one(tree, ".p-turner .p-before"), one(tree, ".p-turner .p-after")
    assert (before.attributes["data-part"], after.attributes["data-part"]) == ("1", "3")
    assert (before.attributes["aria-label"], after.attributes["aria-label"]) == (
        "Previous part",
        "Next part",
    )


def test_a_sheet_shows_its_letters_numbers_name_and_cited_rows() -> None:
    rows = (("", "C", "D"), ("801", "Fire", "300"), ("803", "Water", "420"))
    shown = text_of(
        content("sheet", Block("table", "", 2, cells=rows), page=2, parts=9, part=5, last=5, title="Prices"),
        Found(1, "Cause | Deductible\nWater | 420", is_open=True, cited=((19, 30),)),
        name="prices.xlsx",
        pages=4,
    )
    tree = panel(shown, quote(1, "Water | 420", 2))
    assert [head.text() for head in tree.css("thead th")] == ["C", "D"]
    assert [head.text() for head in tree.css("tbody th")] == ["801", "8031"]
    assert [cell.text() for cell in one(tree, "tr.p-m3").css("td")] == ["Water", "420"]
    assert one(tree, ".p-name").text() == "Prices"
    assert one(tree, ".p-turner span").text() == "Sheet 2 of 4"
    assert one(tree, ".p-turner .p-after").attributes["aria-label"] == "Next sheet"
    more = [(one.text(), one.attributes["data-part"], one.attributes["data-n"]) for one in tree.css(".p-rows")]
    assert more == [("Earlier rows", "4", "2"), ("Later rows", "6", "2")]


def test_a_slide_has_its_boxes_in_place_and_its_notes_below() -> None:
    box = ((0, (96.0, 54.0, 480.0, 108.0)),)
    blocks = (
        Block("heading", "Our garden", 3, box, level=1),
        Block("paragraph", "The heron stands in the pond.", 3, box),
        Block("paragraph", "Say good morning.", 3),
    )
    shown = text_of(
        content("slide", *blocks, page=3, shape=PageShape(3, 960.0, 540.0)),
        Found(1, "The heron stands in the pond.", is_open=True),
        name="garden.pptx",
        pages=5,
    )
    tree = panel(shown, quote(1, "The heron stands in the pond.", 3, rectangles=[(96.0, 54.0, 480.0, 108.0)]))
    place = one(tree, ".p-slide .p-box").attributes["style"] or ""
    assert "left:10.00%;top:10.00%;width:40.00%" in place
    assert [piece.text() for piece in tree.css(".p-box p")] == ["Our garden", "The heron stands in the pond."]
    assert one(tree, ".p-box mark.p-m2").text() == "The heron stands in the pond."
    assert one(tree, ".p-slide-notes p").text() == "Say good morning."
    assert one(tree, ".p-turner span").text() == "Slide 3 of 5"
    assert one(tree, "a.p-tab.p-on").text() == "1"


def test_a_slide_without_words_is_a_blank_sheet() -> None:
    shown = text_of(content("slide", Block("heading", "2", 2, level=1), page=2), name="a.pptx", pages=2)
    tree = panel(shown, number=None)
    assert not tree.css(".p-box, .p-slide-notes")
    assert tree.css(".p-slide")


def test_long_words_get_smaller_letters_than_few() -> None:
    def letters(text: str) -> float:
        block = Block("paragraph", text, 1, ((0, (0.0, 0.0, 300.0, 100.0)),))
        tree = panel(text_of(content("slide", block, page=1, shape=PageShape(1, 960, 540)), name="a.pptx"))
        style = one(tree, ".p-box").attributes["style"] or ""
        return float(style.rpartition("font-size:")[2].removesuffix("cqw"))

    assert letters("Few words") > letters("Many words " * 20) > letters("Many words " * 60) > 0.5


def test_the_cited_sentence_is_marked_on_the_picture_and_in_the_quotation() -> None:
    page = ShownPage("d", "d", 2, 3, (600.0, 800.0), cited=((60.0, 80.0, 300.0, 96.0),))
    passage = quote(1, "One. Two is cited. Three.", 2, rectangles=[(60.0, 64.0, 540.0, 112.0)])
    markup = evidence_html([passage], 1, EN, message_id="m", page=page, lists=Lists(cited=((5, 18),)))
    tree = parsed(markup)
    strong = one(tree, ".p-hl.p-strong").attributes["style"] or ""
    assert strong == "left:10.000%;top:10.000%;width:40.000%;height:2.000%"
    assert len(tree.css(".p-hl.p-on")) == 1
    assert one(tree, ".p-here .p-quote mark").text() == "Two is cited."


def test_what_is_given_twice_or_lies_in_another_mark_is_marked_once() -> None:
    line, tall, other = (72.0, 100.0, 500.0, 112.0), (70.0, 99.0, 500.0, 126.0), (72.0, 130.0, 300.0, 142.0)
    passage = quote(1, "Words", 1, rectangles=[line, line, tall, other, (73.0, 131.0, 299.0, 141.0)])
    page = ShownPage("d", "d.pdf", 1, 3, (595.0, 842.0))
    marks = parsed(evidence_html([passage], 1, EN, message_id="m", page=page)).css(".p-hl")
    styles = [mark.attributes["style"] or "" for mark in marks]
    assert [style.split(";")[1] for style in styles] == [f"top:{y / 842:.3%}" for y in (99, 130)]


def test_a_long_quotation_can_be_seen_whole_and_others_are_one_line() -> None:
    long = "Long words. " * 100
    tree = panel(text_of(content("lines", lines("x"))), quote(1, long), quote(2, long))
    first, second = tree.css(".p-quotes li .p-quote")
    assert len(first.text() or "") > 1_000
    assert len(second.text() or "") <= 200
    button = one(tree, ".p-quotes li.p-here > button[data-do=unfold]")
    assert button.attributes["aria-expanded"] == "false"
    assert not panel(text_of(content("lines", lines("x"))), quote(1, "Short.")).css("[data-do=unfold]")


def test_what_was_found_but_not_cited_is_folded_below() -> None:
    passages = [quote(number, f"Passage {number}") for number in (1, 2, 3)]
    shown = text_of(content("lines", lines("x")))
    tree = panel(shown, *passages, uncited=frozenset({2, 3}))
    folded = one(tree, "details.p-also")
    assert "open" not in folded.attributes
    assert one(tree, "details.p-also > summary").text() == "Also found, not cited (2)"
    assert [number.text() for number in folded.css(".p-n")] == ["2", "3"]
    assert "open" in one(panel(shown, *passages, number=3, uncited=frozenset({2, 3})), "details").attributes
    assert not panel(shown, *passages, uncited=frozenset({1, 2, 3})).css("details")
    assert not panel(shown, *passages).css("details")


def chunk(number: int, page: int | None) -> Passage:
    return Passage(f"Chunk {number} <b>", 0.0, "made.pdf", "d", page, chunk_id=number)


def test_all_passages_of_a_document_are_listed_when_asked_for() -> None:
    shown = text_of(content("lines", lines("x")))
    folded = panel(shown, listing=Listing("d", 120))
    button = one(folded, ".p-all [data-do=passages]")
    assert (button.text(), button.attributes["data-n"]) == ("All passages of this document (120)", "0")
    assert not folded.css(".p-chunks")
    assert not panel(shown, listing=Listing("d", 0)).css(".p-all")

    chunks = [chunk(number, 1 + number // 2) for number in range(50, 100)]
    tree = panel(shown, number=None, listing=Listing("d", 120, 50, chunks, page=30, open_chunk=58))
    assert len(tree.css(".p-chunk")) == 50
    assert [one.text() for one in tree.css(".p-near .p-where")] == ["Page 30", "Page 30"]
    assert one(tree, ".p-chunk.p-here button").attributes["data-n"] == "58"
    assert one(tree, ".p-some span").text() == "Passages 51 to 100 of 120"
    starts = [one.attributes["data-n"] for one in tree.css(".p-some button")]
    assert starts == ["0", "100"]
    assert one(tree, "[aria-expanded=true]").attributes["data-n"] == "-1"


def test_a_chosen_passage_without_a_number_is_marked_on_its_page() -> None:
    page = ShownPage("d", "d", 2, 3, (600.0, 800.0), opened=((60.0, 64.0, 540.0, 112.0),))
    tree = parsed(evidence_html([quote(1, "Words", 1)], None, EN, message_id="m", page=page))
    assert len(tree.css(".p-hl.p-on")) == 1
    assert not tree.css(".p-here")


@pytest.mark.parametrize("kind", ["page", "slide", "sheet"])
def test_both_languages_have_every_word(kind: str) -> None:
    for words in (EN, ZH):
        for name in (f"evidence.{kind}", f"evidence.{kind}_of", f"evidence.where_{kind}"):
            assert words(name, n=2, total=3, document="d")
