"""Figures on the panel of sources: a picture where its document has no drawn pages, and a word on what was seen."""

from __future__ import annotations

from html import unescape

from core.rag.document import Block, Passage
from core.rag.page_content import PageContent
from webui.panels.evidence import ShownText, evidence_html
from webui.words import Words

EN = Words("en")
FIGURE = Block("figure", "[Figure] Figure 7: Rope <by> year", source="word/media/image1.png")


def shown(figures: dict[str, int]) -> str:
    content = PageContent("text", None, 1, 1, 1, 1, (Block("paragraph", "Ships bring rope."), FIGURE))
    page = ShownText("d0c", "report.docx", None, content, figures=figures)
    passage = Passage(FIGURE.text, 1.0, "report.docx", "d0c").as_dict()
    rows = [{**passage, "number": 1, "seen": True}, {**passage, "number": 2}]
    markup = evidence_html(rows, 1, EN, message_id="m", page=page)
    assert "<by>" not in markup  # it is a document's word, not markup
    return unescape(markup)


def test_a_figure_stands_in_its_document_as_a_picture_with_its_caption() -> None:
    markup = shown({"word/media/image1.png": 3})
    assert 'src="./pages/d0c/figure/3.jpg" alt="Figure 7: Rope <by> year"' in markup
    assert markup.count("<img") == 1


def test_a_figure_that_cannot_be_shown_is_told_by_its_words() -> None:
    markup = shown({})
    assert "<img" not in markup
    assert "Rope <by> year" in markup


def test_it_is_said_which_passages_the_model_saw_as_a_picture() -> None:
    assert shown({}).count("report.docx · seen as a picture") == 1
