"""What is offered under a reply that failed."""

from __future__ import annotations

import pytest

from core.runs.log import LoggedEvent, RunFinished
from core.runs.reply import Reply
from core.storage.base import StoredMessage
from webui.render.reply import reply_entries
from webui.words import Words


def offered(key: str) -> str:
    reply = Reply()
    error = {"key": key, "message": "", "hint": "", "details": {"name": "a.pdf"}}
    reply.apply(LoggedEvent(1, 0.0, RunFinished("error", error)))
    turn = StoredMessage("m", "c", "q", "assistant", (), "r", "error", 0.0)
    return "".join(str(entry["content"]) for entry in reply_entries(turn, reply, Words("en"), last=True))


@pytest.mark.parametrize("key", ["document_empty", "document_locked", "document_unsupported", "document_broken"])
def test_a_file_that_cannot_be_read_is_not_read_again(key: str) -> None:
    shown = offered(key)
    assert "p-what" in shown
    assert "p-continue" not in shown
    assert "p-regenerate" not in shown


@pytest.mark.parametrize("key", ["model_unreachable", "document_too_slow"])
def test_what_may_go_better_next_time_can_be_tried_again(key: str) -> None:
    assert "p-regenerate" in offered(key)


def test_what_the_model_settings_can_mend_leads_there() -> None:
    assert "#do-models" in offered("model_key_wrong")
    assert "#do-models" not in offered("model_overloaded")


def test_a_reply_says_which_model_wrote_it() -> None:
    reply = Reply()
    reply.model = "Small 0.5B, built in"
    reply.apply(LoggedEvent(1, 0.0, RunFinished("complete")))
    turn = StoredMessage("m", "c", "q", "assistant", (), "r", "complete", 0.0)
    shown = "".join(str(entry["content"]) for entry in reply_entries(turn, reply, Words("zh"), last=True))
    assert '<span class="p-by">' in shown
    assert "内置" in shown
