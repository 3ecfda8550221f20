"""Whatever is repeated in a text, no function of the house reads it in more time than its length asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

from core.errors import ParlourError
from tests.texts.calling import Way, ways
from tests.texts.feeds import EXCUSED, FED
from tests.texts.finding import Taker, modules, takers
from tests.texts.measuring import ENOUGH, GROWTH, GROWTH_OF_HALF, Call, is_in_time, seconds_of
from tests.texts.repeats import Repeat, framed, plain

WHOLE = 300_000  # characters, for which half a second is enough
MOST = 3.0  # seconds, after which nobody waits for what a call still does
SOON = 0.002  # seconds, under which nothing can be told of how time grows
# In the gate: few of the repeats at a length at which copying shows, all of them at a small one.
LONG, SHORT = 40_000, 2_000
FEW = tuple(Repeat(unit) for unit in (" ", "\n", "a", "`", "<", "[1]", "a. ", "中", '{"a":', "<think>"))


@cache
def fed(module: str) -> tuple[Way, ...]:
    return tuple(way for taker in takers(module) if not is_excused(taker) for way in ways(taker))


def is_excused(taker: Taker) -> bool:
    return taker.path not in FED and any(fnmatchcase(taker.path, pattern) for pattern in EXCUSED)


def read() -> Iterator[str]:
    """The modules of the house; what runs when it is imported, or inside of a sandbox, is none."""
    for module in modules():
        if not module.endswith("__main__") and ".inside." not in module and ".migrations." not in module:
            yield module


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever writes a file writes it there."""
    monkeypatch.chdir(tmp_path)


FEEDING = [module for module in read() if fed(module)]


def prepared(way: Way, text: str) -> Callable[[], Call]:
    """The call; a text may be refused, in time."""

    def make() -> Call:
        call = way.call(text)

        def refusing() -> None:
            with suppress(Exception):
                call()

        return refusing

    return make


def complaint(way: Way, repeat: Repeat, length: int) -> str:
    """What is wrong with the time that a function takes for twice the text, or for all of 300,000 characters.

    A machine that is busy lies now and then, so whatever looks wrong is measured again, with more text.
    """

    def took(length: int, times: int = 1) -> float:
        return seconds_of(prepared(way, repeat.text(length)), times=times, most=MOST)

    def grows(length: int, doubled: int = 1, times: int = 3) -> bool:
        more = took(length << doubled, times)
        return more >= MOST or more > GROWTH**doubled * took(length, times)

    once = took(length)
    if once < SOON:
        return ""
    if once >= MOST:
        return f"{way}: {repeat} takes more than {MOST} s for {length} characters"
    # With the half measured, not the double, what grows so little beyond its length is seen as well.
    doubtful = once > GROWTH_OF_HALF * took(length // 2) and grows(length, times=1)
    if doubtful and grows(4 * length) and grows(2 * length, doubled=3):
        return f"{way}: {repeat} takes more than {GROWTH} times as long for twice as many characters as {length}"
    if way.is_whole and once / length * WHOLE > ENOUGH and took(WHOLE // 10) * 10 > ENOUGH and took(WHOLE) > ENOUGH:
        all_of_it = took(WHOLE, 3)
        if not is_in_time(all_of_it, ENOUGH):
            return f"{way}: {repeat} takes {all_of_it:.2f} s for {WHOLE} characters"
    return ""


def complaints(module: str, repeats: Iterable[Repeat], length: int) -> list[str]:
    """Of each way in which text comes to a module, the first thing that is wrong."""
    repeats = list(repeats)
    found: list[str] = []
    for way in fed(module):
        at = length // 10 if way.kind == "by 1" else length
        said = next(filter(None, (complaint(way, repeat, at) for repeat in repeats)), "")
        found += [said] if said else []
    return found


@pytest.mark.parametrize("module", list(read()))
def test_every_function_that_takes_text_is_fed_or_excused_with_a_reason(module: str) -> None:
    for way in fed(module):
        call, wrong = way.call("hello"), None
        try:
            call()
        except ParlourError:
            pass  # it is refused
        except (LookupError, TypeError, AttributeError) as error:
            wrong = error
        except Exception:
            pass
        assert wrong is None, f"{way} cannot be called ({wrong}): say how, or why not, in tests/texts/feeds.py"


def test_every_excuse_is_needed_and_says_why() -> None:
    found = [taker for module in read() for taker in takers(module)]
    for pattern, reason in EXCUSED.items():
        assert reason, pattern
        assert any(fnmatchcase(taker.path, pattern) for taker in found), f"nothing is called {pattern} any more"
    assert {taker.path for taker in found} >= FED


@pytest.mark.parametrize("module", FEEDING)
def test_the_time_that_a_text_takes_grows_with_its_length_alone(module: str) -> None:
    assert complaints(module, plain(), SHORT) == []


@pytest.mark.parametrize("module", FEEDING)
def test_a_long_text_is_read_in_time(module: str) -> None:
    assert complaints(module, FEW, LONG) == []


@pytest.mark.slow
@pytest.mark.parametrize("module", FEEDING)
def test_a_text_that_begins_as_something_takes_no_longer(module: str) -> None:
    assert complaints(module, framed(), SHORT) == []


@pytest.mark.slow
@pytest.mark.parametrize("module", FEEDING)
def test_a_very_long_text_is_read_in_time_whatever_is_repeated(module: str) -> None:
    assert complaints(module, plain(), WHOLE // 2) == []
