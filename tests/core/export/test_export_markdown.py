"""Markdown that is read as it was meant, whatever people, models and tools have written."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from core.export.exporting import attachment, file_name
from core.export.markdown import MarkdownWriter, fenced, plain, safe
from core.export.schema import ExportedCall, ExportedCitation, ExportedConversation, ExportedTurn, ExportHead
from core.messages.message import Message
from tests.tries import tries

NOW = datetime(2026, 5, 4, 3, 2, tzinfo=UTC)
READER = MarkdownIt("commonmark").enable("table")
PIECES = [
    *("```", "````", "~~~", "`", "``", "\\`", "    ", "  ", "- ", "1. ", "> ", "# ", "## You", "===", "---", "--", "-"),
    *("<b>", "</details>", "<details>", "<!--", "<?", "<script>alert(1)</script>", "<https://a.b>", "<https://a`b>"),
    *(
        "[1]",
        "[1]: x",
        "[^1]: x",
        "[^1]",
        "![a](b)",
        "a",
        "b c",
        "\n",
        "\n",
        "\n",
        "\n\n",
        "\t",
        "|a|b|\n|-|-|",
        "*",
        "\\",
    ),
]
HOSTILE = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


def turn(role: Any, *messages: Message, **more: Any) -> ExportedTurn:
    values: Any = {"status": "complete", "shown": True, "created_at": NOW, **more}
    return ExportedTurn(id="t", role=role, messages=messages, **values)


def written(*turns: ExportedTurn, title: str = "A talk", lang: Any = "en") -> str:
    writer = MarkdownWriter({}, lang)
    talk = ExportedConversation(id="c", title=title, created_at=NOW, updated_at=NOW)
    head = writer.head(ExportHead(exported_at=NOW, conversation=talk))
    return head + "".join(writer.turn(one) for one in turns)


def headings(text: str, deepest: int = 2) -> list[str]:
    tokens = READER.parse(text)
    return [
        after.content
        for token, after in pairwise(tokens)
        if token.type == "heading_open" and token.level == 0 and int(token.tag[1]) <= deepest
    ]


def tags(text: str) -> list[str]:
    """The raw HTML of a text, which only we may write."""
    flat = [inner for token in READER.parse(text) for inner in (token, *(token.children or []))]
    return [one.content.strip() for one in flat if one.type in {"html_block", "html_inline"}]


@settings(max_examples=tries(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(HOSTILE, HOSTILE, HOSTILE)
def test_no_text_reaches_past_its_place(asked: str, thought: str, said: str) -> None:
    tied = {"function_id": "c"}
    call: Any = {"name": "tool", "arguments": "{}"}
    reply = [
        Message("assistant", "", reasoning_content=thought),
        Message("assistant", "", function_call=call, extra=tied),
        Message("function", said, name="tool", extra=tied),
        Message("assistant", said),
    ]
    made = ExportedCall(id="c", name="tool", state="done", message=1, result=2)
    text = written(turn("user", Message("user", asked)), turn("assistant", *reply, calls=(made,)), turn("user"))
    assert headings(text) == ["A talk", "You", "Assistant", "You"]
    folds = 1 + bool(thought.strip())
    found = tags(text)
    assert [one for one in found if one.startswith("<details>")] == [one for one in found if "<summary>" in one]
    assert sum(one.startswith("<details>") for one in found) == folds
    assert found.count("</details>") == folds
    assert set(found) - {"</details>", "<sub>", "</sub>"} == {one for one in found if one.startswith("<details>")}


@settings(max_examples=tries(60), deadline=None)
@given(HOSTILE)
def test_a_title_is_one_heading_as_it_stands(title: str) -> None:
    assert len(headings(written(title=title))) == 1
    assert not tags(f"# {plain(title)}")


@pytest.mark.parametrize(
    "text",
    [
        "Plain *words* and `code <b>` and a list:\n\n- one\n- two",
        "1. First:\n   ```python\n   a < b  # <c>\n   ```\n2. Second",
        "```html\n<b># not a heading</b>\n```\nand on",
        "~~~\n```\n# inside\n~~~",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "See <https://example.org/a?b=c> and [this](https://example.org).",
        "x < 3 and y > 4",
    ],
)
def test_ordinary_markdown_stays_as_it_is(text: str) -> None:
    assert safe(text) == text


def test_what_would_break_the_page_is_mended() -> None:
    assert safe("# Title\ntext\n---\n## Sub") == "### Title\ntext\n***\n#### Sub"
    assert safe("Look:\n```python\nprint(1)") == "Look:\n```python\nprint(1)\n```"
    assert safe("<script>alert(1)</script>") == "&lt;script>alert(1)&lt;/script>"
    assert safe("![x](http://a/b)") == "\\![x](http://a/b)"
    assert safe("[x](javascript:alert(1))") == "[x\\](javascript:alert(1))"
    assert safe("one\ntwo", lines=True) == "one  \ntwo"
    assert fenced("a ``` b") == "````\na ``` b\n````"


LINKS = [
    *(
        "[",
        "](",
        "]",
        "]:",
        ")",
        "\\",
        "javascript:alert(1)",
        "java&#115;cript:x",
        "javascript\\:x",
        " DATA:text/html,x",
    ),
    *("&Tab;javascript:x", "&#1;javascript:x", "<", ">", "\n", " ", "a", "`", "#b", "https://x.y/?a=b:c", "docs/a.md"),
    *("[a](\n", "[fo\\]o]:", "[a\nb]:", "[a b]", "[a]"),
]


@settings(max_examples=tries(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(LINKS), max_size=14).map("".join))
@example("[a](\njavascript:alert(1))")
@example("[a](java&#115;cript:alert(1))")
@example("[a](javascript\\:alert(1))")
@example("[fo\\]o]: javascript:alert(1)\n\n[fo\\]o]")
@example("[foo\nbar]: javascript:alert(1)\n\n[foo bar]")
@example("[a\\]: javascript:x\n\n[a\\]")
@example("[a\\](javascript:x)")
@example("\\![a](https://x.y)")
def test_no_link_runs_a_program_in_a_reader_that_lets_any_link_be(text: str) -> None:
    reader = MarkdownIt("commonmark")
    reader.validateLink = lambda url: True
    flat = [inner for token in reader.parse(safe(text)) for inner in token.children or []]
    targets = [str(one.attrs["href"]).strip() for one in flat if one.type == "link_open"]
    assert "image" not in {one.type for one in flat}
    assert not [one for one in targets if re.match(r"[\x00-\x20]*(?:%[01].)*(?:javascript|data):", one, re.IGNORECASE)]


def test_links_that_lead_somewhere_stay() -> None:
    text = '[a](https://x.y/z?a=b:c) [b](#a) [c](docs/x.md) [d](a.md "So") [e](mailto:a@b.c) [f](/files/x?a&b)'
    assert safe(text) == text


def test_citations_are_footnotes_numbered_through_the_whole_file() -> None:
    passages = tuple(
        ExportedCitation(number=number, document=f"paper_{number}.pdf", page=number, text=f"Passage {number}.")
        for number in (1, 2)
    )
    first = turn("assistant", Message("assistant", "So [2][1], `x[1]` and [9]."), citations=passages)
    text = written(first, turn("assistant", Message("assistant", "And [1, 2]."), citations=passages))
    assert "So [^1][^2], `x[1]` and [9]." in text
    assert "[^1]: **paper\\_2.pdf**, page 2: Passage 2.\n[^2]: **paper\\_1.pdf**, page 1: Passage 1." in text
    assert "And [^3][^4]." in text
    assert "，" not in text
    assert "**, 第 1 页: Passage 1." in written(first, lang="zh")


def test_a_cited_sheet_is_named_by_its_title_and_counted_only_without_one_and_a_slide_is_no_page() -> None:
    passages = (
        ExportedCitation(number=1, document="orders.xlsx", page=1, heading="Orders", text="Ink"),
        ExportedCitation(number=2, document="orders.xlsx", page=2, text="Paper"),
        ExportedCitation(number=3, document="talk.pptx", page=3, heading="Plan", text="First"),
    )
    said = turn("assistant", Message("assistant", "So [1][2][3]."), citations=passages)
    text = written(said)
    assert "[^1]: **orders.xlsx**, Orders: Ink\n[^2]: **orders.xlsx**, sheet 2: Paper\n" in text
    assert "[^3]: **talk.pptx**, slide 3, Plan: First" in text
    assert "**orders.xlsx**, 第 2 个工作表: Paper" in written(said, lang="zh")


def test_a_call_is_folded_and_speakers_have_their_names() -> None:
    call: Any = {"name": "calculator", "arguments": '{"expression": "1+1"}'}
    tied = {"function_id": "c"}
    made = ExportedCall(id="c", name="calculator", arguments={"expression": "1+1"}, state="done", message=1, result=2)
    reply = [
        Message("assistant", "I count.", name="Ada"),
        Message("assistant", "", name="Ada", function_call=call, extra=tied),
        Message("function", "2", name="calculator", extra=tied),
        Message("assistant", "It is two.", name="Bob"),
    ]
    text = written(turn("assistant", *reply, calls=(made,), status="stopped"))
    assert text.index("### Ada") < text.index("<summary>calculator · done</summary>") < text.index("### Bob")
    assert '```json\n{\n  "expression": "1+1"\n}\n```' in text
    assert text.rstrip().endswith("*This reply was stopped here.*")


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("My trip", "My trip.md"),
        ("去东京的旅行 🗼", "去东京的旅行 🗼.md"),
        ("👩‍👩‍👧 family", "👩‍👩‍👧 family.md"),
        ('a/b\\c:d*e?"<f>|g', "a b c d e f g.md"),
        ("invoice\u202efdp.exe", "invoicefdp.exe.md"),
        ("CON", "_CON.md"),
        ("nul .txt", "_nul .txt.md"),
        ("lpt1.txt", "_lpt1.txt.md"),
        ("..", "conversation.md"),
        ("", "conversation.md"),
        (" . dots . ", "dots.md"),
        ("line\nbreak\x00", "line break.md"),
        ("x" * 300, "x" * 80 + ".md"),
        ("漢" * 300, "漢" * 60 + ".md"),
    ],
)
def test_a_file_name_is_safe_on_every_system(title: str, name: str) -> None:
    assert file_name(title, "md") == name


@given(st.text(max_size=300))
def test_any_title_gives_a_name_and_a_header(title: str) -> None:
    name = file_name(title, "json")
    assert not set(name) & set('/\\:*?"<>|\n\r\0')
    assert len(name.encode()) <= 200
    header = attachment(name)
    assert header.isascii()
    assert "\n" not in header
