"""The tools over documents stand in the dialog of tools, and are in the price of what a conversation may use."""

from __future__ import annotations

import json

import pytest

from core.agents.read_documents import ReadDocuments
from core.llm.tokens import counter_for
from core.toolbox.toolbox import OwnerInterpreter
from core.tools.builtin.ask_documents import AskDocuments
from core.tools.builtin.ask_tables import AskTables
from core.workspace.usable import documents_row
from webui.panels.tools import tools_data
from webui.words import Words

TOOLS = (AskDocuments, AskTables, ReadDocuments)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_dialog_lists_each_tool_over_documents_with_what_it_does(lang: str) -> None:
    told = tools_data([], OwnerInterpreter(None, "", ""), Words(lang))
    assert [one["name"] for one in told] == [one.name for one in TOOLS]
    assert all(one["label"] and one["about"] and one["always"] for one in told)
    assert len({one["about"] for one in told}) == len(TOOLS)


def test_the_price_of_documents_is_that_of_all_tools_over_them() -> None:
    counter = counter_for("")
    each = [
        counter.count(json.dumps({"name": one.name, "description": one.description, "parameters": one.parameters}))
        for one in TOOLS
    ]
    row = documents_row(counter, on=True)
    assert row.tokens_now == row.tokens == sum(each)
    assert documents_row(counter, on=False).tokens_now == 0
