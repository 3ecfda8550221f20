"""What stands together in a document goes together before a model: nothing twice, nothing lost, marks still right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.rag.document import Passage
from core.rag.draft import Piece
from core.rag.library import Library
from tests.tries import tries

SENTENCES = [f"Sentence number {number} tells of a heron in the lake." for number in range(40)]
ROWS = "\n".join(
    f"| lamp {number} | {number} watts, made of glass and brass in the year 19{number} |" for number in range(10, 60)
)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "small", {"chunk_size": 64}) as opened:
        yield opened


def everything(library: Library) -> list[Passage]:
    found = library.find("heron lamp glass 苍鹭", 100)
    return sorted(found, key=lambda passage: passage.chunk_id)


def test_neighbours_become_one_passage_without_what_both_have(small: Library) -> None:
    small.add_text(" ".join(SENTENCES), name="a.txt")
    first, second, third, *_ = everything(small)
    assert first.text.split(". ")[-1] in second.text  # a sentence of overlap
    (joined,) = small.context.merged([second, first])
    assert joined.text == " ".join(SENTENCES[: joined.text.count("heron")])
    assert (joined.score, joined.chunk_id) == (second.score, second.chunk_id)
    assert [one.chunk_id for one in small.context.merged([third, first])] == [third.chunk_id, first.chunk_id]
    assert small.context.merged([]) == []
    assert small.context.merged([first, first]) == [first]


def test_the_best_of_those_that_go_together_says_where_they_stand(small: Library) -> None:
    small.add_text(" ".join(SENTENCES), name="a.txt")
    one, two, _, four, five, six, *_ = everything(small)
    joined = small.context.merged([five, one, six, two, four])
    assert [passage.chunk_id for passage in joined] == [five.chunk_id, one.chunk_id]


def test_a_long_run_is_parted_so_that_each_number_stands_for_something(small: Library) -> None:
    small.add_text(" ".join(SENTENCES), name="a.txt")
    passages = everything(small)
    joined = small.context.merged(passages)
    assert len(joined) == -(-len(passages) // 3)


def test_chinese_text_is_joined_without_a_space(small: Library) -> None:
    sentences = [f"第{number}句说湖边的苍鹭。" for number in range(20)]
    small.add_text("".join(sentences), name="a.txt")
    joined = small.context.merged(everything(small)[:2])[0]
    assert joined.text == "".join(sentences[: joined.text.count("苍鹭")])


def test_a_table_that_goes_on_has_its_header_once(small: Library) -> None:
    small.add_text(f"# Lamps\n\n| lamp | what |\n|---|---|\n{ROWS}\n", name="a.md")
    first, second, *_ = everything(small)
    assert first.text.startswith("lamp | what")
    assert second.text.startswith("lamp | what")
    joined = small.context.merged([first, second])[0]
    assert joined.text.count("lamp | what") == 1
    assert joined.text.count("brass") == first.text.count("brass") + second.text.count("brass")


def test_other_pages_other_headings_and_other_documents_stay_apart(
    small: Library, make_pdf: Callable[..., Path]
) -> None:
    small.add(make_pdf("The heron stands in the lake.", "The heron flies away."))
    small.add_text("# Food\n\nThe heron eats fish.\n\n# Nest\n\nThe heron nests in trees.", name="a.md")
    assert len(small.context.merged(everything(small))) == 4


def test_the_places_of_neighbours_are_united(small: Library, make_pdf: Callable[..., Path]) -> None:
    lines = "\n".join(f"{sentence[:50]}." for sentence in SENTENCES[:20])
    small.add(make_pdf(lines))
    passages = everything(small)
    assert len(passages) > 1
    (joined,) = small.context.merged(passages[:2])
    tops = [place[1] for place in joined.rectangles]
    bottoms = [place[3] for place in joined.rectangles]
    assert (min(tops), max(bottoms)) == (passages[0].rectangles[0][1], passages[1].rectangles[-1][3])
    assert all(top >= bottom - 0.1 for bottom, top in zip(bottoms, tops[1:], strict=False))  # none over another
    assert small.page_picture(joined).startswith(b"\x89PNG")


def test_a_passage_that_is_gone_meanwhile_is_left_out(small: Library) -> None:
    document = small.add_text(" ".join(SENTENCES), name="a.txt")
    passages = everything(small)
    small.remove(document.id)
    assert small.context.merged(passages) == []


def test_short_documents_come_whole_and_in_order(small: Library) -> None:
    first = small.add_text(" ".join(SENTENCES[:12]), name="a.txt")
    second = small.add_text("The lamp is old.\n\nIt is made of glass.", name="b.txt")
    whole = small.context.full_text([second.id, first.id], 1000)
    assert whole is not None
    assert [one.document for one in whole] == ["a.txt"] * (len(whole) - 1) + ["b.txt"]
    assert " ".join(one.text for one in whole[:-1]).count("Sentence number 5 ") == 1
    assert [one.document for one in small.context.full_text([second.id], 1000) or ()] == ["b.txt"]


def test_what_does_not_fit_is_not_given_whole(small: Library) -> None:
    document = small.add_text(" ".join(SENTENCES), name="a.txt")
    assert small.context.full_text([document.id], 300) is None
    assert small.context.full_text([document.id], 1000) is not None
    assert small.context.full_text([], 1000) is None
    assert small.context.full_text(["0" * 64], 1000) is None


def test_what_is_still_being_read_is_not_taken_for_whole(small: Library) -> None:
    document = small.add_text("The lamp is old.", name="a.txt")
    begun = Piece(replace(document, status="reading"), [], [])
    small._shelf.put(begun, is_first=False)  # pyright: ignore[reportPrivateUsage]
    assert small.context.full_text([document.id], 1000) is None


@settings(max_examples=tries(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from(["Short one.", *SENTENCES[:6], "苍鹭在湖边。", "No end", "Two lines.\nOf one."]), max_size=30
    )
)
def test_whatever_the_text_nothing_is_said_twice_or_lost(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str]
) -> None:
    with Library.open(tmp_path_factory.mktemp("made"), {"chunk_size": 32}) as library:
        text = "\n\n".join(f"{number}: {part}" for number, part in enumerate(parts)) or "nothing"
        document = library.add_text(text, name="a.txt")
        whole = library.context.full_text([document.id], 100_000)
        said = "".join("".join(one.text.split()) for one in whole or ())
        for number, part in enumerate(parts):
            assert said.count("".join(f"{number}:{part}".split())) >= 1
        assert len(said) <= len("".join(text.split())) * 1.35  # the runs of three still share a sentence
