"""Broken JSON is mended where that can be done in a bounded time; nobody tries the same text twice."""

from __future__ import annotations

import json
from contextlib import suppress
from time import process_time
from typing import Any

import json_repair
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.messages.json_text import DEEPEST, LONGEST, read_object, read_value, repaired
from tests.texts.measuring import is_in_time

_HOSTILE = (
    "{",
    "[",
    '{"a": "',
    '{"',
    "{'",
    '{"a" ',
    '{"a":"b" "}',
    '{"a" }',
    '{"}',
    "(",
    "a]{]",
    '"1a',
    "{ // \n",
    "\\",
)


@pytest.mark.parametrize("unit", _HOSTILE)
@pytest.mark.parametrize("begin", ["", "{", '["', '{"a":'])
@pytest.mark.parametrize("size", [LONGEST, 300_000])
def test_whatever_is_repeated_in_broken_json_it_takes_no_second(unit: str, begin: str, size: int):
    text = (begin + unit * (size // len(unit)))[:size]
    began = process_time()
    with suppress(ValueError):
        read_object(text)
    assert is_in_time(process_time() - began, 1)


@given(st.text(alphabet="{}[]\"':,\\a1 \n/#(`", max_size=300))
def test_every_broken_text_is_mended_or_refused(text: str):
    with suppress(ValueError):
        read_value("{" + text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('{"a": "b" "c": "d"}', {"a": "b", "c": "d"}),
        ('{"text": "He said "yes" and left", "n": 3}', {"text": 'He said "yes" and left', "n": 3}),
        ('{"a": ["x" "y"]}', {"a": ["x", "y"]}),
        ('{"text": "' + 'He said "yes" and left. ' * 300 + '"}', {"text": 'He said "yes" and left. ' * 300}),
    ],
)
def test_what_people_and_models_really_break_is_mended(text: str, meant: dict[str, Any]):
    assert read_object(text) == meant


def test_repair_has_a_longest_and_a_deepest_text():
    with pytest.raises(ValueError, match="too long"):
        repaired('{"a": "' + "b" * LONGEST)
    with pytest.raises(ValueError, match="too deeply"):
        repaired('{"a" ' * (DEEPEST + 1))


def test_a_text_that_was_tried_once_is_not_tried_again(monkeypatch: pytest.MonkeyPatch):
    tried: list[str] = []
    loads = json_repair.loads

    def counted(text: str, **options: Any) -> Any:
        tried.append(text)
        return loads(text, **options)

    monkeypatch.setattr(json_repair, "loads", counted)
    failing, mending = "{" + "a test of what fails {" * 5, '{"a test of what": "is mended" "once": 1}'
    for _ in range(3):
        with pytest.raises(ValueError, match="JSON"):
            read_object(failing)
        read_object(mending)["more"] = "of the caller's own"
    assert tried == [failing, mending]
    assert read_object(mending) == {"a test of what": "is mended", "once": 1}


def test_a_long_text_that_is_nearly_json_is_still_read_exactly():
    text = "x = 'a'\n" * 40_000
    assert read_object("{'code': " + json.dumps(text) + ",}") == {"code": text}
