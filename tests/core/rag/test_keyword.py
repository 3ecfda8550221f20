"""The question's words close together count for more than the same words scattered."""

from __future__ import annotations

from core.rag.library import Library

SCATTERED = (
    "The bridge was painted green. Many visitors come from afar. A famous engineer lived here in his youth. Lamps were "
    "hung over the market place each winter. Nobody knows when the town hall was designed. Ships anchor below the hill."
)
TOGETHER = (
    "The bridge was designed by a famous engineer. Many visitors come from afar. He lived here in his youth. Lamps "
    "were hung over the market place each winter. Nobody knows the town hall. Ships anchor below the hill at night."
)


def test_words_that_stand_together_come_first(library: Library) -> None:
    library.add_text(SCATTERED, name="scattered.txt")
    library.add_text(TOGETHER, name="together.txt")
    for question in ("Which famous engineer designed the bridge?", "bridge designed famous engineer"):
        assert [one.document for one in library.find(question)] == ["together.txt", "scattered.txt"]


def test_the_score_of_the_first_is_the_highest_and_no_passage_is_lost(library: Library) -> None:
    for number in range(30):
        library.add_text(
            f"Report {number} of the harbour. {SCATTERED if number % 2 else TOGETHER}", name=f"{number}.txt"
        )
    found = library.find("Who designed the bridge over the harbour?", 30)
    assert len({one.chunk_id for one in found}) == 30
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert {one.chunk_id for one in library.find("Who designed the bridge over the harbour?", 5)} <= {
        one.chunk_id for one in found[:20]
    }


def test_a_question_of_one_word_is_found_as_before(library: Library) -> None:
    library.add_text(TOGETHER, name="together.txt")
    assert [one.document for one in library.find("bridge")] == ["together.txt"]


def test_in_a_long_chinese_sentence_a_word_is_as_close_together_as_in_a_short_one(library: Library) -> None:
    library.add_text("主要序列转导模型基于复杂的循环或卷积神经网络，包括编码器和解码器", name="long.txt")
    library.add_text("性能最好的模型还通过注意力机制连接编码器和解码器", name="short.txt")
    assert [one.document for one in library.find("编码器")] == ["short.txt", "long.txt"]


def test_words_that_follow_each_other_as_in_the_question_come_first(library: Library) -> None:
    for name, said in (
        ("a", "The market of the old town has a hall."),
        ("b", "The hall of the town has an old market."),
    ):
        library.add_text(f"{said} Bread is sold there, and the lamps are lit early.", name=name)
    assert [one.document for one in library.find("Where is the old market?")] == ["b", "a"]
    assert [one.document for one in library.find("Where is the old town?")] == ["a", "b"]
