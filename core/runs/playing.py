"""A recorded conversation, played: what a reader sees of it at each moment, folded from the logs of its replies.

Times are those of the recording; a wait is shortened, and a text that the log keeps as one piece comes bit by bit.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from core.messages.events import CallDelta, ReasoningDelta, TextDelta, ToolFinished
from core.runs.log import LoggedEvent
from core.runs.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from core.runs.log import RunEvent
    from core.storage.base import StoredMessage

StepKind: TypeAlias = Literal["asks", "tool", "answers"]
SPEEDS: Final = (1, 2, 4)
_QUESTION: Final = 1.2  # seconds that a question stands alone
_BETWEEN: Final = 1.5  # after a reply
_LONGEST_WAIT: Final = 2.0
_PIECE: Final = 12  # letters that come at once
_FASTEST: Final = 0.004  # seconds a letter, where a log without times knows no better
_MOST_STEPS: Final = 24  # beyond which only questions and answers are steps
_NEXT: Final = 0.01


class Step(NamedTuple):
    """A place in a recording where one may stand.

    Args:
        at: Seconds from its beginning: all of the step is in sight.
        turn: The index of its turn.
        kind: What happens in it.
        name: The tool, where it is one.
    """

    at: float
    turn: int
    kind: StepKind
    name: str = ""


@dataclass(frozen=True, slots=True)
class _Span:
    """A turn on the timeline: when it appears, and what happens in it when."""

    message: StoredMessage
    begins: float
    events: tuple[LoggedEvent, ...] = ()
    times: tuple[float, ...] = ()


class Tape:
    """A recording on a timeline; made once, and played by any number of readers.

    Args:
        thread: The turns, each after the one that it follows.
        logs: The events of each of them, down to its `RunFinished`; none for a question.
        models: What wrote each of them; "" where that is not known.

    Attributes:
        thread: The turns.
        models: What wrote each of them.
        steps: Where one may stand, in order; at least one.
        length: Seconds that all of it takes.
    """

    def __init__(
        self, thread: Sequence[StoredMessage], logs: Sequence[Sequence[LoggedEvent]], models: Sequence[str] = ()
    ) -> None:
        self.thread = tuple(thread)
        self.models = tuple(models) or ("",) * len(self.thread)
        self._spans: list[_Span] = []
        self._whole: dict[int, Reply] = {}
        steps: list[Step] = []
        now = 0.0
        for turn, (message, log) in enumerate(zip(thread, logs, strict=True)):
            if message.role == "user":
                self._spans.append(_Span(message, now))
                steps.append(Step(now, turn, "asks"))
                now += _QUESTION
                continue
            events = tuple(_numbered(_spread(log), now))
            self._spans.append(_Span(message, now, events, tuple(one.at for one in events)))
            found = ((one.at, one.event) for one in events)
            steps += [
                Step(at, turn, "tool", done.message.name or "") for at, done in found if isinstance(done, ToolFinished)
            ]
            now = events[-1].at if events else now
            steps.append(Step(now, turn, "answers"))
            now += _BETWEEN
        if len(steps) > _MOST_STEPS:
            steps = [one for one in steps if one.kind != "tool"]
        self.steps = tuple(steps)
        self.length = steps[-1].at if steps else 0.0

    def turns_at(self, position: float) -> int:
        """How many turns are in sight."""
        return bisect_right([one.begins for one in self._spans], position + 1e-9)

    def step_at(self, position: float) -> int:
        """The index of the step that is being played, or that is whole."""
        return next((at for at, one in enumerate(self.steps) if one.at >= position - _NEXT), len(self.steps) - 1)

    def events_at(self, turn: int, position: float) -> tuple[LoggedEvent, ...]:
        """What has happened in a turn."""
        span = self._spans[turn]
        return span.events[: bisect_right(span.times, position + 1e-9)]

    def whole(self, turn: int) -> Reply:
        """A reply as it is at its end."""
        known = self._whole.get(turn)
        if known is None:
            known = self._whole[turn] = Reply()
            for one in self._spans[turn].events:
                known.apply(one)
        return known

    def within(self, turn: int, position: float) -> float:
        """Seconds since a turn began."""
        return max(0.0, position - self._spans[turn].begins)

    def next_after(self, position: float) -> float | None:
        """When something happens next; `None` at the end."""
        for span in self._spans[max(0, self.turns_at(position) - 1) :]:
            if span.begins > position:
                return span.begins
            at = bisect_right(span.times, position + 1e-9)
            if at < len(span.times):
                return span.times[at]
        return None


class Player:
    """One reader's place in a recording.

    Args:
        tape: What is played.
        clock: Gives seconds.

    Attributes:
        speed: One of `SPEEDS`.
    """

    def __init__(self, tape: Tape, clock: Callable[[], float] = time.monotonic) -> None:
        self.tape = tape
        self.speed = SPEEDS[0]
        self._clock = clock
        self._at = 0.0
        self._since: float | None = None  # by the clock; `None` while it stands
        self._replies: dict[int, Reply] = {}

    @property
    def position(self) -> float:
        """Seconds from the beginning of the recording."""
        if self._since is None:
            return self._at
        return min(self.tape.length, self._at + (self._clock() - self._since) * self.speed)

    @property
    def is_playing(self) -> bool:
        """Whether it goes on by itself; at its end it does not."""
        return self._since is not None and self.position < self.tape.length

    @property
    def step(self) -> int:
        """The index of the step that is played, or that is whole."""
        return self.tape.step_at(self.position)

    @property
    def is_over(self) -> bool:
        """Whether all of it is in sight."""
        return self.position >= self.tape.length

    def play(self, *, on: bool = True) -> None:
        """Go on, from the beginning where it was over; or stand still."""
        begins = 0.0 if on and self.is_over and self.tape.length > 0 else self.position
        self._go(begins, plays=on)

    def faster(self) -> None:
        """Play at the next speed; after the fastest comes the first."""
        self._go(self.position, plays=self.is_playing)
        self.speed = SPEEDS[(SPEEDS.index(self.speed) + 1) % len(SPEEDS)]

    def forward(self) -> None:
        """To the end of this step; where that is in sight, to the end of the next."""
        now = self.position
        self._go(next((one.at for one in self.tape.steps if one.at > now + _NEXT), self.tape.length))

    def back(self) -> None:
        """To the end of the step before; the first has none."""
        before = self.step - 1
        self._go(self.tape.steps[before].at if before >= 0 else 0.0)

    def go_to(self, step: int) -> None:
        """To the end of a step; past the last one, to that."""
        steps = self.tape.steps
        self._go(steps[min(max(0, step), len(steps) - 1)].at if steps else 0.0)

    def wait(self) -> float | None:
        """Seconds until there is something new to see; `None` where it stands, or is over."""
        if not self.is_playing:
            return None
        now = self.position
        then = self.tape.next_after(now)
        return max(0.0, ((then if then is not None else self.tape.length) - now) / self.speed)

    def thread(self) -> tuple[StoredMessage, ...]:
        """The turns that are in sight. One that is being written began so long ago as it has been played."""
        now = self.position
        turns = list(self.tape.thread[: self.tape.turns_at(now)])
        if turns and turns[-1].role != "user":
            last, reply = len(turns) - 1, self.reply(len(turns) - 1)
            if reply.status == "running":
                began = time.time() - self.tape.within(last, now)
                turns[last] = replace(turns[last], status="running", created_at=began)
        return tuple(turns)

    def reply(self, turn: int) -> Reply:
        """What there is of a reply now."""
        events = self.tape.events_at(turn, self.position)
        known = self._replies.get(turn)
        if known is None or known.seen > len(events):
            known = self._replies[turn] = Reply()
            known.model = self.tape.models[turn]
        for one in events[known.seen :]:
            known.apply(one)
        return known

    def _go(self, to: float, *, plays: bool | None = None) -> None:
        plays = self._since is not None if plays is None else plays
        self._at, self._since = to, self._clock() if plays and to < self.tape.length else None


def _spread(log: Sequence[LoggedEvent]) -> Iterator[LoggedEvent]:
    """The events, in pieces where a text was kept as one, and closer together where nothing happened for long."""
    now = 0.0
    for one, following in zip(log, [*log[1:], None], strict=True):
        wait = max(0.0, following.at - one.at) if following is not None else 0.0
        pieces = list(_pieces(one.event))
        wait = min(max(wait, _FASTEST * _length(one.event)), _LONGEST_WAIT)
        for number, piece in enumerate(pieces):
            yield LoggedEvent(0, now + wait * number / len(pieces), piece)
        now += wait


def _length(event: RunEvent) -> int:
    return len(event.text) if isinstance(event, TextDelta | ReasoningDelta) else 0


def _pieces(event: RunEvent) -> Iterator[RunEvent]:
    match event:
        case TextDelta() if len(event.text) > _PIECE:
            for at in range(0, len(event.text), _PIECE):
                yield replace(event, text=event.text[at : at + _PIECE])
        case ReasoningDelta() if len(event.text) > _PIECE:
            for at in range(0, len(event.text), _PIECE):
                last = at + _PIECE >= len(event.text)
                yield ReasoningDelta(event.text[at : at + _PIECE], event.proof if last else "")
        case CallDelta() if len(event.arguments) > _PIECE:
            for at in range(0, len(event.arguments), _PIECE):
                yield replace(event, arguments=event.arguments[at : at + _PIECE])
        case _:
            yield event


def _numbered(events: Iterable[LoggedEvent], begins: float) -> Iterator[LoggedEvent]:
    latest = 0.0
    for seq, one in enumerate(events, start=1):
        latest = max(latest, one.at)
        yield LoggedEvent(seq, begins + latest, one.event)
