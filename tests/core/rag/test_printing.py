"""What is printed is on the paper: long words break, wide tables shrink or become lists, and the text can be copied."""

from __future__ import annotations

import re
import unicodedata
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from core.export.html_style import PRINTED
from core.export.prose_html import Prose
from core.rag.parsers.pdf_mupdf import pymupdf
from core.rag.printing import cut_words, main
from tests.tries import tries

HASH = "4f9d8c7b6a5e4d3c2b1a0f9e8d7c6b5a" * 4
NAME = "averyveryverylongidentifier_name_{}"
PROSE = Prose(lambda alt, host: f"{alt} {host}")
WORDS = st.one_of(
    st.text(st.sampled_from("abcfil90"), min_size=1, max_size=12),
    st.text(st.sampled_from("aWfil90"), min_size=30, max_size=400),
    st.text(st.sampled_from("中文字符，。"), min_size=1, max_size=60),
    st.text(st.sampled_from("Жщяю"), min_size=1, max_size=90),
)
SAID = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
TABLES = st.integers(1, 24).flatmap(
    lambda columns: st.lists(st.lists(SAID, min_size=columns, max_size=columns), min_size=2, max_size=4)
)

MARGINS = (50, 50, -50, -60)  # points around the text; the numbers of the sheets are below
PHASES = set(Phase) - {
    Phase.shrink,
    Phase.explain,
}  # each example is laid out several times, which takes long to shrink


def printed(body: str, title: str = "A talk") -> Any:
    """The document that a page with this body is printed as."""
    with TemporaryDirectory() as folder:
        page, sheet, made = (Path(folder) / name for name in ("page.html", "page.css", "page.pdf"))
        page.write_text(f"<!doctype html><html><head><title>{escape(title)}</title></head><body>{body}</body></html>")
        sheet.write_text(PRINTED)
        main(str(page), str(sheet), str(made))
        return pymupdf().open("pdf", made.read_bytes())


def joined(text: str) -> str:
    """Without spaces and line breaks, ligatures as their letters."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text))


def on_paper(document: Any) -> str:
    """All text that is within the margins, the numbers of the sheets left out."""
    return joined("".join(page.get_text(clip=page.rect + MARGINS) for page in document))


def missing(said: str, document: Any) -> list[str]:
    paper = on_paper(document)
    return [word for word in said.split() if joined(word) not in paper]


def table(rows: list[list[str]]) -> str:
    head, *others = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([head, f"|{'---|' * len(rows[0])}", *others])


@settings(max_examples=tries(40), deadline=None, phases=PHASES, suppress_health_check=[HealthCheck.too_slow])
@given(SAID, st.sampled_from(["{}", "- a\n  - {}", "> > {}", "# {}", "```\n{}\n```", "x **{}**`{}`*{}*"]))
@example(HASH, "{}")
def test_each_word_of_a_message_is_on_the_paper_however_long_it_is(said: str, shape: str) -> None:
    assert missing(said, printed(PROSE.html(shape.replace("{}", said)))) == []


@settings(max_examples=tries(40), deadline=None, phases=PHASES, suppress_health_check=[HealthCheck.too_slow])
@given(TABLES, st.sampled_from(["", "- ", "> "]))
@example([[f"column {n}" for n in range(8)], ["some text", "x", *(NAME.format(n) for n in range(6))]], "")
def test_each_cell_of_a_table_is_on_the_paper_however_wide_it_is(rows: list[list[str]], within: str) -> None:
    first, *others = table(rows).split("\n")
    then = within if within == "> " else "  "
    html = PROSE.html("\n".join([within + first, *(then + one for one in others)]))
    assert "<table>" in html
    assert missing(" ".join(map(" ".join, rows)), printed(html)) == []


def test_a_cell_that_is_longer_than_a_sheet_goes_on_on_the_next() -> None:
    long = " ".join(f"word{number}" for number in range(1500))
    assert missing(f"{long} key other", printed(PROSE.html(table([["key", "other"], ["key", long]])))) == []


def test_what_is_nested_deeply_stays_on_the_paper() -> None:
    lists = "\n".join(f"{'  ' * depth}- {NAME.format(depth)}" for depth in range(17))
    quoted = f"{'> ' * 17}{NAME.format('quoted')} {HASH}"
    document = printed(PROSE.html(f"{lists}\n\n{quoted}"))
    said = " ".join([*(NAME.format(depth) for depth in range(17)), NAME.format("quoted"), HASH])
    assert missing(said, document) == []


def test_a_title_without_a_space_is_whole_on_the_paper() -> None:
    assert missing(HASH * 2, printed(f"<h1>{HASH * 2}</h1>")) == []


def test_a_table_that_fits_keeps_the_size_of_the_text_and_a_wide_one_its_rows() -> None:
    narrow = printed(PROSE.html(table([["fruit", "price"], ["apple", "3"]])))
    wide = printed(PROSE.html(table([["heading"] * 8, [NAME.format("one")] * 8])))

    def sizes(document: Any) -> set[float]:
        blocks = document[0].get_text("dict")["blocks"]
        return {round(span["size"], 1) for one in blocks for line in one.get("lines", ()) for span in line["spans"]}

    assert sizes(narrow) - {8.0} == {10.0}  # 8 is the number of the sheet
    assert sizes(wide) == {8.0}
    aligned = table([["heading"] * 8, [NAME.format("one")] * 8]).replace("---|", "--:|")
    assert sizes(printed(PROSE.html(aligned))) == {8.0}, "aligned columns fit as others do"
    assert len(wide[0].get_text().split("heading")) == 9  # each heading once


def test_no_sheet_is_lost_where_a_line_ends_exactly_with_the_one_before() -> None:
    said = " ".join(f"word{number}" for number in range(4000))
    for above in range(14):
        assert missing(said, printed(f'<p style="margin-top:{above}pt">{said}</p>')) == []


def test_what_is_copied_from_the_paper_is_what_was_written() -> None:
    document = printed("<p>office flow \U0001f600 مرحبا</p>", title="Tom & <i>Co</i>")
    said = document[0].get_text(clip=document[0].rect + MARGINS)
    assert "office flow \U0001f600" in said
    assert "مرحبا" in said
    assert document.metadata["title"] == "Tom & <i>Co</i>"
    assert document.metadata["author"] == ""


def test_a_very_long_word_does_not_take_long() -> None:
    blob = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo" * 6000
    assert len(on_paper(printed(f"<p>{blob}</p>"))) >= len(blob)


def test_a_word_is_cut_where_it_is_too_long_and_nowhere_else() -> None:
    whole = " ".join(["a" * 1_990] * 3)
    assert cut_words(whole, 2_000) == whole
    assert (
        cut_words(f'<p id="{"x" * 9}">{"b" * 5}&amp;{"c" * 4} d</p>', 4)
        == f'<p id="{"x" * 9}">bbbb<br>b&amp;cc<br>cc d</p>'
    )
