"""The file of answers: what is in it is not asked again, what was torn is mended, what is not ours stays untouched."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest

from core.batch.job import AnswerFile
from core.batch.problems import BatchError
from core.batch.questions import BatchQuestion, mark_of
from core.messages.message import Message


def question(name: str, text: str = "") -> BatchQuestion:
    messages = [Message("user", text or name)]
    return BatchQuestion(name, mark_of(messages), messages, 1)


def row(asked: BatchQuestion, **more: Any) -> dict[str, Any]:
    return {"id": asked.id, "mark": asked.mark, **(more or {"answer": "x"})}


A, B, C = question("a"), question("b"), question("c")


def left(path: Path) -> list[str]:
    with AnswerFile(path) as file:
        return [one.id for one in file.left([A, B, C])]


def filled(path: Path, *rows: dict[str, Any]) -> bytes:
    with AnswerFile(path) as file:
        for one in rows:
            file.add(one)
    return path.read_bytes()


def test_what_is_answered_is_not_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    assert left(path) == ["a", "b", "c"]
    before = filled(path, row(B), row(A))
    assert left(path) == ["c"]
    assert path.read_bytes() == before


def test_a_row_is_in_the_file_when_it_was_added(tmp_path: Path) -> None:
    with AnswerFile(tmp_path / "a.jsonl") as file:
        file.add(row(A))
        assert json.loads((tmp_path / "a.jsonl").read_text(encoding="utf-8"))["id"] == "a"


def test_every_torn_last_line_is_mended(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    whole = filled(path, row(A), row(B, answer="你好"))
    first = whole.index(b"\n") + 1
    for end in range(first, len(whole)):
        path.write_bytes(whole[:end])
        expected = ["c"] if end == len(whole) - 1 else ["b", "c"]
        assert left(path) == expected
        filled(path, row(B, answer="你好")) if "b" in expected else None
        assert path.read_bytes() == whole


def test_failures_and_changed_questions_are_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    filled(path, row(A, error={"key": "x"}), row(question("b", "another")), row(C), row(question("z")))
    assert left(path) == ["a", "b"]
    kept = [json.loads(line)["id"] for line in path.read_text(encoding="utf-8").splitlines()]
    assert kept == ["c", "z"]


@pytest.mark.parametrize("text", ["hello", "hello\n", '{"id": "a", "mark": "m", "answer": "x"}\n3\n', '{"id": "a"\n'])
def test_a_file_that_is_none_of_answers_stays_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BatchError, match="is no answer of a batch"):
        left(path)
    assert path.read_text(encoding="utf-8") == text
    assert [one.name for one in tmp_path.iterdir()] == ["a.jsonl"]


def test_who_may_read_the_file_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    filled(path, row(A, error={}))
    path.chmod(0o640)
    left(path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_link_to_the_file_stays_one(tmp_path: Path) -> None:
    link, path = tmp_path / "link.jsonl", tmp_path / "a.jsonl"
    filled(path, row(A, error={}))
    link.symlink_to(path)
    assert left(link) == ["a", "b", "c"]
    assert link.is_symlink()
    assert path.read_bytes() == b""


def test_two_batches_do_not_write_to_one_file(tmp_path: Path) -> None:
    path, link = tmp_path / "a.jsonl", tmp_path / "link.jsonl"
    link.symlink_to(path)
    with AnswerFile(path) as first:
        for same in (path, link):
            with pytest.raises(BatchError, match="Another batch is writing to"), AnswerFile(same):
                pass
        with AnswerFile(tmp_path / "b.jsonl"):
            pass
        first.add({"id": "1", "answer": "yes"})
    with AnswerFile(path) as again:
        again.add({"id": "2", "answer": "no"})
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.jsonl", "link.jsonl"]
    assert path.read_bytes().count(b"\n") == 2


def test_a_batch_that_was_killed_keeps_nobody_away(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    holds = (
        "import sys; from pathlib import Path; from core.batch.job import AnswerFile\n"
        "with AnswerFile(Path(sys.argv[1])): print('there', flush=True); sys.stdin.read()"
    )
    with Popen([sys.executable, "-c", holds, str(path)], stdin=PIPE, stdout=PIPE) as batch:
        try:
            assert batch.stdout
            assert batch.stdout.readline().strip() == b"there"
            with pytest.raises(BatchError, match="Another batch is writing to"), AnswerFile(path):
                pass
        finally:
            batch.kill()
    assert left(path) == ["a", "b", "c"]
