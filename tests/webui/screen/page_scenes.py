"""Conversations that are long, or hold what is hard to lay out."""

from __future__ import annotations

from core.messages.events import MessageStarted, TextDelta
from core.runs.log import RunFinished
from core.runs.reply import Reply
from tests.webui.screen.calls_scenes import Scene, call, came, reply_of, turns

PARAGRAPH = "The quick brown fox jumps over the lazy dog and goes on to the next field, where it rests a while."


def long() -> Scene:
    """Ten questions with links and tool calls; the first reply holds a word that stands nowhere else."""
    thread, replies = turns("Question 0?", _answer("There is a needle here."), "r0")
    for number in range(1, 10):
        more, others = turns(f"Question {number}?", _answer(""), f"r{number}")
        thread, replies = [*thread, *more], {**replies, **others}
    return thread, replies


def _answer(first: str) -> Reply:
    text = "\n\n".join([f"{first} {PARAGRAPH} [A link](https://example.org/page).", PARAGRAPH, PARAGRAPH])
    looked_up = [*call("a", "calculator", 0, expression="1+1"), came("a", 0.2, "2")]
    return reply_of((0, MessageStarted()), *looked_up, (0.3, TextDelta(text)), (1, RunFinished("complete")))


SCENES = {"long": long}
