"""Chunks: nothing is lost, nothing is too large, nothing crosses a border."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rag.chunking import chunks_of
from core.rag.document import Block, table
from core.rag.prose import count_tokens, sentence_spans

SIZE = 40
words = st.text("ab ,.!?。，；中文字\n", min_size=1, max_size=400)
blocks = st.lists(
    st.builds(
        lambda kind, text, page, level: Block(kind, text, page, level=level if kind == "heading" else 0),
        st.sampled_from(["paragraph", "heading", "code"]),
        words.filter(str.strip),
        st.integers(1, 3),
        st.integers(1, 3),
    ),
    max_size=12,
)


def bare(text: str) -> str:
    return "".join(text.split())


@given(blocks)
def test_no_word_of_the_text_is_lost(given_blocks: list[Block]) -> None:
    chunks = list(chunks_of(given_blocks, SIZE))
    joined = bare("".join(chunk.text[chunk.overlap :] for chunk in chunks))
    for block in given_blocks:
        above = block.kind == "heading" and any(bare(block.text) in bare(chunk.heading) for chunk in chunks)
        assert above or bare(block.text) in joined


@given(blocks)
def test_chunks_stay_within_their_size(given_blocks: list[Block]) -> None:
    for chunk in chunks_of([block for block in given_blocks if block.kind != "heading"], SIZE):
        assert count_tokens(chunk.text) <= SIZE


@given(blocks)
def test_without_overlap_the_chunks_are_the_text(given_blocks: list[Block]) -> None:
    paragraphs = [block for block in given_blocks if block.kind != "heading"]
    chunks = list(chunks_of(paragraphs, SIZE, overlap=0))
    assert bare("".join(chunk.text for chunk in chunks)) == bare("".join(block.text for block in paragraphs))


@given(words)
def test_sentences_cover_the_text(text: str) -> None:
    spans = sentence_spans(text)
    assert "".join(text[start:end] for start, end in spans) == text


def test_sentences_end_where_a_reader_says() -> None:
    text = "Dr. Smith paid 3.14 dollars. He left! 他走了。她说：“好。”然后呢？"
    parts = [text[start:end].strip() for start, end in sentence_spans(text)]
    assert parts == ["Dr. Smith paid 3.14 dollars.", "He left!", "他走了。", "她说：“好。”", "然后呢？"]


SECTIONS = st.lists(st.integers(0, 999), min_size=2, max_size=5).map(lambda parts: ".".join(map(str, parts)) + ".")


@given(
    SECTIONS,
    st.sampled_from(
        [
            "{} The deductible is 420 euros.",
            "{} Der Selbstbehalt beträgt 420 Euro.",
            "{} 免赔额为四百二十欧元。",
            "§ {} Selbstbehalt: 420 Euro.",
            "“{} The deductible” is what you pay.",
            "By section {} of the policy you pay 420 euros.",
            "Nach Ziffer {} beträgt der Selbstbehalt 420 Euro.",
            "根据 {} 条款，免赔额为四百二十欧元。",
        ]
    ),
    st.sampled_from(["It rains. ", "Es regnet! ", "下雨了。", "It rains.\n", ""]),
)
def test_the_number_of_a_section_ends_no_sentence(number: str, said: str, before: str) -> None:
    text = before + said.format(number)
    assert text[slice(*sentence_spans(text)[-1])] == said.format(number)


@given(SECTIONS, st.sampled_from(["The next one follows.", "Der nächste Satz folgt."]))
def test_a_sentence_may_end_with_the_number_of_a_section(number: str, after: str) -> None:
    text = f"See section {number} {after}"
    assert text[slice(*sentence_spans(text)[-1])] == after


def test_a_chunk_never_crosses_a_page_or_a_heading() -> None:
    chunks = list(
        chunks_of(
            [
                Block("heading", "One", 1, level=1),
                Block("paragraph", "First.", 1),
                Block("paragraph", "Second.", 2),
                Block("heading", "Part", 2, level=2),
                Block("paragraph", "Third.", 2),
                Block("heading", "Two", 2, level=1),
                Block("paragraph", "Fourth.", 2),
            ]
        )
    )
    assert [(chunk.heading, chunk.page, chunk.text) for chunk in chunks] == [
        ("One", 1, "First."),
        ("One", 2, "Second."),
        ("One > Part", 2, "Third."),
        ("Two", 2, "Fourth."),
    ]


def test_a_heading_with_nothing_under_it_is_found_too() -> None:
    chunks = list(chunks_of([Block("heading", "Lonely", 4, ((0, (1, 2, 3, 4)),), 1)]))
    assert [(chunk.text, chunk.page, chunk.rectangles) for chunk in chunks] == [("Lonely", 4, ((1, 2, 3, 4),))]


def test_paragraphs_stay_whole_where_they_fit() -> None:
    paragraphs = [Block("paragraph", f"Start {n}. " + "word " * 60) for n in range(4)]
    for chunk in chunks_of(paragraphs, 200, overlap=0):
        assert chunk.text.startswith("Start")


def test_one_sentence_is_repeated() -> None:
    text = " ".join(f"Sentence number {n} is here." for n in range(40))
    chunks = list(chunks_of([Block("paragraph", text)], 60))
    for before, after in pairwise(chunks):
        repeated = after.text[: after.overlap].strip()
        assert repeated.startswith("Sentence number")
        assert before.text.endswith(repeated)


def test_chinese_chunks_are_smaller() -> None:
    text = "这是一个用来测试的句子。" * 100
    assert max(count_tokens(chunk.text) for chunk in chunks_of([Block("paragraph", text)], 256)) <= 180


def test_a_long_table_is_cut_by_rows_with_its_header_repeated() -> None:
    block = table([("name", "value"), *((f"item {n}", str(n)) for n in range(300))])
    chunks = list(chunks_of([block], 100))
    assert len(chunks) > 3
    assert all(chunk.text.startswith("name | value\n") for chunk in chunks)
    assert "".join(chunk.text[chunk.overlap :] + "\n" for chunk in chunks).split() == block.text.split()
    assert all(count_tokens(chunk.text) <= 200 for chunk in chunks)


def test_a_short_table_stays_whole() -> None:
    block = table([("name", "value"), ("a", "1")])
    assert [chunk.text for chunk in chunks_of([Block("paragraph", "Before."), block])] == ["Before.", block.text]


def test_a_chunk_is_marked_where_its_words_stand_and_nowhere_else() -> None:
    lines = tuple((n * 25, (0.0, n * 10.0, 100.0, n * 10.0 + 9)) for n in range(40))
    block = Block("paragraph", "".join(f"Line {n:02} has words in it. "[:25].ljust(25) for n in range(40)), 1, lines)
    chunks = list(chunks_of([block], 64, overlap=0))
    assert len(chunks) > 2
    for before, after in pairwise(chunks):
        assert before.rectangles[0][3] <= after.rectangles[0][1] + 10


@pytest.mark.parametrize(
    "text", ["a" * 1_000_000, "中" * 300_000, "." * 1_000_000, "?!" * 300_000, "a. " * 200_000, "\n" * 500_000 + "x"]
)
def test_a_text_made_to_be_slow_is_not(text: str) -> None:
    start = time.process_time()
    kept = "".join(chunk.text for chunk in chunks_of([Block("paragraph", text)], overlap=0))
    assert bare(kept) == bare(text)
    assert time.process_time() - start < 5
