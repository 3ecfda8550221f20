"""The scanner tells text, thought and calls apart, wherever the reply was cut into chunks."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.llm.calling.reply_reader import Untagged
from core.llm.calling.tag_scanner import MARKED, ONLY_THOUGHTS, TAGGED, Piece, Tags, TagScanner

FORMATS = st.sampled_from([TAGGED, MARKED, ONLY_THOUGHTS])
PLAIN = [
    "<think>", "</think>", "<tool_call>", "</tool_call>", "<tool", "</", "<", "\n", " ", ":", "✿", "✿FUNC", "✿ARGS✿: ",
    "✿FUNCTION✿: f\n", "✿RESULT✿", "✿RETURN✿", "<function=f>", "<parameter=x>", "</parameter>", "</function>", "'",
    '{"name": "f", "arguments": {"x": 1}}', '"', "\\", "hello", "你好", "😀", '{"t": "</tool_call>"}', "<think",
    "x" * 199,
]  # fmt: skip
PARTS = st.sampled_from([*PLAIN, "`", "```", "\n```json\n", "~~~\n"])
REPLIES = st.lists(PARTS, max_size=14).map("".join)
CUTS = st.lists(st.integers(0, 200), max_size=30)


def chunks_of(reply: str, cuts: list[int]) -> list[str]:
    edges = [0, *sorted(min(cut, len(reply)) for cut in cuts), len(reply)]
    return [reply[start:end] for start, end in pairwise(edges)]


def scanned(pieces: list[str], tags: Tags = TAGGED, *, cut: bool = False, after_tag: bool = False) -> list[Piece]:
    scanner = TagScanner(tags, after_tag=after_tag)
    found: list[Piece] = []
    for piece in pieces:
        found += scanner.feed(piece)
    joined: list[Piece] = []
    for piece in [*found, *scanner.close(cut=cut)]:
        if joined and piece.mode == joined[-1].mode and piece.mode != "call":
            joined[-1] = Piece(piece.mode, joined[-1].text + piece.text)
        else:
            joined.append(piece)
    return joined


@given(FORMATS, REPLIES, CUTS, st.booleans(), st.booleans())
def test_any_split_of_a_reply_gives_the_same_pieces(
    tags: Tags, reply: str, cuts: list[int], cut: bool, after_tag: bool
) -> None:
    whole = scanned([reply], tags, cut=cut, after_tag=after_tag)
    assert scanned(chunks_of(reply, cuts), tags, cut=cut, after_tag=after_tag) == whole
    assert scanned(list(reply), tags, cut=cut, after_tag=after_tag) == whole


@given(st.sampled_from([TAGGED, MARKED]), st.lists(st.sampled_from(PLAIN), max_size=14).map("".join))
def test_half_a_tag_is_never_shown(tags: Tags, reply: str) -> None:
    """What the text so far ends with is held back as long as it may become a tag."""
    scanner, shown = TagScanner(tags), ""
    halves = [tag[:size] for tag in (*tags.opens, *tags.drops, *tags.invents) for size in range(1, len(tag))]
    for at, character in enumerate(reply, 1):
        shown += "".join(piece.text for piece in scanner.feed(character) if piece.mode == "text")
        for half in halves:
            if reply[:at].endswith(half) and scanner.mode == "text":
                assert shown.count(half) < reply[:at].count(half)
    shown += "".join(piece.text for piece in scanner.close() if piece.mode == "text")
    ends = [half for half in halves if len(half) > 4 and reply.endswith(half) and scanner.mode == "text"]
    assert all(shown.count(half) < reply.count(half) for half in ends)


@given(FORMATS, REPLIES, st.booleans())
def test_nothing_but_tags_and_white_space_is_lost(tags: Tags, reply: str, cut: bool) -> None:
    reply = reply.replace("✿RESULT✿", "")  # what follows it is the model's invention
    pieces = "".join(piece.text for piece in scanned([reply], tags, cut=cut))
    for word in ("hello", "你好", "😀", '{"name": "f", "arguments": {"x": 1}}', "x" * 199, "<parameter=x>"):
        assert pieces.count(word) == reply.count(word)


@pytest.mark.parametrize(
    ("tags", "reply"), [(TAGGED, "so <tool_ca"), (MARKED, "so ✿FUNC"), (MARKED, "so ✿RETURN")], ids=str
)
def test_half_a_tag_at_the_end_of_a_reply_is_not_shown_either(tags: Tags, reply: str) -> None:
    assert scanned([reply], tags) == [Piece("text", "so")]


@pytest.mark.parametrize("reply", ["a <", "if x <t", "flowers ✿"])
def test_an_end_that_only_looks_like_the_start_of_a_tag_is_kept(reply: str) -> None:
    assert scanned([reply]) == scanned([reply], MARKED) == [Piece("text", reply)]


@given(st.text(alphabet=st.characters(exclude_characters="<`", exclude_categories=["Cs"])))
def test_text_without_tags_comes_through_unchanged(reply: str) -> None:
    assert "".join(piece.text for piece in scanned(list(reply))) == reply


def test_text_before_between_and_after_calls_is_kept() -> None:
    reply = 'One. <tool_call>{"name": "f"}</tool_call> Two. <tool_call>{"name": "g"}</tool_call>\nThree.'
    assert scanned([reply]) == [
        Piece("text", "One."),
        Piece("call", '{"name": "f"}'),
        Piece("text", "Two."),
        Piece("call", '{"name": "g"}'),
        Piece("text", "Three."),
    ]


def test_a_call_in_a_thought_a_fence_or_inline_code_is_quotation() -> None:
    call = '<tool_call>{"name": "f"}</tool_call>'
    assert scanned([f"<think>maybe {call}</think>no"]) == [Piece("thought", f"maybe {call}"), Piece("text", "no")]
    assert scanned([f"```\n{call}\n```"]) == [Piece("text", f"```\n{call}\n```")]
    assert scanned([f"write `{call}`"]) == [Piece("text", f"write `{call}`")]


def test_a_call_after_a_closed_fence_is_a_call() -> None:
    assert [p.mode for p in scanned(["```\nx\n```\n<tool_call>{}</tool_call>"])] == ["text", "call"]


def test_a_closing_tag_inside_a_string_belongs_to_the_string() -> None:
    body = '{"name": "f", "arguments": {"t": "a </tool_call> \\" <tool_call> b"}}'
    assert scanned([f"<tool_call>{body}</tool_call>"]) == [Piece("call", body)]


def test_a_forgotten_closing_tag_ends_the_call_at_the_next_one() -> None:
    assert [p.mode for p in scanned(['<tool_call>{"name": "f"}\n<tool_call>{"name": "g"}</tool_call>'])] == ["call"] * 2


def test_a_reply_that_ends_inside_a_call_says_that_it_was_cut() -> None:
    assert scanned(['<tool_call>{"name": "f", "arguments": {"city": "Par']) == [
        Piece("call", '{"name": "f", "arguments": {"city": "Par', closed=False)
    ]


def test_the_end_of_a_call_is_found_behind_a_quote_that_never_closed() -> None:
    reply = '<tool_call>{"x": "5" tall"}</tool_call> text <tool_call>{"y": 1}</tool_call>'
    assert scanned([reply]) == [Piece("call", '{"x": "5" tall"}'), Piece("text", "text"), Piece("call", '{"y": 1}')]
    assert scanned([reply], cut=True) == [Piece("call", reply.removeprefix("<tool_call>"), closed=False)]


def test_a_tag_in_a_value_of_an_xml_call_is_text() -> None:
    body = "\n<function=f>\n<parameter=x>\nit's \"</tool_call>\n</parameter>\n</function>\n"
    assert scanned([f"<tool_call>{body}</tool_call>done"]) == [Piece("call", body), Piece("text", "done")]


def test_what_a_model_invents_after_its_call_is_not_read() -> None:
    reply = "ok ✿FUNCTION✿: f\n✿ARGS✿: {}\n✿RESULT✿: 7\n✿RETURN✿: It is 7."
    assert scanned([reply], MARKED) == [Piece("text", "ok"), Piece("call", ": f\n✿ARGS✿: {}\n")]


def test_a_mark_that_says_nothing_is_left_out_with_its_colon() -> None:
    assert scanned(["✿RETURN✿: Sunny."], MARKED) == [Piece("text", "Sunny.")]
    assert scanned(["Well. ✿RETURN✿: Sunny."], MARKED) == [Piece("text", "Well. Sunny.")]
    assert scanned([": Sunny."], MARKED, after_tag=True) == [Piece("text", "Sunny.")]


def test_a_mark_in_a_string_of_the_arguments_is_text() -> None:
    body = ': f\n✿ARGS✿: {"t": "✿FUNCTION✿ and ✿RESULT✿"}'
    assert scanned([f"✿FUNCTION✿{body}"], MARKED) == [Piece("call", body, closed=False)]


def test_a_fence_is_closed_only_by_its_own_kind() -> None:
    call = '<tool_call>{"name": "f"}</tool_call>'
    for start in ("````\n```\n", "~~~\n```\n", "1. so:\n   ```json\n"):
        assert [piece.mode for piece in scanned([start + call])] == ["text"]


def test_a_thought_in_the_middle_of_a_line_is_text() -> None:
    assert scanned(["The tag <think> opens"]) == [Piece("text", "The tag <think> opens")]
    assert scanned(["One.\n<think>two</think>Three."]) == [
        Piece("text", "One."),
        Piece("thought", "two"),
        Piece("text", "Three."),
    ]


def test_inline_code_ends_where_its_line_says() -> None:
    call = '<tool_call>{"name": "f"}</tool_call>'
    assert [piece.mode for piece in scanned([f"I use `f`{call}"])] == ["text", "call"]
    for quoted in (f"`so: {call}`", f"``{call}``", f"`a` and `{call}`"):
        assert [piece.mode for piece in scanned([quoted])] == ["text"]


def test_strings_that_never_end_are_gone_back_over_a_few_times_only() -> None:
    scanner = TagScanner(TAGGED)
    pieces = [*scanner.feed('<tool_call>{\\"' * 2_000), *scanner.close()]
    assert [piece.closed for piece in pieces] == [*[True] * (len(pieces) - 1), False]
    assert len(pieces) < 100


def test_any_number_of_calls_without_tags_is_read_in_one_pass() -> None:
    untagged = Untagged([{"name": "a"}])
    assert untagged.feed('{"name": "a", "arguments": {}}\n' * 2_000) is None
    assert [call.name for call in untagged.calls(cut=False)] == ["a"] * 2_000


def test_what_stands_very_long_before_the_name_of_a_call_is_text() -> None:
    untagged = Untagged([{"name": "a"}])
    given = "{" + " " * 3_000
    assert untagged.feed(given) == given
