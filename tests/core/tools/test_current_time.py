"""The clock: zones by name, city and offset, in two languages."""

from __future__ import annotations

import re
from datetime import datetime

import pytest

from core.errors import ToolError
from core.tools.builtin.current_time import CurrentTime, told, zone_of


@pytest.mark.parametrize(
    ("place", "key"),
    [
        ("Tokyo", "Asia/Tokyo"),
        ("new york", "America/New_York"),
        ("Europe/Berlin", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("北京", "Asia/Shanghai"),
        ("北京时间", "Asia/Shanghai"),
        ("上海市", "Asia/Shanghai"),
        ("San Francisco", "America/Los_Angeles"),
        ("Paris, France", "Europe/Paris"),
        ("UTC", "UTC"),
    ],
)
def test_places_have_zones(place: str, key: str):
    assert str(zone_of(place)) == key


def test_an_offset_is_a_zone():
    moment = datetime(2026, 11, 21, 14, 5, 9, tzinfo=zone_of("UTC+5:30"))
    assert told(moment, "en") == "It is Saturday, 2026-11-21, 14:05:09 (UTC+05:30)."


def test_the_sentence_is_in_the_readers_language():
    moment = datetime(2026, 11, 21, 14, 5, 9, tzinfo=zone_of("东京"))
    assert told(moment, "zh", "东京") == "东京现在是 2026年11月21日 星期六 14:05:09（UTC+09:00, Asia/Tokyo）。"
    assert told(moment, "en", "Tokyo") == "In Tokyo it is Saturday, 2026-11-21, 14:05:09 (UTC+09:00, Asia/Tokyo)."


def test_an_unknown_place_is_answered_with_the_near_names():
    with pytest.raises(ToolError, match=r"Did you mean .*Europe/Berlin"):
        zone_of("Berlim")
    with pytest.raises(ToolError, match=r"no time zone named '../../etc/passwd'"):
        zone_of("../../etc/passwd")


@pytest.mark.parametrize("params", ["{}", '{"timezone": ""}', '{"timezone": "local"}'])
def test_without_a_place_it_is_the_local_time(params: str):
    assert re.fullmatch(
        r"It is \w+day, \d{4}-\d\d-\d\d, \d\d:\d\d:\d\d \(UTC[+-]\d\d:\d\d\)\.", CurrentTime().call(params)
    )
