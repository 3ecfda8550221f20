"""A suite's file: what is wrong with one is said in a sentence for each thing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.agents.config.problems import ConfigError
from core.judging.suite import Suite

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "assets" / "suites" / "samples.yaml"


def suite(*checks: Any, **task: Any) -> dict[str, Any]:
    return {"tasks": [{"id": "a", "question": "Why?", "checks": list(checks), **task}]}


def problems(given: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        Suite.of(given)
    return [str(one) for one in caught.value.problems]


def test_the_suite_that_comes_along_has_thirty_tasks_in_two_languages() -> None:
    shipped = Suite.of(SAMPLES)
    assert len(shipped.tasks) == 30
    kinds = {check.kind for task in shipped.tasks for check in task.checks}
    assert kinds == {"contains", "regex", "cites", "called", "no_tool"}
    chinese = [task for task in shipped.tasks if not task.question.isascii()]
    assert 12 <= len(chinese) <= 18
    assert shipped.agents["steps"]["strategy"] == "cot"


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (
            {"contian": "x"},
            "There is no field tasks[0].checks[0].contian; did you mean contains?",
        ),
        (
            {"contains": "x", "regex": "x"},
            "The field tasks[0].checks[0] must be one check, one of contains, regex, cites, called, no_tool, judged.",
        ),
        ({}, "The field tasks[0].checks[0] must be one check, one of contains, regex, cites, called, no_tool, judged."),
        (
            {"regex": "(a"},
            (
                "The field tasks[0].checks[0].regex is no regular expression: missing ), unterminated subpattern at "
                "position 0."
            ),
        ),
        (
            {"called": {"tool": "calculator", "arguments": {"expression": "["}}},
            (
                "The field tasks[0].checks[0].called.arguments.expression is no regular expression: unterminated "
                "character set at position 0."
            ),
        ),
        ({"cites": {"document": "a", "page": 0}}, "The field tasks[0].checks[0].cites[0].page must be 1 or more."),
        ({"contains": []}, "The field tasks[0].checks[0].contains must not be empty."),
        ({"no_tool": False}, "The field tasks[0].checks[0].no_tool must be True."),
    ],
)
def test_a_check_that_is_none_is_named(check: dict[str, Any], said: str) -> None:
    assert problems(suite(check)) == [said]


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        "agents: {tools: {}}\n"
        "tasks:\n"
        "  - {id: a, question: x, agent: toolz, checks: [{contains: x}], files: [none.pdf]}\n"
        "  - {id: a, question: x, checks: [{contains: x}], library: nowhere}\n",
        encoding="utf-8",
    )
    assert problems(path) == [
        "The task a is for the agent toolz, which is none of the suite's; did you mean tools?",
        "The task a needs the file none.pdf, which is not there.",
        "Two tasks have the id a.",
        "The task a needs the library nowhere, which is not there.",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "The field tasks is missing."),
        ({"tasks": []}, "The field tasks must not be empty."),
        (suite(), "The field tasks[0].checks must not be empty."),
        ({"tasks": "x"}, "The field tasks must be a list."),
    ],
)
def test_an_empty_suite_is_none(given: dict[str, Any], said: str) -> None:
    assert problems(given) == [said]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert problems(tmp_path / "no.yaml") == [f"There is no file {tmp_path / 'no.yaml'}."]


def test_short_forms_stand_for_long_ones() -> None:
    checks = Suite.of(suite({"contains": "x"}, {"cites": "a.pdf"}, {"called": "calculator"})).tasks[0].checks
    assert checks[0].contains == ["x"]
    assert [(place.document, place.page) for place in checks[1].cites or ()] == [("a.pdf", None)]
    assert checks[2].called is not None
    assert checks[2].called.tool == "calculator"
