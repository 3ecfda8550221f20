"""A service of the table for each test that wants one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.bridge.sync import run
from core.testing.model_server import ModelServer
from tests.core.llm.backends.native.services import PDF, SERVICES, Kind, Native


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each promise for each service that does not leave it out."""
    if "kind" in metafunc.fixturenames:
        promise = metafunc.function.__name__.removeprefix("test_")
        kept = [one for one in SERVICES if promise not in one.leaves_out]
        metafunc.parametrize("kind", kept, ids=lambda one: one.model_type)


@pytest.fixture
def serving() -> Iterator[Callable[[Kind], Native]]:
    """Opens a service of a kind."""
    made: list[Native] = []
    with ModelServer([]) as server:

        def open_one(kind: Kind) -> Native:
            made.append(Native(kind, server))
            return made[-1]

        yield open_one
        for one in made:
            for model in one.opened:
                run(model.aclose())


@pytest.fixture
def native(kind: Kind, serving: Callable[[Kind], Native]) -> Native:
    """The service of one row."""
    return serving(kind)


@pytest.fixture
def document(tmp_path: Path) -> str:
    """The path of a PDF file."""
    file = tmp_path / "plan.pdf"
    file.write_bytes(PDF)
    return str(file)
