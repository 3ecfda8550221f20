"""Who listens is told, until it leaves."""

from __future__ import annotations

from core.bridge.pool import Listeners


def test_each_listener_is_told_in_its_turn_until_it_leaves() -> None:
    heard: list[str] = []
    listeners = Listeners[str]()
    leave = listeners.add(lambda what: heard.append(f"first {what}"))
    listeners.add(lambda what: heard.append(f"second {what}"))
    listeners("rain")
    leave()
    leave()  # a second time does nothing
    listeners("sun")
    assert heard == ["first rain", "second rain", "second sun"]


def test_a_listener_can_leave_while_it_is_told() -> None:
    heard: list[str] = []
    listeners = Listeners[str]()

    def once(what: str) -> None:
        heard.append(what)
        leave()

    leave = listeners.add(once)
    listeners.add(heard.append)
    listeners("rain")
    listeners("sun")
    assert heard == ["rain", "rain", "sun"]
