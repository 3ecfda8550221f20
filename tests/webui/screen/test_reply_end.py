"""What is said while a reply waits, and offered under one that failed."""

from __future__ import annotations

from html import unescape

import pytest

from core.agents.hub import PENDING_USER_INPUT
from core.messages.events import FinishReason, MessageFinished, MessageStarted, TextDelta
from core.runs.log import LoggedEvent, ModelAsked, RunFinished, TurnsSummarised
from core.runs.reply import Reply
from core.storage.base import StoredMessage
from webui.render.reply import reply_entries, speed_said
from webui.words import Words


def offered(key: str, *beside: dict[str, object]) -> str:
    reply = Reply()
    details = {"name": "a.pdf"} | ({"beside": beside} if beside else {})
    error = {"key": key, "message": "", "hint": "", "details": details}
    reply.apply(LoggedEvent(1, 0.0, RunFinished("error", error)))
    turn = StoredMessage("m", "c", "q", "assistant", (), "r", "error", 0.0)
    return "".join(str(entry["content"]) for entry in reply_entries(turn, reply, Words("en"), last=True))


@pytest.mark.parametrize("key", ["document_empty", "document_locked", "document_unsupported", "document_broken"])
def test_a_file_that_cannot_be_read_is_not_read_again(key: str) -> None:
    shown = offered(key)
    assert "p-what" in shown
    assert "p-continue" not in shown
    assert "p-regenerate" not in shown


def test_of_several_files_that_cannot_be_read_each_is_named_with_its_reason() -> None:
    empty = {"key": "document_empty", "details": {"name": "b.txt"}}
    broken = {"key": "document_broken", "details": {"name": "<c>.pdf"}}
    shown = unescape(offered("document_empty", empty, broken))
    assert "a.pdf, b.txt are empty." in shown
    assert "<c>.pdf is damaged and cannot be read." in shown


@pytest.mark.parametrize("key", ["model_unreachable", "document_too_slow"])
def test_what_may_go_better_next_time_can_be_tried_again(key: str) -> None:
    assert "p-regenerate" in offered(key)


def test_what_the_model_settings_can_mend_leads_there() -> None:
    assert "#do-models" in offered("model_key_wrong")
    assert "#do-models" not in offered("model_overloaded")


@pytest.mark.parametrize(("lang", "line"), [("en", "stopped at its longest reply"), ("zh", "长度上限")])
def test_a_reply_that_reached_the_models_longest_can_be_continued(lang: str, line: str) -> None:
    def shown(reason: FinishReason, *, last: bool = True) -> str:
        events = [MessageStarted(), TextDelta("So it"), MessageFinished(reason), RunFinished("complete")]
        reply = Reply(LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events, 1))
        turn = StoredMessage("m", "c", "q", "assistant", (), "r", "complete", 0.0)
        return "".join(str(entry["content"]) for entry in reply_entries(turn, reply, Words(lang), last=last))

    assert line in shown("length")
    assert "#do-continue-m" in shown("length")
    assert "#do-continue-m" not in shown("length", last=False)
    assert line not in shown("stop")
    assert "#do-continue-m" not in shown("stop")


def test_a_reply_says_when_and_by_which_model_it_was_written() -> None:
    reply = Reply()
    reply.model = "Small 0.5B, built in"
    reply.apply(LoggedEvent(1, 0.0, RunFinished("complete")))

    def end_of(reply: Reply) -> str:
        turn = StoredMessage("m", "c", "q", "assistant", (), "r", "complete", 0.0)
        return "".join(str(entry["content"]) for entry in reply_entries(turn, reply, Words("zh"), last=True))

    assert "内置" in end_of(reply)
    assert "p-time p-then" in end_of(reply)
    reply.model = ""
    assert "p-time" in end_of(reply)
    assert "p-then" not in end_of(reply), "nothing follows the time, and no dot parts it from nothing"


@pytest.mark.parametrize(("lang", "line"), [("en", "Earlier turns were summarised"), ("zh", "较早的对话已作摘要")])
def test_what_was_summed_up_is_a_quiet_line_before_the_reply_that_opens_to_it(lang: str, line: str) -> None:
    events = [TurnsSummarised("They spoke of the **harbour** <script>.", 6), MessageStarted(), TextDelta("So it is.")]
    reply = Reply(LoggedEvent(seq, 0.0, event) for seq, event in enumerate([*events, RunFinished("complete")], 1))
    turn = StoredMessage("m", "c", "q", "assistant", (), "r", "complete", 0.0)
    first, second, *_ = reply_entries(turn, reply, Words(lang), last=True)
    assert line in first["metadata"]["title"]
    assert first["metadata"]["status"] == "done"
    assert "They spoke of the **harbour**" in str(first["content"])
    assert "<script>" not in str(first["content"])
    assert "So it is." in str(second["content"])


@pytest.mark.parametrize(("lang", "line"), [("en", "It is &#60;Ann&#62;’s turn"), ("zh", "轮到 &#60;Ann&#62; 了")])
def test_where_a_group_waits_for_a_person_a_sentence_says_so(lang: str, line: str) -> None:
    events = [MessageStarted("<Ann>"), TextDelta(PENDING_USER_INPUT), RunFinished("complete")]
    reply = Reply(LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events, 1))
    turn = StoredMessage("m", "c", "q", "assistant", (), "r", "complete", 0.0)
    first = reply_entries(turn, reply, Words(lang), last=True)[0]
    shown = first["content"][0]["text"]
    assert line in shown
    assert "parlour" not in shown


@pytest.mark.parametrize(
    ("asked", "en", "zh"),
    [
        (ModelAsked("c", "answer", "m"), "Replying", "正在回答"),
        (ModelAsked("c", "answer", "m", 2400), "Reading 2,400 tokens", "正在阅读 2,400 词元"),
        (
            ModelAsked("c", "answer", "m", 2400, 1200),
            "Reading 1,200 of 2,400 tokens",
            "正在阅读：2,400 词元中的 1,200",
        ),
        (
            ModelAsked("c", "answer", "m", 2400, 1200, 35),
            "Reading 1,200 of 2,400 tokens, 35 tokens a second",
            "正在阅读：2,400 词元中的 1,200，每秒 35 词元",
        ),
    ],
)
def test_the_page_says_what_is_known_of_the_wait(asked: ModelAsked, en: str, zh: str) -> None:
    reply = Reply([LoggedEvent(1, 0.0, asked)])
    message = StoredMessage("m", "c", "q", "assistant", (), "r", "running", 0.0)
    for lang, said in (("en", en), ("zh", zh)):
        (entry,) = reply_entries(message, reply, Words(lang), last=True)
        assert f"{said}<" in str(entry)


def test_beside_words_the_icons_of_a_stopped_reply_stay_together() -> None:
    events = [MessageStarted(), TextDelta("So it"), RunFinished("stopped")]
    reply = Reply(LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events, 1))
    turn = StoredMessage("m", "c", "q", "assistant", (), "r", "stopped", 0.0)
    shown = "".join(str(entry["content"]) for entry in reply_entries(turn, reply, Words("en"), last=True))
    words, _, icons = shown.partition('<span class="p-icons">')
    assert "#do-continue-m" in words
    assert "#do-regenerate-m" in words
    together = icons.partition("</a></span>")[0]
    for act in ("copy", "rewrite", "fork", "speak", "inspect"):
        assert f"#do-{act}-m" in together


@pytest.mark.parametrize(("lang", "line"), [("en", "about 1 token a second"), ("zh", "每秒约 1 词元")])
def test_one_token_a_second_is_one(lang: str, line: str) -> None:
    reply = Reply()
    reply.speed = 1
    assert speed_said(reply, Words(lang)).endswith(line)
    reply.speed = 2
    assert "2" in speed_said(reply, Words(lang))
