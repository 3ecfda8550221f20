"""What is remembered of many is bounded."""

from __future__ import annotations

from core.bridge.pool import BoundedDict


def test_the_entries_that_were_set_last_stay() -> None:
    recent = BoundedDict[str, int](3)
    for number, key in enumerate("abcabd"):
        recent[key] = number
    assert dict(recent) == {"a": 3, "b": 4, "d": 5}
    assert recent.pop("a") == 3
    assert recent.setdefault("e", 6) == 6
    recent["f"] = 7
    assert list(recent) == ["d", "e", "f"]


def test_what_goes_for_another_is_told_and_what_is_taken_out_is_not() -> None:
    gone: list[int] = []
    recent = BoundedDict[str, int](2, gone.append)
    for number, key in enumerate("abac"):
        recent[key] = number
    assert gone == [1]
    recent.pop("a")
    recent["d"] = 4
    assert gone == [1]
