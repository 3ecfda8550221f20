"""What a folder keeps of runs: every row whatever was said, the order of runs, and what counts as another task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core import Library, Suite, evaluate
from core.judging.result import Row, SuiteRun
from core.judging.run_folder import Runs
from core.llm.request import ChatRequest
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel


def suite(*tasks: dict[str, Any], **more: Any) -> Suite:
    return Suite.of({"name": "small", "tasks": list(tasks), **more})


def task(name: str = "a", **more: Any) -> dict[str, Any]:
    return {"id": name, "question": "What?", "checks": [{"contains": "yes"}], **more}


def test_an_answer_with_any_sign_in_it_has_its_row(tmp_path: Path) -> None:
    said = "yes\u2028and\u2029so\x85on\x0band\x1con \ud800"
    run = evaluate(suite(task(), task("b")), {"llm": ScriptedModel(lambda request: said)}, out=tmp_path)
    assert [row.id for row in run.rows] == ["a", "b"]
    assert run.rows[0].answer == said.replace("\ud800", "?")


def test_bytes_that_are_no_text_cost_their_row_alone(tmp_path: Path) -> None:
    runs = Runs(tmp_path, "small")
    rows = [Row(name, "m-n", "What?", "yes") for name in ("a", "b")]
    first, second = (json.dumps(row.as_dict()).encode() for row in rows)
    runs.unfinished(None).write_bytes(first.replace(b"yes", b"\xff") + b"\n" + second + b"\n")
    assert [row.id for row in runs.rows(rows, None)] == ["b"]


def test_two_suites_in_one_folder_keep_their_unfinished_rows_apart(tmp_path: Path) -> None:
    model = {"llm": ScriptedModel(lambda request: "yes")}
    unfinished = Runs(tmp_path, "other").unfinished(None)
    unfinished.write_text('{"id": "a", "mark": "m-n", "question": "?", "answer": "of the other"}\n', encoding="utf-8")
    kept = unfinished.read_bytes()
    assert [row.answer for row in evaluate(suite(task()), model, out=tmp_path).rows] == ["yes"]
    assert unfinished.read_bytes() == kept


def test_of_runs_that_began_in_one_second_the_last_one_is_the_last(tmp_path: Path) -> None:
    runs = Runs(tmp_path, "small")
    befores: list[SuiteRun | None] = []
    for number in range(12):
        run = SuiteRun("small", f"model {number}", "2026-01-01T00:00:00+00:00", ())
        befores.append(runs.finished(run, None).before)
    assert [before.model if before else "" for before in befores] == ["", *(f"model {n}" for n in range(11))]


def test_another_tag_is_not_another_task(tmp_path: Path) -> None:
    model = {"llm": ScriptedModel(lambda request: "yes")}
    evaluate(suite(task(tags=["old"])), model, out=tmp_path)
    run = evaluate(suite(task(tags=["new"])), model, out=tmp_path)
    compared = run.compared()
    assert compared is not None
    assert compared.changed == ()
    assert list(run.totals("tag")) == ["new"]


def test_a_task_for_another_of_the_suites_agents_is_another_task(tmp_path: Path) -> None:
    agents = {"brief": {"prompt": "Be brief."}, "long": {"prompt": "Be long."}}
    model = {"llm": ScriptedModel(lambda request: "yes")}
    evaluate(suite(task(agent="brief"), agents=agents), model, out=tmp_path)
    compared = evaluate(suite(task(agent="long"), agents=agents), model, out=tmp_path).compared()
    assert compared is not None
    assert compared.changed == ("a",)


@pytest.mark.parametrize("as_option", [True, False])
def test_what_another_judge_found_is_not_taken_over(tmp_path: Path, as_option: bool) -> None:
    judges = [ScriptedModel(lambda request: "Verdict: pass"), ScriptedModel(lambda request: "Bad.\nVerdict: fail")]
    for judge, name in zip(judges, ("kind", "strict"), strict=True):
        judge.model = name
    model = ScriptedModel(lambda request: "yes")
    shares: list[float] = []
    for judge in judges:
        more: dict[str, Any] = {} if as_option else {"judge": {"llm": judge}}
        given = suite(task(checks=[{"judged": "It is kind."}]), **more)
        option: dict[str, Any] = {"judge": {"llm": judge}} if as_option else {}
        runs = Runs(tmp_path, "small")
        run = evaluate(given, {"llm": model}, out=tmp_path, cached=False, **option)
        shares.append(run.total.share)
        runs.unfinished(None).write_text(json.dumps(run.rows[0].as_dict()) + "\n", encoding="utf-8")  # as if broken off
    assert shares == [1, 0]


def test_a_library_that_holds_something_else_makes_another_task(tmp_path: Path) -> None:
    with Library.open(tmp_path / "library") as library:
        library.add_text("The answer is yes.", name="one.md")

    def yes(request: ChatRequest) -> Reply:
        return Reply(text="yes")

    given = Suite.of({"name": "small", "tasks": [task(library=str(tmp_path / "library"))]})
    model = ScriptedModel(yes)
    evaluate(given, {"llm": model}, out=tmp_path / "o")
    same = evaluate(given, {"llm": model}, out=tmp_path / "o").compared()
    with Library.open(tmp_path / "library") as library:
        library.add_text("The answer is no.", name="two.md")
    other = evaluate(given, {"llm": model}, out=tmp_path / "o").compared()
    assert same is not None
    assert other is not None
    assert (same.changed, other.changed) == ((), ("a",))
