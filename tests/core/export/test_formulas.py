"""Formulas of exported pages are drawn by browsers, and can hold nothing but MathML."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.export.formulas import mathml
from core.export.prose_html import Prose

WRITTEN = (
    *(
        "\\frac",
        "\\sqrt",
        "\\text{",
        "\\href{",
        "\\style{",
        "\\begin{",
        "\\end{",
        "aligned}",
        "matrix}",
        "\\left(",
        "\\right)",
    ),
    *(
        "{",
        "}",
        "^",
        "_",
        "&",
        "\\\\",
        "<script>",
        "&lt;",
        '"',
        "'",
        "x",
        "12",
        "\\foo",
        "javascript:alert(1)",
        "中",
        " ",
        "\\color{",
    ),
)
"""What a formula may be made of, and what is made to break out of one."""


class Elements(HTMLParser):
    """The names of the elements of a text, and those of their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize(
    ("latex", "elements"),
    [
        ("\\frac{a}{b}", ["mfrac", "mi", "mi"]),
        ("x^2", ["msup", "mi", "mn"]),
        ("\\sqrt{2}", ["mo", "mn"]),
        ("\\sqrt[3]{x}", ["msup", "mn", "mo", "mi"]),
        ("\\begin{aligned}a&=b\\\\c&=d\\end{aligned}", ["mtable", "mtr", "mtd", "mi", "mtd", "mi", "mo", "mi"]),
        ("\\begin{gathered}a\\\\b\\end{gathered}", ["mtable", "mtr", "mtd", "mi", "mtr", "mtd", "mi"]),
    ],
)
def test_a_formula_is_drawn_by_the_elements_of_mathml(latex: str, elements: list[str]) -> None:
    names = [one for one in Elements(mathml(latex)).names if one != "mrow"]
    assert names[: 1 + len(elements)] == ["math", *elements]


@pytest.mark.parametrize(
    "latex",
    [
        "",
        " ",
        "\\",
        "\\foo{x}",
        "a < b & c",
        "{" * 70,
        "x" * 1001,
        "\\frac",
        "\\begin{matrix}",
        "\\left(a",
        "\\sqrt" * 61,
    ],
)
def test_what_cannot_be_translated_stays_as_it_was_written(latex: str) -> None:
    assert mathml(latex) == ""


def test_a_formula_in_a_text_is_drawn_and_one_that_cannot_be_is_code() -> None:
    prose = Prose(lambda description, host: "")
    made = prose.html("So $a_1$, and $\\foo{x}$.\n\n$$\n\\frac{a}{b}\n$$\n\n`$x$`")
    assert '<p dir="auto">So <math alttext="a_1">' in made
    assert '<code class="formula">\\foo{x}</code>' in made
    assert '<div class="math"><math display="block" alttext="\\frac{a}{b}">' in made
    assert "<code>$x$</code>" in made


def test_code_in_a_sentence_about_money_is_no_formula() -> None:
    assert "<math" not in Prose(lambda description, host: "").html("It costs $6, or `$x` for short, not `$y`.")


def test_paper_has_the_formula_as_it_was_written() -> None:
    made = Prose(lambda description, host: "", drawn=False).html("So $a_1$.")
    assert '<code class="formula">a_1</code>' in made


@given(st.lists(st.sampled_from(WRITTEN), max_size=24).map("".join))
@example("\\text{<script>alert(1)</script>}")
@example("\\href{javascript:alert(1)}{x}")
@example('\\color{red" onclick="x}{y}')
@example("\\text{&lt;img src=x onerror=y&gt;}")
def test_a_formula_holds_no_script_no_address_and_no_style(latex: str) -> None:
    found = Elements(mathml(latex))
    assert all(re.fullmatch("m[a-z]+|none", one) for one in found.names), found.names
    assert not found.open
    assert not found.attributes & {"href", "style", "src", "id", "xlink:href"}
    assert not any(one.startswith("on") for one in found.attributes)
