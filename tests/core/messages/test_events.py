"""Events: small, frozen, told apart by their kind."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import get_args

import pytest

from core.messages.events import Event, TextDelta


def test_the_ten_events_have_ten_kinds():
    kinds = [event.__dataclass_fields__["kind"].default for event in get_args(Event)]
    assert len(set(kinds)) == len(kinds) == 10


def test_an_event_cannot_be_changed_and_has_no_dict():
    event = TextDelta("a")
    with pytest.raises(FrozenInstanceError):
        event.text = "b"  # pyright: ignore[reportAttributeAccessIssue]
    assert not hasattr(event, "__dict__")
