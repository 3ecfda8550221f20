"""One plain line, which is not given to the reader of Markdown, comes out as that would give it."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it.rules_inline.text import text as markdown_its_own

from core.export.prose_html import Prose
from tests.tries import tries

PLAIN = st.one_of(
    st.text(st.sampled_from("abcZ019 ,.;:?!()%-"), max_size=40),
    st.text(st.characters(categories=["L", "N", "M", "P", "S", "Zs"]), max_size=20),
)


@given(PLAIN)
def test_a_plain_line_is_the_same_as_if_it_had_been_read(line: str) -> None:
    prose = Prose(lambda description, host: "")
    read = prose.html(f"{line}\n\n***")  # a second block, so that it is read
    assert read == f"{prose.html(line)}<hr />\n"


def test_citations_are_put_into_it_too() -> None:
    assert Prose(lambda description, host: "").html("It is so. ", str.upper) == "<p>IT IS SO.</p>\n"


SIGNS = st.text(st.sampled_from("a #\n!$&*<>[](){}\\`_~-+=.:|\"'1@^%/中;"), max_size=60)


def sign_by_sign() -> Prose:
    """What reads as markdown-it does by itself."""
    made = Prose(lambda alt, host: f"{alt} {host}")
    reader: Any = vars(made)["_reader"]
    reader.inline.ruler.at("text", markdown_its_own)
    reader.enable(["html_block", "html_inline"])
    return made


QUICK, SLOW = Prose(lambda alt, host: f"{alt} {host}"), sign_by_sign()


@settings(max_examples=tries(300), deadline=None)
@given(SIGNS)
@example("Wow! ![a](https://b.c/d.png)!!! [a!](https://b.c) \\! ~~a~~ <https://b.c> <b> &amp; $a$ #1 {2} +3")
def test_text_that_is_read_in_runs_comes_out_as_if_it_were_read_sign_by_sign(said: str) -> None:
    assert QUICK.html(said, str.upper) == SLOW.html(said, str.upper)
