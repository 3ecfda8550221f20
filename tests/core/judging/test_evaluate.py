"""Running a suite: agents and models, failures, going on, comparing, and the judge."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from core import Policy, Suite, aevaluate, evaluate
from core.agents.config.problems import ConfigError
from core.errors import ModelServiceError, SettingsError
from core.judging.report import headline, markdown, page
from core.judging.result import Row, SuiteRun
from core.judging.run_folder import Runs
from core.languages import Lang
from core.llm.request import ChatRequest
from core.messages.message import FUNCTION
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "assets" / "suites" / "samples.yaml"


def told(request: ChatRequest) -> Any:
    """Answers what the tests ask."""
    if request.messages[-1].role == FUNCTION:
        return Reply(text=f"It is {request.messages[-1].get_text_content()}", usage=(10, 5))
    said = request.messages[-1].get_text_content()
    if "What it must fulfil" in said:
        return "Fine.\nVerdict: pass" if "polite" in said else "It is rude.\nVerdict: fail"
    if "broken" in said:
        raise ModelServiceError(code="500", message="The machine is on fire.")
    if "48 times 37" in said:
        return Reply(calls=[("calculator", {"expression": "48 * 37"})], usage=(10, 5))
    return Reply(text="Rome, of course.", usage=(10, 5))


def task(name: str, question: str, *checks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": name, "question": question, "checks": list(checks), **more}


def small(*tasks: dict[str, Any], **more: Any) -> Suite:
    return Suite.of({"name": "small", "tasks": list(tasks), **more})


CAPITAL = task("capital", "What is the capital of Italy?", {"contains": "Rome"}, tags=["towns"])
SUM = task("sum", "What is 48 times 37?", {"called": "calculator"}, {"contains": "1776"}, agent="tools")
BROKEN = task("broken", "It is broken.", {"contains": "x"})


def test_a_suite_is_asked_and_judged() -> None:
    model = ScriptedModel(told)
    run = evaluate(
        small(
            CAPITAL,
            SUM,
            task("kind", "Say hello.", {"judged": "It is polite."}),
            task("rude", "Say hello!", {"judged": "It is short."}),
            agents={"tools": {"tools": ["calculator"]}},
        ),
        {"llm": model},
    )
    assert {row.id: row.passed for row in run.rows} == {"capital": True, "sum": True, "kind": True, "rude": False}
    assert run.rows[1].calls == (("calculator", '{"expression": "48 * 37"}'),)
    assert run.rows[3].checks[0].details == {"said": "It is rude."}
    assert run.usage.total_tokens > 60
    assert run.totals("check")["judged"].passed == 1
    assert run.totals("tag")["towns"].share == 1


def test_a_model_that_fails_fails_its_task_alone() -> None:
    run = evaluate(small(CAPITAL, BROKEN, task("last", "Capital?", {"contains": "Rome"})), {"llm": ScriptedModel(told)})
    assert [row.passed for row in run.rows] == [True, False, True]
    assert run.rows[1].error is not None
    assert "The machine is on fire." in run.rows[1].error["message"]
    assert "It failed: " in markdown(run)


def test_the_shipped_suite_runs_with_steps_calls_and_documents() -> None:
    whole = Suite.of(SAMPLES)
    names = {"product", "capital", "steps-colour", "letter"}
    few = whole.model_copy(update={"tasks": [one for one in whole.tasks if one.id in names]})

    def play(request: ChatRequest) -> Any:
        said = " ".join(message.get_text_content() for message in request.messages)
        if "water be off" in said:
            return "On 12 May. [1]"
        if "blue and yellow" in said:
            return "Thought: I know that.\nFinal Answer: green"
        return told(request)

    run = evaluate(few, {"llm": ScriptedModel(play)})
    assert {row.id: row.passed for row in run.rows} == dict.fromkeys(names, True), markdown(run)
    assert {row.id: row.sources for row in run.rows}["letter"] == (("notes.md", None),)


@pytest.mark.anyio
async def test_what_is_done_is_not_asked_again_after_an_interruption(tmp_path: Path) -> None:
    suite, asked = small(CAPITAL, BROKEN, task("last", "Capital?", {"contains": "Rome"})), list[str]()

    def counted(request: ChatRequest) -> Any:
        asked.append(request.messages[-1].get_text_content())
        if len(asked) == 3:
            running.cancel()
            return Reply(hang=True)
        return told(request)

    def once() -> asyncio.Task[SuiteRun]:
        return asyncio.create_task(aevaluate(suite, {"llm": ScriptedModel(counted)}, out=tmp_path, concurrency=1))

    running = once()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len(Runs(tmp_path, "small").unfinished(None).read_text(encoding="utf-8").splitlines()) == 2
    run = await once()
    assert [row.id for row in run.rows] == ["capital", "broken", "last"]
    assert asked.count("What is the capital of Italy?") == 1
    assert asked.count("It is broken.") == 2  # what failed is asked again
    assert not Runs(tmp_path, "small").unfinished(None).exists()


def test_a_limit_asks_the_first_tasks_that_are_left_and_the_next_run_goes_on(tmp_path: Path) -> None:
    suite, model = small(*[task(f"t{n}", f"Capital {n}?", {"contains": "Rome"}) for n in range(5)]), ScriptedModel(told)
    evaluate(suite, {"llm": model}, out=tmp_path)
    first = evaluate(suite, {"llm": model}, out=tmp_path, limit=2, cached=False)
    assert ([row.id for row in first.rows], first.left) == (["t0", "t1"], 3)
    assert first.before is not None
    assert [row.id for row in first.before.rows] == ["t0", "t1"]  # it is compared in what was asked alone
    assert "2 of 2 passed (100%); not asked: 3" in markdown(first)
    assert SuiteRun.from_dict(first.as_dict()).left == 3
    assert [len(evaluate(suite, {"llm": model}, out=tmp_path, limit=2).rows) for _ in range(2)] == [4, 5]
    assert Runs(tmp_path, "small").unfinished(None).exists() is False


@pytest.mark.parametrize("kept", [True, False])
def test_a_run_that_is_given_a_time_ends_by_then_and_keeps_what_is_done(tmp_path: Path, *, kept: bool) -> None:
    suite = small(CAPITAL, task("slow", "It never ends.", {"contains": "x"}))

    def play(request: ChatRequest) -> Any:
        return Reply(hang=True) if "never ends" in request.messages[-1].get_text_content() else told(request)

    run = evaluate(suite, {"llm": ScriptedModel(play)}, out=tmp_path if kept else None, seconds=1)
    assert ([row.id for row in run.rows], run.left) == (["capital"], 1)
    assert Runs(tmp_path, "small").unfinished(None).exists() is kept


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_run_in_which_no_task_is_done_says_so_and_is_compared_with_nothing(tmp_path: Path, lang: Lang) -> None:
    suite, model = small(CAPITAL), ScriptedModel(told)
    evaluate(suite, {"llm": model}, out=tmp_path)
    run = evaluate(suite, {"llm": model}, out=tmp_path, limit=0)
    said = {"en": "no task was asked to its end; left: 1", "zh": "没有完成任何任务；剩余：1"}[lang]
    assert headline(run, lang) == said
    assert (run.total.share, run.before) == (0, None)
    assert "100%" not in markdown(run, lang)
    assert 'style="width:0.0%"' in page(run, lang)


@pytest.mark.parametrize("limit", [-1, 1.5, True])
def test_a_limit_that_is_no_whole_number_from_0_is_refused(limit: Any) -> None:
    with pytest.raises(SettingsError, match="limit must be 0 or more"):
        evaluate(small(CAPITAL), {"llm": ScriptedModel(told)}, limit=limit)


def test_what_takes_too_long_by_itself_is_no_end_of_the_run() -> None:
    def slow(_case: Any, _reply: Any) -> bool:
        raise TimeoutError

    run = evaluate(small(CAPITAL), {"llm": ScriptedModel(told)}, evaluators=[slow], seconds=60)
    assert run.left == 0
    assert run.rows[0].error is not None


def test_a_run_is_compared_with_the_last_one(tmp_path: Path) -> None:
    first = small(CAPITAL, BROKEN, task("gone", "Capital?", {"contains": "Rome"}), task("edited", "A?", {"regex": "x"}))
    assert evaluate(first, {"llm": ScriptedModel(told)}, out=tmp_path).compared() is None
    answers = {"capital of Italy": "Milan.", "broken": "x"}

    def other(request: ChatRequest) -> str:
        said = request.messages[-1].get_text_content()
        return next((text for part, text in answers.items() if part in said), "x")

    second = small(CAPITAL, BROKEN, task("new", "Capital?", {"contains": "x"}), task("edited", "B?", {"regex": "x"}))
    run = evaluate(second, {"llm": ScriptedModel(other)}, out=tmp_path, cached=False)
    compared = run.compared()
    assert compared is not None
    assert (compared.better, compared.worse) == (("broken",), ("capital",))
    assert (compared.new, compared.gone, compared.changed) == (("new",), ("gone",), ("edited",))
    for text in (markdown(run), page(run), markdown(run, "zh"), page(run, "zh")):
        assert "capital" in text
        assert "edited" in text


def test_a_run_of_some_tasks_is_not_kept_as_the_last_one(tmp_path: Path) -> None:
    both = small(CAPITAL, BROKEN)
    evaluate(both, {"llm": ScriptedModel(told)}, out=tmp_path)
    run = evaluate(both, {"llm": ScriptedModel("Milan")}, out=tmp_path, tag="towns", cached=False)
    compared = run.compared()
    assert compared is not None
    assert (compared.worse, compared.gone) == (("capital",), ())
    assert len(list((tmp_path / "runs").glob("*.json"))) == 1
    with pytest.raises(SettingsError, match="No task has the tag villages"):
        evaluate(both, {"llm": ScriptedModel(told)}, tag="villages")


def test_replies_are_given_again_from_the_folder(tmp_path: Path) -> None:
    models = [ScriptedModel(told) for _ in range(3)]
    for model in models[:2]:
        assert evaluate(small(CAPITAL), {"llm": model}, out=tmp_path).total.passed == 1
    assert [len(model.requests) for model in models[:2]] == [1, 0]
    evaluate(small(CAPITAL), {"llm": models[2]}, out=tmp_path, cached=False)
    assert len(models[2].requests) == 1


def test_what_a_section_says_stands_over_the_agent() -> None:
    model = ScriptedModel(told)
    agents = {"terse": {"prompt": "Be {{how}}.", "tools": []}}
    run = evaluate(
        small(task("a", "Why?", {"no_tool": True}, agent="terse"), agents=agents),
        {"llm": model, "system_message": "Be long.", "tools": ["calculator"]},
        variables={"how": "terse"},
    )
    assert run.total.share == 1
    assert model.requests[0].messages[0].get_text_content() == "Be terse."
    assert not model.requests[0].functions


@pytest.mark.parametrize(
    ("tasks", "agents", "said"),
    [
        (
            [task("a", "?", {"called": "calculater"}, agent="t")],
            {"t": {"tools": ["calculator"]}},
            "The task a expects the tool calculater, which its agent does not have; did you mean calculator?",
        ),
        (
            [task("a", "?", {"contains": "x"}, agent="t")],
            {"t": {"strategi": "cot"}},
            "There is no field agents.t.strategi; did you mean strategy?",
        ),
        (
            [task("a", "?", {"contains": "x"}, agent="t")],
            {"t": {"prompt": "Be {{how}}."}},
            "The prompt needs a value for how, which is not among its variables.",
        ),
    ],
)
def test_nothing_is_asked_where_an_agent_does_not_fit(tasks: list[Any], agents: dict[str, Any], said: str) -> None:
    model = ScriptedModel(told)
    with pytest.raises(ConfigError) as caught:
        evaluate(small(*tasks, agents=agents), {"llm": model})
    assert str(caught.value.problems[0]) == said
    assert not model.requests


def test_calls_that_would_ask_are_refused_unless_allowed(tmp_path: Path) -> None:
    def keeps(request: ChatRequest) -> Any:
        if request.messages[-1].role == FUNCTION:
            return request.messages[-1].get_text_content()
        return Reply(calls=[("storage", {"operate": "put", "key": "k", "value": "v"})])

    tools = [{"name": "storage", "parameters": {"storage_root_path": str(tmp_path / "kept")}}]
    suite = small(task("a", "Keep v.", {"regex": "(?i)success|kept|saved"}))
    config = {"llm": ScriptedModel(keeps), "tools": tools}
    assert evaluate(suite, config).total.passed == 0
    assert not (tmp_path / "kept").exists()
    evaluate(suite, config, policy=Policy(allow=("storage",)))
    assert (tmp_path / "kept").exists()


def test_reports_take_nothing_from_an_answer_but_its_words() -> None:
    evil = "</pre><script>alert(1)</script> | **x** ![](http://evil)\n```\n# no"
    row = Row("a|b<i>", "m-n", evil, evil, lang="en", error={"key": "x", "message": evil})
    run = SuiteRun("<b>", "m", "2026-01-01T00:00:00+00:00", (row,))
    shown = page(run)
    assert "<script" not in shown
    assert "default-src 'none'" in shown
    text = markdown(run)
    assert r"a\|b\<i\>" in text
    assert "````text" in text


def test_a_row_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    run = evaluate(small(CAPITAL, SUM, agents={"tools": {"tools": ["calculator"]}}), {"llm": ScriptedModel(told)})
    assert SuiteRun.from_dict(json.loads(json.dumps(run.as_dict()))).rows[1].calls == run.rows[1].calls
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "9.json").write_text("{", encoding="utf-8")
    assert Runs(tmp_path, run.suite).finished(run, None).before is None  # what is no run is passed over
