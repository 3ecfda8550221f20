"""The scanner tells text, thought and calls apart, wherever the reply was cut into chunks."""

from hypothesis import given
from hypothesis import strategies as st

from core.llm.calling.tag_scanner import Piece, TagScanner
from core.llm.calling.tags import TAGGED

PARTS = st.sampled_from(
    [
        "<think>", "</think>", "<tool_call>", "</tool_call>", "<tool", "</", "<", "`", "```", "\n```json\n", "\n", " ",
        '{"name": "f", "arguments": {"x": 1}}', '"', "\\", "hello", "你好", "😀", '{"t": "</tool_call>"}', "<think",
    ]
)  # fmt: skip
REPLIES = st.lists(PARTS, max_size=14).map("".join)


def scanned(pieces: list[str]) -> list[Piece]:
    scanner = TagScanner(TAGGED)
    found: list[Piece] = []
    for piece in pieces:
        found += scanner.feed(piece)
    joined: list[Piece] = []
    for piece in [*found, *scanner.close()]:
        if joined and piece.mode == joined[-1].mode and piece.mode != "call":
            joined[-1] = Piece(piece.mode, joined[-1].text + piece.text)
        else:
            joined.append(piece)
    return joined


@given(REPLIES, st.lists(st.integers(1, 9), max_size=60))
def test_any_split_of_a_reply_gives_the_same_pieces(reply: str, cuts: list[int]) -> None:
    chunks, at = [], 0
    for cut in cuts:
        chunks.append(reply[at : at + cut])
        at += cut
    assert scanned([*chunks, reply[at:]]) == scanned([reply])
    assert scanned(list(reply)) == scanned([reply])


@given(REPLIES)
def test_half_a_tag_is_never_shown(reply: str) -> None:
    scanner, shown = TagScanner(TAGGED), ""
    for character in reply:
        shown += "".join(piece.text for piece in scanner.feed(character) if piece.mode == "text")
        if not shown.endswith(("`<", "`<t", "<think", "<tool")):  # quoted tags are text
            assert not shown.endswith(("<tool_cal", "<thin"))


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
