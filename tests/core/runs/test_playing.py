"""A recording is played in its own times: what is in sight at a moment is what the log says of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.messages.events import CallDelta, CallStarted, MessageStarted, TextDelta, ToolFinished, ToolStarted
from core.messages.message import Message
from core.runs.log import LoggedEvent, RunEvent, RunFinished
from core.runs.playing import Player, Tape
from core.runs.reply import CallBlock, Reply
from core.storage.base import Role, StoredMessage

ANSWER = "It is fifteen thousand and eighty-five, as the calculator says."


def turn(name: str, role: Role) -> StoredMessage:
    parts = (Message(role, "?"),)
    return StoredMessage(name, "c", None, role, parts, "r" if role == "assistant" else None, "complete", 100.0)


def events(*timed: tuple[float, RunEvent]) -> list[LoggedEvent]:
    return [LoggedEvent(seq, at, event) for seq, (at, event) in enumerate(timed, start=1)]


LOG = events(
    (0.0, MessageStarted("")),
    (30.0, CallStarted("1", "calculator")),  # half a minute until the first word
    (30.1, CallDelta("1", '{"expression": "1250 * 12 + 340 / 4"}')),
    (30.2, ToolStarted("1")),
    (30.4, ToolFinished("1", Message("function", "15085", name="calculator", extra={"function_id": "1"}))),
    (30.5, TextDelta(ANSWER)),
    (31.5, RunFinished("complete")),
)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def player() -> tuple[Player, Clock]:
    clock = Clock()
    thread = [turn("q1", "user"), turn("a1", "assistant"), turn("q2", "user"), turn("a2", "assistant")]
    return Player(Tape(thread, [[], LOG, [], LOG]), clock), clock


def test_it_goes_through_questions_calls_and_answers_step_by_step() -> None:
    shown, _ = player()
    assert [one.kind for one in shown.tape.steps] == ["asks", "tool", "answers"] * 2
    seen: list[tuple[int, int, str]] = []
    for _ in range(8):
        thread = shown.thread()
        last = shown.reply(len(thread) - 1) if thread[-1].role == "assistant" else Reply()
        seen.append((shown.step, len(thread), last.text))
        shown.forward()
    assert seen == [(0, 1, ""), (1, 2, ""), (2, 2, ANSWER), (3, 3, ""), (4, 4, ""), *[(5, 4, ANSWER)] * 3]
    shown.back()
    assert (shown.step, shown.reply(3).text, shown.reply(1).text) == (4, "", ANSWER)
    shown.go_to(99)
    assert shown.is_over
    shown.play()
    assert (shown.position, shown.is_playing) == (0.0, True)


def test_a_text_that_is_one_row_comes_bit_by_bit_and_a_long_wait_is_short() -> None:
    shown, clock = player()
    shown.play()
    clock.now = 1.3
    assert shown.thread()[-1].status == "running"
    clock.now = 3.3  # after the question and what is left of the half minute
    (call,) = shown.reply(1).blocks
    assert isinstance(call, CallBlock)
    lengths = set[int]()
    while len(lengths) < 4 and clock.now < 10:
        clock.now += 0.05
        lengths.add(len(shown.reply(1).text))
    assert max(lengths) < len(ANSWER), "pieces of it were seen"
    assert shown.tape.length < 20


def test_it_is_faster_where_that_is_wanted_and_stands_where_it_was_told_to() -> None:
    shown, clock = player()
    shown.play()
    clock.now = 1.0
    shown.faster()
    clock.now = 2.0
    assert (shown.speed, shown.position) == (2, 3.0)
    shown.play(on=False)
    clock.now = 50.0
    assert (shown.position, shown.is_playing, shown.wait()) == (3.0, False, None)
    shown.play()
    then = shown.wait()
    assert then is not None
    assert 0 <= then <= 1.0


@given(st.lists(st.floats(0, 40), max_size=12))
def test_wherever_one_jumps_the_reply_is_the_fold_of_the_log_up_to_there(places: list[float]) -> None:
    shown, clock = player()
    shown.play()
    for place in places:
        clock.now = place
        shown.back() if place > 20 else None
        turns = shown.thread()
        for number, one in enumerate(turns):
            if one.role == "assistant":
                anew = Reply(shown.tape.events_at(number, shown.position))
                told = shown.reply(number)
                assert (told.text, told.status, len(told.blocks)) == (anew.text, anew.status, len(anew.blocks))
