"""A reply that waits for a model which is being fetched, or for somebody who writes it, says so."""

from __future__ import annotations

from html import unescape

import pytest

from core.messages.events import MessageStarted, TextDelta
from core.readiness import Part
from core.runs.log import LoggedEvent, ModelAsked, Queued, RunEvent, Unwritten
from core.runs.reply import Reply
from core.storage.base import StoredMessage
from webui.render.conversation import conversation_entries
from webui.words import Words

FETCHING = Part(done=220_000_000, total=491_000_000)


def shown(*events: RunEvent, model: Part = FETCHING, lang: str = "en") -> str:
    reply = Reply(LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events, 1))
    turn = StoredMessage("m", "c", None, "assistant", (), "r", "running", 0.0)
    entries, _ = conversation_entries([turn], {"m": reply}, words=Words("zh" if lang == "zh" else "en"), model=model)
    return unescape("\n".join(str(entry["content"][0]["text"]) for entry in entries))


@pytest.mark.parametrize(
    ("lang", "said", "not_said"),
    [
        ("en", "Waiting for the model (220 of 491 MB)", "Replying"),
        ("zh", "正在等待模型（491 MB 中的 220）", "正在回答"),
    ],
)
def test_how_far_the_model_is_stands_in_place_of_the_reply(lang: str, said: str, not_said: str) -> None:
    assert said in shown(lang=lang)
    assert not_said not in shown(lang=lang)


def test_a_model_that_is_only_loaded_is_waited_for_without_figures() -> None:
    assert "Waiting for the model<" in shown(model=Part())


@pytest.mark.parametrize(
    "events",
    [(ModelAsked("1", "answer", "Qwen"),), (MessageStarted(), TextDelta("It is eight.")), (Queued(),)],
    ids=["asked", "written", "in the queue"],
)
def test_a_reply_that_has_begun_or_waits_for_its_turn_does_not_wait_for_the_model(events: tuple[RunEvent, ...]) -> None:
    assert "Waiting for the model" not in shown(*events)


def test_with_a_model_that_is_ready_nothing_is_said_of_it() -> None:
    assert "Waiting for the model" not in shown(model=Part("ready"))


def test_of_a_reply_that_its_writer_left_it_is_said_that_it_goes_on_below_what_was_written() -> None:
    left = shown(MessageStarted(), TextDelta("It is eight."), Unwritten("nobody"), model=Part("ready"))
    assert left.index("It is eight.") < left.index("Yours goes on as soon as somebody does")
    assert "Yours begins as soon as somebody does" in shown(Unwritten("nobody"), model=Part("ready"))
    assert "Yours goes on" in shown(TextDelta("It is"), Unwritten("busy"), model=Part("ready"))
