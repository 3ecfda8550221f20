"""Values under keys, against what Qwen-Agent kept and said."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import BadArgumentsError
from core.tools.builtin.storage import Storage
from tests.golden.claimed import of

RECORDS = of("storage")


def test_the_recorded_session_goes_the_same_up_to_the_key_that_leads_out(tmp_path: Path) -> None:
    root = tmp_path / "kept"
    tool = Storage({"storage_root_path": str(root)})
    tool.call({"operate": "put", "key": "345/456/11", "value": "hello"})  # the one before those that were recorded
    said: dict[str, str] = {}
    for record in RECORDS:
        if record.get("peer_bug"):  # better: it wrote outside of its folder
            with pytest.raises(BadArgumentsError, match="leads out"):
                tool.call(record["input"])
        else:
            tool.verify(record["input"])  # as whoever runs a call for a model does first
            said[record["id"]] = tool.call(record["input"])
    assert said == {record["id"]: record["output"] for record in RECORDS if not record.get("peer_bug")}
    assert len(said) == 5
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["11"]
