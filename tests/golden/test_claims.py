"""Every record of Qwen-Agent is answered for by exactly one replay."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from tests.golden.claimed import CLAIMS, recorded

HERE = Path(__file__).parent


def asked_for(file: str) -> set[str]:
    """The functions whose records a replay really takes: the texts in its calls of `of(...)`."""
    calls = [node for node in ast.walk(ast.parse((HERE / file).read_text("utf-8"))) if isinstance(node, ast.Call)]
    takes = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "of"]
    return {
        argument.value
        for call in takes
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }


def test_every_recorded_function_is_claimed_by_exactly_one_file() -> None:
    claims = Counter(function for functions in CLAIMS.values() for function in functions)
    assert {function for function, count in claims.items() if count > 1} == set()
    assert {record["fn"] for record in recorded()} == set(claims)


def test_every_claim_is_kept_by_its_file() -> None:
    for file, functions in CLAIMS.items():
        assert asked_for(file) == set(functions), file


def test_every_record_has_a_name_of_its_own() -> None:
    names = Counter((record["fn"], record["id"]) for record in recorded())
    assert [each for each, count in names.items() if count > 1] == []
