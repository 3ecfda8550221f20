"""Who asks a model first is answered first, however often another asks."""

from __future__ import annotations

import threading

from core.rag.embedding.local import FairLock


def test_who_waits_is_next_whoever_asks_again_and_again() -> None:
    turns, order = FairLock(), list[str]()
    holding, waits = threading.Event(), threading.Event()

    def busy() -> None:
        for number in range(200):
            with turns:
                order.append("busy")
                if number == 50:
                    holding.set()
                    assert waits.wait(10)

    def asking() -> None:
        assert holding.wait(10)
        waits.set()
        for _ in range(3):
            with turns:
                order.append("asked")

    threads = [threading.Thread(target=one) for one in (busy, asking)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(20)
    assert order.count("busy") == 200
    assert order.count("asked") == 3
    assert max(at for at, who in enumerate(order) if who == "asked") < 190  # not after all of the others


def test_a_turn_is_given_back_whatever_happens_in_it() -> None:
    turns = FairLock()
    for _ in range(2):
        try:
            with turns:
                raise ValueError
        except ValueError:
            continue
    with turns:
        pass
