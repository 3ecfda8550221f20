"""One plain line, which is not given to the reader of Markdown, comes out as that would give it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.export.prose_html import Prose

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
