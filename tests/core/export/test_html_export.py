"""A conversation as a page and on paper: nothing that was said becomes markup, and marks lead to passages."""

from __future__ import annotations

import re
import zipfile
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from html.parser import HTMLParser
from io import BytesIO
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from core.errors import BrokenDocumentError, NotFoundError
from core.export.cited_pages import CitedPages, PagePicture
from core.export.exporting import Exported
from core.export.html_page import HtmlWriter, inline_picture
from core.export.html_style import PRINTED, SCREEN, hash_of
from core.export.schema import ExportedCall, ExportedCitation, ExportedConversation, ExportedTurn, ExportHead
from core.export.together import zipped
from core.messages.message import Message
from core.rag.printing import as_pdf
from tests.core.export.test_export_markdown import HOSTILE
from tests.tries import tries

NOW = datetime(2026, 5, 4, 3, 2, tzinfo=UTC)
PASSAGE = ExportedCitation(
    number=1,
    document="policy.pdf",
    document_id="d1",
    page=4,
    text="Damage by <water> is covered.",
    cited=True,
    rectangles=((10.0, 20.0, 110.0, 40.0),),
)


def turn(role: Any, *messages: Message, **more: Any) -> ExportedTurn:
    values: Any = {"status": "complete", "shown": True, "created_at": NOW, **more}
    return ExportedTurn(id="t", role=role, messages=messages, **values)


def written(
    *turns: ExportedTurn, title: str = "A talk", lang: Any = "en", picture: bool = True, printed: bool = False
) -> str:
    writer = HtmlWriter({}, lang, printed=printed)
    talk = ExportedConversation(id="c", title=title, created_at=NOW, updated_at=NOW)
    text = writer.head(ExportHead(exported_at=NOW, conversation=talk)) + writer.turns(turns)
    pages = CitedPages(None)
    for cited in writer.pages().values():
        shown = PagePicture(b"png", (200.0, 300.0)) if picture else None
        text += writer.evidence_begins() + writer.evidence(
            cited, pages, shown, inline_picture(b"png") if picture else ""
        )
    return text + writer.foot()


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.names: list[str] = []
        self.values: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.values += [(name, value or "") for name, value in attrs]


def tags(text: str) -> Tags:
    found = Tags()
    found.feed(text)
    return found


@settings(max_examples=tries(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(HOSTILE, HOSTILE, HOSTILE)
def test_whatever_is_said_is_no_markup_of_the_page(asked: str, thought: str, said: str) -> None:
    call: Any = {"name": "<b>tool", "arguments": "{}"}
    reply = [
        Message("assistant", "", reasoning_content=thought),
        Message("assistant", "", function_call=call, extra={"function_id": "c"}),
        Message("function", asked, name="tool", extra={"function_id": "c"}),
        Message("assistant", said),
    ]
    calls = (ExportedCall(id="c", name="<b>tool", arguments=asked, state="done", message=1, result=2),)
    found = tags(
        written(turn("user", Message("user", asked)), turn("assistant", *reply, calls=calls), title=asked or "x")
    )
    assert not {"script", "iframe", "object", "form", "base", "embed", "b"} & set(found.names)
    assert not [name for name, _ in found.values if name.startswith("on") or name == "style"]
    addresses = [value for name, value in found.values if name in {"href", "src"}]
    assert all(re.match(r"https?://|mailto:|#|data:image/png;base64,", one) for one in addresses)
    assert found.names.count("article") == 2


def test_a_question_stands_as_it_was_typed() -> None:
    text = written(turn("user", Message("user", "  * one\n  * <two> & 3")))
    assert "  * one\n  * &lt;two&gt; &amp; 3</p>" in text


def test_on_paper_a_mark_is_no_link_and_a_passage_says_which_reply_cites_it() -> None:
    replies = [turn("assistant", Message("assistant", "It is covered [1]."), citations=(PASSAGE,)) for _ in range(2)]
    one, two = written(replies[0], printed=True), written(*replies, printed=True)
    for text in (one, two):
        assert '<sup><b class="mark">1</b></sup>' in text
        assert "<a " not in text
        assert "<ol>" not in text
    assert '<p class="cited" dir="auto"><b class="mark">1</b> Damage by' in one
    assert [label in two for label in ("1 in reply 1:", "1 in reply 2:")] == [True, True]


def test_formulas_are_drawn_and_keep_their_latex_and_code_is_kept_sign_for_sign() -> None:
    said = "So $a_1 * b_2 * c$, \\(x_1\\) and\n\n$$\na\n= b_1\n$$\n\n```python\nif a < b:\n    _c_ = 1\n```\n\n"
    said += "It costs $5 or $6."
    text = written(turn("assistant", Message("assistant", said)))
    assert '<math alttext="a_1 * b_2 * c">' in text
    assert '<math alttext="x_1">' in text
    assert '<div class="math"><math display="block" alttext="a\n= b_1">' in text
    assert "<code>if a &lt; b:\n    _c_ = 1\n</code>" in text
    assert "It costs $5 or $6." in text


def test_a_mark_leads_to_its_passage_beside_the_page_with_its_rectangles() -> None:
    text = written(turn("assistant", Message("assistant", "It is covered [1]. `[1]` [2]"), citations=(PASSAGE,)))
    anchor = re.findall(r'<a class="mark" href="#([\w-]+)">1</a>', text)
    assert len(anchor) == 2  # in the reply, and beside the passage
    assert f'id="{anchor[0]}"' in text
    assert "Damage by &lt;water&gt; is covered." in text
    assert '<svg viewBox="0 0 200 300" preserveAspectRatio="none">' in text
    assert '<rect class="passage" x="10.00" y="20.00" width="100.00" height="20.00"/>' in text
    assert "<code>[1]</code> [2]" in text


def test_where_the_document_is_gone_the_passage_is_there_all_the_same() -> None:
    text = written(turn("assistant", Message("assistant", "Yes [1]."), citations=(PASSAGE,)), picture=False)
    assert "The page itself is not here." in text
    assert "Damage by" in text
    assert "<img" not in text


def test_a_sheet_and_a_slide_are_called_so_beside_their_passages_and_a_sheet_by_its_title() -> None:
    def beside(lang: str, **about: Any) -> str:
        passage = ExportedCitation(number=1, document_id="d1", text="Ink", cited=True, **about)
        text = written(
            turn("assistant", Message("assistant", "So [1]."), citations=(passage,)), lang=lang, picture=False
        )
        heading = re.search(r'<section class="page"><h3>(.*?)</h3><p class="note">(.*?)</p>', text)
        assert heading is not None
        return " | ".join(heading.groups())

    orders, talk = {"document": "orders.xlsx", "page": 2}, {"document": "talk.pptx", "page": 3, "heading": "Plan"}
    assert beside("en", **orders, heading="Paper") == "orders.xlsx, Paper | The sheet itself is not here."
    assert beside("en", **orders) == "orders.xlsx, sheet 2 | The sheet itself is not here."
    assert beside("en", **talk) == "talk.pptx, slide 3 | The slide itself is not here."
    assert beside("zh", **orders, heading="Paper") == "orders.xlsx，Paper | 此处没有这个工作表的图像。"
    assert beside("zh", **orders) == "orders.xlsx，第 2 个工作表 | 此处没有这个工作表的图像。"
    assert beside("zh", **talk) == "talk.pptx，第 3 张幻灯片 | 此处没有这张幻灯片的图像。"


def test_nothing_can_run_or_be_fetched() -> None:
    text = written(turn("user", Message("user", "Hello")))
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    style = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert policy == [
        f"default-src 'none'; img-src data:; style-src {hash_of(style[0])}; base-uri 'none'; form-action 'none'"
    ]
    assert "url(" not in SCREEN
    assert "@import" not in SCREEN


def test_a_heading_of_a_reply_is_no_name_of_a_speaker_and_paper_tells_nothing_of_networks() -> None:
    turns = turn("user", Message("user", "Hi")), turn("assistant", Message("assistant", "## Plan\n\nGo."))
    text = written(*turns)
    assert re.findall(r'<h2 class="who">(.*?)</h2>', text) == ["You", "Assistant"]
    assert '<h2 dir="auto">Plan</h2>' in text
    assert "article h2 { position" not in SCREEN  # which hid all of them
    assert "Nothing is fetched" in text
    assert "Nothing is fetched" not in written(*turns, printed=True)


def test_on_paper_chinese_is_readable_and_sheets_are_numbered() -> None:
    from core.rag.parsers.pdf_mupdf import pymupdf

    long = "\n\n".join(f"第 {number} 段：合同的免赔额是三百元。" for number in range(120))
    turns = turn("user", Message("user", "免赔额是多少？")), turn("assistant", Message("assistant", long))
    made = as_pdf(written(*turns, lang="zh", printed=True), PRINTED)
    document = pymupdf().open("pdf", made)
    said = "".join(page.get_text() for page in document)
    assert "免赔额是多少？" in said
    assert "合同的免赔额是三百元" in said
    assert f"2 / {len(document)}" in document[1].get_text()
    assert len(made) < 400_000  # of a font there is what is used


def test_on_paper_an_emoji_is_one_sign_whatever_says_how_it_would_be_coloured() -> None:
    from core.rag.parsers.pdf_mupdf import pymupdf

    (page,) = pymupdf().open("pdf", as_pdf("<p>a❤️b 👍🏽c ⚠︎d</p>", PRINTED))
    assert page.get_text().split("\n")[0] == "a❤b 👍c ⚠d"


class Shelf:
    """What exports, without a database."""

    async def export(self, one: str, form: str, lang: str = "en") -> Exported:
        if one == "gone":
            raise NotFoundError

        async def pieces() -> AsyncGenerator[str]:
            yield f"{form} of {one}"

        return Exported(f"Talk.{form}", "", pieces())

    async def printed(self, one: str, lang: str = "en") -> tuple[str, bytes]:
        if one == "broken":
            raise BrokenDocumentError
        return "Talk.pdf", b"%PDF"


@pytest.mark.anyio
async def test_many_are_one_archive_in_which_no_name_is_twice() -> None:
    shelf: Any = Shelf()
    made = b"".join([piece async for piece in zipped(shelf, ["a", "gone", "b"], "md")])
    archive = zipfile.ZipFile(BytesIO(made))
    assert archive.testzip() is None
    assert {name: archive.read(name) for name in archive.namelist()} == {
        "Talk.md": b"md of a",
        "Talk (2).md": b"md of b",
    }
    printed = b"".join([piece async for piece in zipped(shelf, ["a", "broken"], "pdf")])
    assert zipfile.ZipFile(BytesIO(printed)).namelist() == ["Talk.pdf", "Talk.html"]
