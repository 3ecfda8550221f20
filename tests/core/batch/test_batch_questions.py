"""Questions are read from JSON lines and tables; what is none is named with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.batch.problems import BatchError
from core.batch.questions import read_questions


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_texts_questions_and_conversations(tmp_path: Path) -> None:
    lines = [
        '"What is 1+1?"',
        "",
        '{"question": "你好", "id": 7, "more": [1]}',
        '{"id": "c", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "x"}]}\r',
    ]
    questions = read_questions(written(tmp_path, "q.jsonl", b"\xef\xbb\xbf" + "\n".join(lines).encode()))
    assert [question.text for question in questions] == ["What is 1+1?", "你好", "x"]
    assert [question.id for question in questions][1:] == ["7", "c"]
    assert [question.line for question in questions] == [1, 3, 4]
    assert [message.role for message in questions[2].messages] == ["system", "user"]


def test_a_table_has_a_column_question(tmp_path: Path) -> None:
    text = '\ufeffid,Question,note\na,"What, then?",x\n,"two\nlines",\n\n,third,\n'
    questions = read_questions(written(tmp_path, "q.csv", text))
    assert [question.text for question in questions] == ["What, then?", "two\nlines", "third"]
    assert questions[0].id == "a"
    assert [question.line for question in questions] == [2, 3, 6]


def test_the_same_question_twice_is_two_questions(tmp_path: Path) -> None:
    questions = read_questions(written(tmp_path, "q.jsonl", '"a"\n"a"\n"b"\n'))
    assert len({question.id for question in questions}) == 3
    assert questions[0].mark == questions[1].mark


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("q.jsonl", '"a"\n{"question": \n', "Line 2 of q.jsonl is no JSON"),
        ("q.jsonl", '"a"\n\n{broken}\n', "Line 3 of q.jsonl is no JSON"),
        ("q.jsonl", "[" * 100_000, "Line 1 of q.jsonl is no JSON"),
        ("q.jsonl", b'"a"\n"\xff"\n', "Line 2 of q.jsonl is not UTF-8"),
        ("q.jsonl", '"a"\n3\n', "Line 2 of q.jsonl is no question"),
        ("q.jsonl", '{"text": "a"}', "Line 1 of q.jsonl is no question"),
        ("q.jsonl", '{"messages": []}', "Line 1 of q.jsonl is no question"),
        ("q.jsonl", '{"messages": [{"role": "king", "content": "x"}]}', "Line 1 of q.jsonl has messages that are none"),
        ("q.jsonl", '" "', "Line 1 of q.jsonl has an empty question"),
        ("q.jsonl", '{"question": "a", "id": [1]}', "Line 1 of q.jsonl has an id"),
        ("q.jsonl", '{"question": "a", "id": 1}\n{"question": "b", "id": "1"}', "Lines 1 and 2 of q.jsonl"),
        ("q.jsonl", "", "There is no question in q.jsonl"),
        ("q.csv", "", "names no column question"),
        ("q.csv", "question\n", "There is no question in q.csv"),
        ("q.csv", "text\na\n", "names no column question"),
        ("q.csv", b"question\na\n\xff\n", "Line 3 of q.csv is not UTF-8"),
        ("q.csv", "id,question\n1,\n", "Line 2 of q.csv has an empty question"),
        ("q.txt", "a", "must end in"),
    ],
)
def test_what_is_no_question_is_named_with_its_line(tmp_path: Path, name: str, text: str | bytes, said: str) -> None:
    with pytest.raises(BatchError) as raised:
        read_questions(written(tmp_path, name, text))
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(BatchError, match="There is no file"):
        read_questions(tmp_path / "none.jsonl")


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=5))
def test_any_text_is_read_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("q") / "q.jsonl"
    path.write_text("\n".join(json.dumps({"question": text}) for text in texts), encoding="utf-8")
    assert [question.text for question in read_questions(path)] == texts
