"""Schemas and arguments of tools, against what Qwen-Agent made of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.errors import BadArgumentsError, ModelRefusedError
from core.llm.wire.tools import checked_functions
from core.messages.json_text import read_value
from core.tools.base import BaseTool
from tests.golden.claimed import Record, name, of

BETTER = {
    "extra_key": "Keys such as `strict` belong to valid tools.",
    "no_required": "JSON Schema does not ask for `required`.",
    "req_not_in_props": "JSON Schema allows to require what it does not describe; services take it.",
}


@pytest.mark.parametrize("record", of("is_tool_schema"), ids=name)
def test_a_tool_that_can_be_sent_is_taken_and_no_other(record: Record) -> None:
    if record["output"] or record["id"] in BETTER:
        (function,) = checked_functions([record["input"]])
        assert function["name"] == record["input"]["name"]
        assert function["parameters"]["properties"] == record["input"]["parameters"]["properties"]
    else:
        with pytest.raises(ModelRefusedError) as caught:
            checked_functions([record["input"]])
        assert caught.value.hint


@pytest.mark.parametrize("record", of("json_loads"), ids=name)
def test_json_of_a_model_is_read_the_same_or_mended(record: Record) -> None:
    found = read_value(record["input"])
    if "raises" in record:  # better: a missing brace is put there
        assert found == {"a": 1}
    elif "NaN" in record["input"]:  # better: a value that no JSON has, and no service takes, becomes null
        assert found == {"a": None}
    else:
        assert found == record["output"]


class Weather(BaseTool):
    """The tool of the recordings."""

    name = "get_weather"
    description = "查询天气 / get weather"
    parameters = of("is_tool_schema")[0]["input"]["parameters"]

    def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        return str(params)

    def read(self, params: str | dict[str, Any]) -> dict[str, Any]:
        return self._verify_json_format_args(params)


@pytest.mark.parametrize("record", of("verify_json_format_args"), ids=name)
def test_arguments_are_checked_against_the_schema(record: Record) -> None:
    if "raises" not in record:
        assert Weather().read(record["input"]) == record["output"]
        return
    with pytest.raises(BadArgumentsError) as caught:
        Weather().read(record["input"])
    # Better: one sentence that a model can act on, in place of a page with the whole schema.
    said = str(caught.value)
    assert "\n" not in said
    field = "unit" if "unit" in record["input"] else "city"
    assert field in said
    assert len(said) < len(record["message"]) + 60
    assert isinstance(json.loads(record["input"]), dict)
