"""What the first question would wait for is made ready before, in a thread: the event loop serves others meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.rag import scope
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from core.tools import arguments

pytestmark = pytest.mark.anyio

QUESTIONS = (
    "What is the deductible for water damage?",
    "Summarise the second chapter.",
    "List all the names in these files.",
    "这些文件讲了什么？",
    "Welche Dateien gibt es?",
)


def within(module: Any) -> Any:
    """A module with what is its own: whether anything is made anew is seen by its caches alone."""
    return module


async def test_after_it_the_first_question_compiles_no_rule_and_the_first_call_loads_no_checker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules, checks = within(scope), within(arguments)
    rule, validator = rules._rule, checks._bounded
    rule.cache_clear()
    checks._validator.cache_clear()
    validator.cache_clear()
    threads: list[int] = []
    compiled = scope.make_ready

    def noted() -> None:
        threads.append(threading.get_ident())
        compiled()

    monkeypatch.setattr(scope, "make_ready", noted)
    async with Engine(Settings.load(home=tmp_path / "home", retrieval="keyword"), model=ScriptedModel()) as engine:
        await engine.services.warm_up()
    assert threads
    assert threading.get_ident() not in threads
    before = rule.cache_info().misses, validator.cache_info().misses
    for question in QUESTIONS:
        scope.scope_of(question)
        scope.is_of_topic(question)
    checks._validator('{"type": "array"}')
    assert (rule.cache_info().misses, validator.cache_info().misses) == before
