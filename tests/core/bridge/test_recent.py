"""What is remembered of many is bounded."""

from __future__ import annotations

from core.bridge.pool import Recent


def test_the_entries_that_were_set_last_stay() -> None:
    recent = Recent[str, int](3)
    for number, key in enumerate("abcabd"):
        recent[key] = number
    assert dict(recent) == {"a": 3, "b": 4, "d": 5}
    assert recent.pop("a") == 3
    assert recent.setdefault("e", 6) == 6
    recent["f"] = 7
    assert list(recent) == ["d", "e", "f"]
