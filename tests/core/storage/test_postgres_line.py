"""What is sent several statements at a time needs all its values, as what is sent one by one does."""

from __future__ import annotations

from typing import Any

import pytest

from core.storage import statements
from core.storage.postgres_line import PostgresLine


@pytest.mark.parametrize("send", [PostgresLine.send, PostgresLine.rows])
def test_a_value_that_is_forgotten_is_told_and_is_not_taken_for_nothing(send: Any) -> None:
    unconnected: Any = None
    with pytest.raises(TypeError, match="needs a value for ended"):
        send(PostgresLine(unconnected), statements.END_RUN, {"run": "r", "trouble": None, "spent": None, "time": 1.0})


def test_what_has_all_its_values_waits_for_what_comes_next() -> None:
    unconnected: Any = None
    values = {"run": "r", "ended": "complete", "trouble": None, "spent": None, "time": 1.0}
    PostgresLine(unconnected).send(statements.END_RUN, values)
