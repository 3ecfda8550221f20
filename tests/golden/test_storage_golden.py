"""Values under keys, against what Qwen-Agent kept and said."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import BadArgumentsError
from core.tools.builtin.storage import Storage
from tests.golden.claimed import of

RECORDS = of("storage")
BETTER = {  # what we refuse instead, and the words
    "traversal": "leads out",  # it wrote outside of its folder
    "bad_op": '"put", "get", "delete", "scan"',  # it listed all keys, whatever was asked for
}


def test_the_recorded_session_goes_the_same_up_to_what_is_better_refused(tmp_path: Path) -> None:
    root = tmp_path / "kept"
    tool = Storage({"storage_root_path": str(root)})
    tool.call({"operate": "put", "key": "345/456/11", "value": "hello"})  # the one before those that were recorded
    said: dict[str, str] = {}
    for record in RECORDS:
        if words := BETTER.get(record["id"]):
            with pytest.raises(BadArgumentsError, match=words):
                tool.call(record["input"])
        else:
            tool.verify(record["input"])  # as whoever runs a call for a model does first
            said[record["id"]] = tool.call(record["input"])
    assert said == {record["id"]: record["output"] for record in RECORDS if record["id"] not in BETTER}
    assert len(said) == 4
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["11"]
