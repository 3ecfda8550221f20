"""Whatever is repeated in a text, no function of the house reads it in more time than its length asks for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache
from inspect import iscoroutinefunction
from pathlib import Path
from tempfile import mkdtemp

import pytest

from core.errors import ParlourError
from tests.texts import planted
from tests.texts.calling import Way, ways
from tests.texts.excuses import EXCUSED, ROOMS, is_excused, is_shut
from tests.texts.feeds import REFUSING
from tests.texts.finding import modules, takers
from tests.texts.measuring import ENOUGH, GROWTH, GROWTH_OF_HALF, Call, is_in_time, seconds_of
from tests.texts.repeats import UNITS, Repeat, framed, plain

pytestmark = pytest.mark.no_cover  # what is traced takes longer

WHOLE = 300_000  # characters, for which half a second is enough
MOST = 3.0  # seconds, after which nobody waits for what a call still does
SOON = 0.002  # seconds, under which nothing can be told of how time grows
# In the gate: few of the repeats at a length at which copying shows, all of them at a small one.
LONG, SHORT = 40_000, 2_000
_COMMON = (" ", "\n", "`", "<", "[1]", "a. ", "a", "中", '{"a":', "<think>")
FEW = tuple(Repeat(unit) for unit in _COMMON)
FRAMED = tuple(framed(_COMMON))
ONE = (Repeat("a. "),)  # in the gate, of what is read letter by letter or comes in values of the house: it takes long
GONE_INTO = 4  # repeats for each way in which text comes to a function
# A quarter of the text tells which they may be. What grows with the cube of the length and takes `SOON` for all of the
# text takes this many seconds for a quarter: whatever is quicker is told nothing of, so it is not looked at again.
GLANCE, LIKELY, AT_ONCE = SHORT // 4, 40, SOON / 4**3
QUICK = 0.001  # seconds for a long text, under which framed ones are fed at full length too


@cache
def fed(module: str) -> tuple[Way, ...]:
    return tuple(way for taker in takers(module) if not is_excused(taker.path) for way in ways(taker))


def read() -> Iterator[str]:
    """The modules that a stranger's text comes to."""
    yield from (module for module in modules() if not is_shut(module))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever writes a file writes it there."""
    (tmp_path / "first").mkdir()
    monkeypatch.chdir(tmp_path / "first")


def leave_what_was_written() -> None:
    """Go on in an empty folder: a store of thousands of texts would be walked through for each further one."""
    with os.scandir() as written:
        is_empty = next(written, None) is None
    if not is_empty:
        os.chdir(mkdtemp(dir=Path.cwd().parent))


FEEDING = [module for module in read() if fed(module)]


def prepared(way: Way, text: str) -> Callable[[], Call]:
    """The call; a text may be refused, in time."""

    def make() -> Call:
        leave_what_was_written()
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
    parts = [part for part in (WHOLE // 40, WHOLE // 10) if part > length] or [WHOLE // 10]
    suspicious = way.is_whole and once / length * WHOLE > ENOUGH
    if suspicious and not any(is_in_time(took(part) / part * WHOLE, ENOUGH) for part in parts):
        # What is slow on a busy machine alone, or for a short text alone, has shown that with a part; to read all of
        # it takes a second each time.
        all_of_it = took(WHOLE)
        if not is_in_time(all_of_it, ENOUGH):
            all_of_it = min(all_of_it, took(WHOLE, 3))
        if not is_in_time(all_of_it, ENOUGH):
            return f"{way}: {repeat} takes {all_of_it:.2f} s for {WHOLE} characters"
    return ""


def is_quick(way: Way) -> bool:
    """Whether a long text is read at once that has nothing in it."""
    return way.is_whole and seconds_of(prepared(way, "a" * LONG), times=2, most=MOST) < QUICK


def slowest(way: Way) -> list[Repeat]:
    """The repeats that the gate goes into: what grows beyond its length is among those that take longest.

    None where each is read so quickly that nothing can be told of how time grows.
    """

    def longest(repeats: Iterable[Repeat], length: int, least: float = 0.0) -> list[Repeat]:
        took = {repeat: seconds_of(prepared(way, repeat.text(length)), most=MOST) for repeat in repeats}
        return sorted((one for one in took if took[one] >= least), key=took.__getitem__, reverse=True)

    return longest(longest(plain(), GLANCE, AT_ONCE)[:LIKELY], SHORT)[:GONE_INTO]


def bare(module: str) -> list[Way]:
    """The ways in which text comes as text."""
    return [way for way in fed(module) if not way.is_carried]


def carried(module: str) -> list[Way]:
    """The ways in which it comes in values of the house."""
    return [way for way in fed(module) if way.is_carried]


def complaints(found_ways: Iterable[Way], repeats: Iterable[Repeat], length: int) -> list[str]:
    """Of each of these ways, the first thing that is wrong."""
    repeats = list(repeats)
    found: list[str] = []
    for way in found_ways:
        at = length // 10 if way.kind == "by 1" else length
        said = next(filter(None, (complaint(way, repeat, at) for repeat in repeats)), "")
        found += [said] if said else []
    return found


@pytest.mark.parametrize("module", FEEDING)
def test_every_function_that_takes_text_is_fed_or_excused_with_a_reason(module: str) -> None:
    for way in fed(module):
        call, wrong = way.call("hello"), None
        try:
            call()
        except ParlourError:
            pass  # it is refused
        except Exception as error:
            wrong = None if isinstance(error, ValueError) and way.taker.path in REFUSING else error
        assert wrong is None, f"{way} cannot be called ({wrong}): say how, or why not, in tests/texts/feeds.py"


def test_every_excuse_is_needed_and_says_why() -> None:
    found = [taker for module in read() for taker in takers(module)]
    paths = {taker.path for taker in found} | {f"{taker.path.rpartition('.')[0]}.*" for taker in found}
    assert [path for path in EXCUSED if path not in paths] == [], "nothing is called so any more"
    assert all(any(fnmatchcase(module, room) for module in modules()) for room in ROOMS)
    assert all("*" not in path.replace(".*", "") for path in EXCUSED), "a class at the widest"


@pytest.mark.parametrize("module", FEEDING)
def test_the_time_that_a_text_takes_grows_with_its_length_alone(module: str) -> None:
    # A letter at a time, so short a text tells nothing.
    found = [way for way in bare(module) if way.kind != "by 1" and not iscoroutinefunction(way.taker.function)]
    assert [said for way in found for said in complaints([way], slowest(way), SHORT)] == []


@pytest.mark.slow
@pytest.mark.parametrize("module", FEEDING)
def test_whatever_is_repeated_the_time_grows_with_the_length_alone(module: str) -> None:
    assert complaints([way for way in bare(module) if way.kind != "by 1"], plain(), SHORT) == []


@pytest.mark.parametrize("module", FEEDING)
def test_a_long_text_is_read_in_time(module: str) -> None:
    assert complaints([way for way in bare(module) if way.kind != "by 1"], FEW[:2], LONG) == []
    assert complaints([way for way in bare(module) if way.kind == "by 1"], ONE, LONG) == []
    assert complaints(carried(module), ONE, LONG) == []


@pytest.mark.slow
@pytest.mark.parametrize("module", FEEDING)
def test_a_long_text_of_any_common_kind_is_read_in_time_letter_by_letter_and_by_coroutines_too(module: str) -> None:
    assert complaints(bare(module), FEW, LONG) == []


@pytest.mark.slow
@pytest.mark.parametrize("module", FEEDING)
def test_a_long_text_in_messages_blocks_and_replies_is_read_in_time(module: str) -> None:
    assert complaints(carried(module), plain(), SHORT) == []
    assert complaints(carried(module), FEW, LONG) == []


@pytest.mark.slow
@pytest.mark.parametrize("module", FEEDING)
def test_a_text_that_begins_as_something_takes_no_longer(module: str) -> None:
    assert complaints(bare(module), framed(UNITS), SHORT) == []


@pytest.mark.slow
@pytest.mark.parametrize("module", FEEDING)
def test_a_long_text_that_begins_as_something_is_read_in_time_where_reading_takes_but_a_moment(module: str) -> None:
    assert complaints(filter(is_quick, fed(module)), FRAMED, LONG) == []


@pytest.mark.slow
@pytest.mark.parametrize("module", FEEDING)
def test_a_very_long_text_is_read_in_time_whatever_is_repeated(module: str) -> None:
    assert complaints(bare(module), plain(), WHOLE // 2) == []


# What is planted, and how it is complained of; nothing is wrong with the first.
PLANTED = {
    "is_linear": "",
    "lists_the_rest": "times as long for twice as many",
    "lists_the_rest_in_a_drawing": "times as long for twice as many",
    "is_slow": " s for ",
    "reads_blocks": "times as long for twice as many",
    "Writer.turn": "times as long for twice as many",
    "waits_first": "times as long for twice as many",
}


def test_functions_that_take_text_in_values_of_the_house_methods_and_coroutines_are_found() -> None:
    assert {taker.name for taker in takers(planted.__name__)} == set(PLANTED)


@pytest.mark.parametrize("name", [name for name in PLANTED if name != "is_slow"])
def test_a_function_that_takes_too_long_is_complained_of(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.MOST", 0.05)  # what is planted grows beyond any measure: no need to wait for it
    way = next(way for way in fed(planted.__name__) if way.taker.name == name)
    repeat = Repeat("a", "```mermaid\n") if "drawing" in name else Repeat("a")
    said = (complaint(way, repeat, SHORT) for _ in range(3))  # a busy machine lies now and then
    assert any(PLANTED[name] in one if PLANTED[name] else not one for one in said)
    if "drawing" in name:
        assert not complaint(way, Repeat("a"), SHORT)
        assert repeat in FRAMED


def test_the_gate_goes_into_what_takes_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.prepared", lambda _, text: text)
    monkeypatch.setattr(f"{__name__}.seconds_of", lambda text, **_: 1 + text.count("中"))
    way = fed(planted.__name__)[0]
    assert slowest(way)[0] == Repeat("中")
    assert len(slowest(way)) == GONE_INTO
    monkeypatch.setattr(f"{__name__}.seconds_of", lambda text, **_: text.count("中") * AT_ONCE / GLANCE)
    assert slowest(way) == [Repeat("中")]


def test_the_gate_finds_what_takes_too_long_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.MOST", 0.05)
    way = next(way for way in fed(planted.__name__) if way.taker.name == "lists_the_rest")
    assert any(complaints([way], slowest(way), SHORT) for _ in range(3))


@pytest.mark.slow
def test_a_function_that_takes_too_long_for_each_character_is_complained_of() -> None:
    way = next(way for way in fed(planted.__name__) if way.taker.name == "is_slow")
    assert PLANTED["is_slow"] in complaint(way, Repeat("a"), SHORT)
