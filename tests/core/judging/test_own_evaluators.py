"""Evaluators of a program's own, cases made of replies, and two agents held against each other."""

from __future__ import annotations

import json
import subprocess
import sys
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from core import Assistant, FnCallAgent, Reply, Score, Suite, add_cases, case_of, compare, evaluate, tool
from core.agents.config.problems import ConfigError
from core.errors import SettingsError
from core.judging.cases import cases_from
from core.judging.checks import Outcome
from core.judging.compare import mcnemar, score_means
from core.judging.evaluators import named_evaluator
from core.judging.junit import junit
from core.judging.result import Row, SuiteRun
from core.judging.suite import Task
from core.testing.script import Reply as Said
from core.testing.scripted_model import ScriptedModel


def suite(*answers: str) -> tuple[Suite, FnCallAgent]:
    tasks = [{"id": f"t{n}", "question": f"Question {n}?", "checks": [{"no_tool": True}]} for n in range(len(answers))]
    return Suite.of({"name": "S", "tasks": tasks}), FnCallAgent([], ScriptedModel(*answers))


def is_polite(case: Task, reply: Reply[Any]) -> bool:
    assert case.question == reply.question
    return "please" in reply.text


async def length(case: Task, reply: Reply[Any]) -> float:
    del case
    return len(reply.text)


def strict(case: Task, reply: Reply[Any]) -> Score:
    del case
    return Score("!" not in reply.text, "calm", why="it shouts")


def test_a_bool_decides_a_number_is_counted_and_a_score_has_its_own_name():
    made, agent = suite("Tea, please.", "Tea!", "No!, please")
    run = evaluate(made, agent, concurrency=1, evaluators=[is_polite, length, strict])
    assert [row.passed for row in run.rows] == [True, False, False]
    assert [[one.kind for one in row.checks if not one.passed] for row in run.rows] == [
        [],
        ["is_polite", "calm"],
        ["calm"],
    ]
    assert [dict(row.scores) for row in run.rows] == [{"length": 12.0}, {"length": 4.0}, {"length": 11.0}]
    assert run.rows[2].checks[-1].details["said"] == "it shouts"
    assert SuiteRun.from_dict(json.loads(json.dumps(run.as_dict()))).rows == run.rows


def test_an_evaluator_that_fails_or_gives_nonsense_is_an_error_of_its_task_alone():
    def breaks(case: Task, reply: Reply[Any]) -> bool:
        del reply
        if case.id == "t0":
            raise ValueError("no data")
        return True

    made, agent = suite("One.", "Two.")
    run = evaluate(made, agent, concurrency=1, evaluators=[breaks])
    assert run.rows[0].error is not None
    assert run.rows[0].error["message"] == "The evaluator breaks failed: ValueError: no data."
    assert run.rows[1].passed
    for wrong in ("yes", None, float("nan"), Score(float("inf"))):
        made, agent = suite("One.")
        run = evaluate(made, agent, evaluators=[lambda *_, wrong=wrong: wrong])
        assert run.rows[0].error is not None
        assert "a bool, a number or a Score is wanted" in run.rows[0].error["message"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (is_polite, "evaluators must be a list of functions, not function"),
        ([7], "evaluators must be functions, not 7"),
        ([is_polite, is_polite], "Two evaluators are called 'is_polite'"),
    ],
)
def test_evaluators_that_are_none_are_one_sentence(given: Any, said: str):
    made, agent = suite("One.")
    with pytest.raises(SettingsError, match=said):
        evaluate(made, agent, evaluators=given)


def test_rows_that_other_evaluators_judged_count_no_more(tmp_path: Path):
    made, agent = suite("Tea, please.", "Tea, please.", "Tea, please.")
    made = Suite.of({**made.model_dump(exclude_none=True), "tasks": [made.tasks[0].model_dump(exclude_none=True)]})
    first = evaluate(made, agent, out=tmp_path, cached=False)
    second = evaluate(made, agent, out=tmp_path, cached=False, evaluators=[is_polite])
    assert [one.kind for one in first.rows[0].checks] == ["no_tool"]
    assert [one.kind for one in second.rows[0].checks] == ["no_tool", "is_polite"]
    assert first.rows[0].task_mark == second.rows[0].task_mark


def test_a_function_is_found_by_its_module_and_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "own_checks_here.py").write_text("def is_short(case, reply):\n    return len(reply.text) < 5\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert named_evaluator("own_checks_here:is_short").__name__ == "is_short"
    for wrong in ("own_checks_here:nothing", "no_such_module:x", "os:sep", "own_checks_here", ""):
        with pytest.raises(SettingsError, match="There is no evaluator"):
            named_evaluator(wrong)


# ---- cases


@tool
def look(word: str) -> str:
    """Look it up."""
    return word


def test_a_reply_becomes_a_case_with_what_it_called_and_said(tmp_path: Path):
    agent = FnCallAgent([look], ScriptedModel(Said(calls=[("look", {"word": "tea"})]), "Four minutes."))
    case = case_of(agent.ask("How long?"), "tea", tags=["kitchen"])
    assert case["checks"][0] == {"called": "look"}
    assert case["checks"][1]["judged"].endswith("Four minutes.")
    file = tmp_path / "cases.json"
    add_cases(file, [case])
    made = add_cases(file, [{**case, "id": "other"}, {**case, "question": "How long, again?"}])
    assert [(one.id, one.question) for one in made.tasks] == [("tea", "How long, again?"), ("other", "How long?")]
    assert Suite.of(file).tasks == made.tasks
    again = FnCallAgent([look], ScriptedModel(*[Said(calls=[("look", {"word": "x"})]), "4 minutes."] * 2))
    run = evaluate(file, again, judge=FnCallAgent([], ScriptedModel(*["Yes.\nVerdict: pass"] * 2)), concurrency=1)
    assert run.total.passed == 2


def test_a_suite_that_cannot_be_written_whole_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file, case = tmp_path / "cases.json", {"id": "1", "question": "How?", "checks": [{"judged": "It is kind."}]}
    add_cases(file, [case])
    file.chmod(0o640)
    add_cases(file, [{**case, "id": "2"}])
    assert file.stat().st_mode & 0o777 == 0o640
    before = file.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(SettingsError, match=r"cannot be written to .*: No space left on device"):
        add_cases(file, [{**case, "id": "3"}])
    assert file.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["cases.json"]


_ADDING = """
import sys
from math import inf, isfinite, nan
from core import add_cases

name, file = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
for at in range(12):
    add_cases(file, [{"id": f"{name}{at}", "question": "How?", "checks": [{"judged": "It is kind."}]}])
"""


def test_programs_that_add_at_the_same_time_lose_nothing(tmp_path: Path):
    file = tmp_path / "cases.json"
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", _ADDING, name, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in "ab"
    ]
    for program in programs:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
    for program in programs:
        assert program.stdin is not None
        program.stdin.write("go\n")
        program.stdin.flush()
    for program in programs:
        program.communicate()
        assert program.returncode == 0
    assert {one.id for one in Suite.of(file).tasks} == {f"{name}{at}" for name in "ab" for at in range(12)}
    assert [one.name for one in tmp_path.iterdir()] == ["cases.json"]


def test_a_suite_in_a_folder_that_is_not_there_is_told_and_no_folder_made(tmp_path: Path):
    case = {"id": "1", "question": "How?", "checks": [{"judged": "It is kind."}]}
    with pytest.raises(SettingsError, match=r"cannot be written to .*: No such file or directory"):
        add_cases(tmp_path / "none" / "cases.json", [case])
    assert list(tmp_path.iterdir()) == []


def test_a_line_that_makes_no_case_hides_no_other_and_a_text_may_have_any_end_of_lines(tmp_path: Path):
    row = {"question": "How?", "answer": "So.\u2028And\x85so."}
    rows = [{**row, "id": "1"}, {**row, "id": "2", "tools": 5}, {**row, "id": "3", "tools": [{"name": "look"}]}]
    file = tmp_path / "a.jsonl"
    file.write_text("".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in rows), "utf-8")
    assert [one["id"] for one in cases_from(file)] == ["1", "3"]


@pytest.mark.parametrize("tasks", [5, [5], [{"question": "How?"}], {"a": 1}, "tasks"])
def test_a_file_whose_tasks_are_none_is_told_and_left_as_it_is(tmp_path: Path, tasks: object):
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"name": "Cases", "tasks": tasks}), "utf-8")
    before = file.read_bytes()
    with pytest.raises(ConfigError):
        add_cases(file, [{"id": "1", "question": "How?", "checks": [{"judged": "It is kind."}]}])
    assert file.read_bytes() == before


def test_answers_of_a_batch_become_cases_and_what_is_none_is_one_sentence(tmp_path: Path):
    rows = [{"id": "1", "question": "Q?", "answer": "A.", "tools": ["look", "look"]}, {"id": "2", "error": "x"}, 7, "{"]
    (tmp_path / "a.jsonl").write_text("\n".join(one if one == "{" else json.dumps(one) for one in rows))
    (case,) = cases_from(tmp_path / "a.jsonl")
    assert [case["id"], case["question"], case["checks"][0]] == ["1", "Q?", {"called": "look"}]
    assert len(case["checks"]) == 2
    (tmp_path / "none.jsonl").write_bytes(b"\xff\xfe")
    for wrong in ("none.jsonl", "gone.jsonl"):
        with pytest.raises(SettingsError, match=r"No case can be made of .*jsonl: "):
            cases_from(tmp_path / wrong)
    with pytest.raises(SettingsError, match=r"whose file ends in \.json"):
        add_cases(tmp_path / "suite.yaml", [case])
    with pytest.raises(ConfigError):
        add_cases(tmp_path / "suite.json", [{**case, "checks": []}])
    assert not (tmp_path / "suite.json").exists()
    with pytest.raises(SettingsError, match="reply must be a Reply, not str"):
        case_of("Tea", "x")  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="has no answer"):
        case_of(Assistant([], ScriptedModel("")).ask("Q?"), "x")


# ---- two agents


def row(n: int, *, passed: bool, **scores: float) -> Row:
    return Row(f"t{n}", f"m{n}-x", "Q?", "A.", (Outcome("c", passed),), scores=scores)


def run_of(*rows: Row) -> SuiteRun:
    return SuiteRun("S", "m", "2026-01-01T00:00:00+00:00", rows)


def test_a_clear_difference_has_an_interval_beside_zero_and_a_small_p():
    before = run_of(*(row(n, passed=n < 6, length=float(n)) for n in range(30)))
    after = run_of(*(row(n, passed=n < 24, length=float(n) - 1 - n % 2) for n in range(30)), row(99, passed=True))
    passed, length = compare(before, after)
    assert (passed.name, passed.of, passed.before, passed.after, passed.by) == (
        "passed",
        30,
        0.2,
        0.8,
        pytest.approx(0.6),
    )
    assert passed.low > 0.35
    assert passed.high < 0.85
    assert passed.verdict == "better"
    assert passed.p == pytest.approx(2 * 0.5**18)
    assert (length.name, length.by, length.verdict, length.p) == ("length", -1.5, "worse", None)
    assert -1.75 < length.low < -1.5 < length.high < -1.25
    assert compare(before, after) == [passed, length]  # the same draws


def test_two_that_differ_by_chance_are_unsure_and_strangers_are_refused():
    before = run_of(*(row(n, passed=n % 2 == 0) for n in range(10)))
    after = run_of(*(row(n, passed=n % 3 == 0) for n in range(10)))
    (found,) = compare(before, after)
    assert (found.verdict, found.low < 0 < found.high) == ("unsure", True)
    with pytest.raises(SettingsError, match="no task in common"):
        compare(before, run_of(Row("t0", "other-x", "Q?")))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        *(
            (
                {"resamples": one},
                f"resamples must be 100 to 100000, as a whole number, not {one}. Write resamples=10000.",
            )
            for one in (5, 100_001, 10**12, True, 1e3)
        ),
        ({"seed": -1}, "seed must be 0 or more, as a whole number, not -1. Write seed=7."),
        ({"seed": "a"}, "seed must be 0 or more, as a whole number, not 'a'. Write seed=7."),
    ],
)
def test_the_draws_are_bounded(given: Any, said: str):
    run = run_of(row(1, passed=True))
    with pytest.raises(SettingsError) as raised:
        compare(run, run, **given)
    assert str(raised.value) == said


def test_a_score_that_is_no_finite_number_is_left_out_and_told_by_how_many_are_left():
    before = run_of(row(1, passed=True, a=0.5, b=nan), row(2, passed=True, a=nan, b=1.0), row(3, passed=True, a=0.0))
    after = run_of(row(1, passed=True, a=1.0, b=1.0), row(2, passed=True, a=1.0, b=inf), row(3, passed=True, a=1.0))
    passed, a = compare(before, after, resamples=100)  # of b no task has a finite number in both
    assert (passed.name, a.name, a.of, a.before, a.after) == ("passed", "a", 2, 0.25, 1.0)
    assert isfinite(a.low)
    assert isfinite(a.high)
    assert score_means(after.rows) == {"a": 1.0, "b": 1.0}


@pytest.mark.parametrize(
    ("a", "b", "p"), [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (8, 2, 0.109375), (2, 8, 0.109375)]
)
def test_mcnemars_exact_test_is_that_of_a_fair_coin(a: int, b: int, p: float):
    assert mcnemar(a, b) == pytest.approx(p)


def test_what_pipelines_read_has_failures_errors_and_no_signs_that_xml_cannot_hold():
    failed = Row(
        "a<b", "m-x", "Q?", "A\x00B", (Outcome("contains", passed=False, why="contains", details={"text": "\x1b"}),)
    )
    broken = Row("c", "m-x", "Q?", error={"key": "model", "message": "Down\x07"})
    whole = ET.fromstring(junit(run_of(row(1, passed=True), failed, broken), "en"))
    assert (whole.get("tests"), whole.get("failures"), whole.get("errors")) == ("3", "1", "1")
    cases = {one.get("name"): one for one in whole.iter("testcase")}
    assert not list(cases["t1"])
    assert cases["a<b"][0].get("message") == "The answer does not contain “\ufffd”."
    assert "A\ufffdB" in (cases["a<b"][0].text or "")
    assert (cases["c"][0].tag, cases["c"][0].get("message")) == ("error", "Down\ufffd")
