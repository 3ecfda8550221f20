"""Footnotes: numbered as the text names them, listed at its end, and copied as they were written."""

from __future__ import annotations

import pytest

from webui.render.markdown import markdown
from webui.words import Words

EN = Words("en")


def numbers(text: str) -> list[str]:
    made = markdown(text, EN)
    return [piece.partition("</a>")[0].rpartition(">")[2] for piece in made.split("<sup>")[1:]]


def test_a_footnote_leads_to_what_it_says_at_the_end() -> None:
    made = markdown("Two[^b] and one[^a].\n\n[^a]: First <i>one</i>.\n[^b]: Second,\n   and more.\n\nThe end.", EN)
    text, _, foot = made.partition('<p class="p-feet"></p>')
    assert 'Two<sup><a class="p-do p-foot" role="button" href="#do-foot-1-b">1</a></sup>' in text
    assert 'one<sup><a class="p-do p-foot" role="button" href="#do-foot-2-a">2</a></sup>.' in text
    assert "The end." in text
    assert "Second, and more." in foot
    assert "First &lt;i>one&lt;/i>." in foot
    assert foot.index("#do-footback-1-b") < foot.index("#do-footback-2-a")


def test_the_same_note_has_one_number_and_one_may_name_another() -> None:
    assert numbers("A[^x] b[^x] c[^y].\n\n[^x]: See[^z].\n[^y]: Y.\n[^z]: Z.") == ["1", "1", "2", "1", "3", "2", "3"]


def test_a_number_that_follows_another_says_so_and_no_other_does() -> None:
    made = markdown("One[^a][^b] and[^a].\n\n[^a]: A.\n[^b]: B.", EN)
    assert [piece.partition('"')[0] for piece in made.split('<a class="')[1:4]] == [
        "p-do p-foot",
        "p-do p-foot p-next",
        "p-do p-foot",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Nothing[^of] that.",
        "`[^a]`\n\n[^a]: A.",
        "```\n[^a]: A.\n[^a]\n```",
        "[^a]: Nobody names it.",
        "![^a](x)",
        "[^ a]",
    ],
)
def test_what_is_no_footnote_stays_text_or_goes(text: str) -> None:
    made = markdown(text, EN)
    assert "<sup>" not in made
    assert "p-feet" not in made


def test_a_name_forges_nothing_and_a_note_that_is_still_being_written_is_text() -> None:
    assert "<sup>" not in markdown('A[^a"b].\n\n[^a"b]: B.', EN)
    assert markdown("A[^1].", EN, growing=True) == "A[^1]."


def test_ten_thousand_notes_that_name_each_other_are_drawn_once_each() -> None:
    lines = [f"[^{n}]: Next[^{n + 1}]" for n in range(10_000)]
    made = markdown("Begin[^0].\n\n" + "\n".join(lines), EN)
    assert made.count("p-footback") == 10_000
