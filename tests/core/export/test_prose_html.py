"""One plain line, which is not given to the reader of Markdown, comes out as that would give it."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it.rules_inline.text import text as markdown_its_own

from core.export.prose_html import Prose, linked
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
    assert Prose(lambda description, host: "").html("It is so. ", str.upper) == '<p dir="auto">IT IS SO.</p>\n'


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


def html_of(said: str) -> str:
    return Prose(lambda description, host: "").html(said)


def test_a_new_line_is_a_new_line() -> None:
    assert "one<br />\ntwo<br />\nthree" in html_of("one\ntwo\nthree")


def test_an_address_in_the_text_is_a_link_without_the_signs_that_end_its_sentence() -> None:
    address = "https://example.org/a_b?x=1&y=(2)"
    for said in (f"See {address}.", f"({address})", f"**{address}**", f"见{address}，好。", f"| {address} |\n|---|"):
        shown = html_of(said)
        assert 'href="https://example.org/a_b?x=1&amp;y=(2)"' in shown, said
        assert ">https://example.org/a_b?x=1&amp;y=(2)</a>" in shown, said
    assert html_of(f"`{address}` [here]({address})").count("<a ") == 1
    link = html_of(address).removeprefix('<p dir="auto">').removesuffix("</p>\n")
    assert linked(f'<b> {address}"') == f"&lt;b&gt; {link}&quot;"
    assert "<a " not in html_of("https:// and javascript://example.org and xhttps://example.org")


def test_each_block_runs_as_its_own_first_letters_do() -> None:
    shown = html_of("Hello.\n\nمرحبا hello\n\n- مرحبا\n\n| مرحبا |\n|---|")
    assert shown.count('<p dir="auto">') == 2
    assert '<li dir="auto">' in shown
    assert '<th dir="auto">' in shown


def test_cells_are_aligned_as_their_columns_say() -> None:
    shown = html_of("| a | b | c |\n|---|--:|:-:|\n| 1 | 2 | 3 |")
    assert '<td dir="auto" class="right">2</td>' in shown
    assert '<td dir="auto" class="center">3</td>' in shown
    assert "style" not in shown
