"""What of a reply that was left stays, what is written anew, and what is never begun again."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import ParlourError
from core.messages.events import (
    CallDelta,
    CallStarted,
    MessageFinished,
    MessageStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.message import Message, Usage
from core.runs.log import (
    ApprovalAsked,
    ApprovalGiven,
    AskedFor,
    LoggedEvent,
    ModelAsked,
    ModelCalled,
    StepRecorded,
    TakenOver,
)
from core.runs.resumable import ResumableRun
from core.storage.base import QUEUED, WAITING, Lease, RunRecord

RECORD = RunRecord("run", "alice", "talk", "message", "running", None, "", None, 0.0, None)
DEAD = Lease("another/1@1", 1.0)
COST = Usage(prompt_tokens=5, completion_tokens=2, total_tokens=7)
CALL = [MessageStarted(), CallStarted("c", "look"), CallDelta("c", "{}"), MessageFinished("calls", COST)]
FOUND = [ToolStarted("c"), ToolFinished("c", Message("function", "found", name="look", extra={"function_id": "c"}))]
ASKED = ApprovalAsked("c", "look", {}, "writes", {}, [], 2e9)


def left(*events: Any, lease: Lease = DEAD) -> ResumableRun | None:
    logged = [LoggedEvent(seq, 0.1 * seq, event) for seq, event in enumerate(events, start=1)]
    return ResumableRun.of(RECORD, lease, logged, shared=True)


def kinds(run: ResumableRun | None) -> list[str]:
    assert run is not None
    assert [one.seq for one in run.logged] == list(range(1, len(run.logged) + 1))
    return [one.event.kind for one in run.logged]


def test_what_comes_after_the_last_result_is_written_anew_and_the_account_stays() -> None:
    asked = ModelAsked("m", "answer", "model")
    run = left(*CALL, *FOUND, StepRecorded(1, "c"), asked, MessageStarted(), TextDelta("It is"))
    before = [one.kind for one in (*CALL, *FOUND)]
    assert kinds(run) == [*before, "step_recorded", "model_asked", "taken_over", "model_called"]
    assert run is not None
    assert (run.may_have_run, run.begun, run.whole) == (frozenset(), True, False)
    lost = run.logged[-1].event
    assert isinstance(lost, ModelCalled)
    assert (lost.call_id, lost.outcome, lost.usage) == ("m", "interrupted", None)


def test_a_reply_of_which_nothing_was_written_begins_from_its_question() -> None:
    assert kinds(left()) == ["taken_over"]
    run = left(MessageStarted(), TextDelta("It"), MessageStarted(), CallStarted("c", "look"), CallDelta("c", '{"a'))
    assert kinds(run) == ["taken_over"]
    assert run is not None
    assert run.may_have_run is None


def test_a_text_that_was_whole_is_kept_and_where_it_must_be_said_anew_its_cost_is() -> None:
    run = left(MessageStarted(), TextDelta("All."), MessageFinished("stop", COST))
    assert run is not None
    assert run.whole
    assert [one.get_text_content() for one in run.messages()] == ["All."]
    again = run.anew()
    assert (again.whole, again.messages(), kinds(again)) == (False, [], ["message_finished", "taken_over"])
    assert left(*CALL, *FOUND, MessageStarted(), MessageFinished("stop")) is not None
    silent = left(MessageStarted(), MessageFinished("stop", COST))
    assert silent is not None
    assert not silent.whole  # a message that says nothing is no answer


@pytest.mark.parametrize("event", [ToolStarted("x"), ASKED, ApprovalGiven("x", True, None, "user")])
def test_where_something_may_have_been_called_that_is_not_known_it_goes_on_no_more(event: Any) -> None:
    assert left(MessageStarted(), TextDelta("I look."), event) is None
    assert left(*CALL, *FOUND, event) is None


def test_only_processes_that_died_at_work_count_and_the_third_is_the_last() -> None:
    begun = (MessageStarted(), TextDelta("It"))
    assert kinds(left(TakenOver(), *begun)) == ["taken_over", "taken_over"]
    for events in ((TakenOver(), TakenOver(), *begun), (*CALL, TakenOver(), TakenOver())):
        with pytest.raises(ParlourError) as refused:
            left(*events)
        assert refused.value.words_key == "taken_over"
    waits = (TakenOver(), TakenOver(), *CALL, ASKED)
    assert kinds(left(*waits)).count("taken_over") == 2  # it was not what ended the process
    for lease in (Lease("another/1@1", None), Lease(WAITING, 1.0)):  # given up, or held by nobody
        assert kinds(left(TakenOver(), TakenOver(), *begun, lease=lease)).count("taken_over") == 2


def test_with_one_data_folder_a_text_that_broke_off_does_not_go_on_by_itself() -> None:
    logged = [LoggedEvent(1, 0.0, MessageStarted()), LoggedEvent(2, 0.1, TextDelta("It"))]
    assert ResumableRun.of(RECORD, DEAD, logged) is None
    called = [LoggedEvent(seq, 0.0, event) for seq, event in enumerate(CALL, start=1)]
    assert kinds(ResumableRun.of(RECORD, DEAD, called)) == [one.kind for one in CALL]


def test_what_waits_for_a_process_begins_as_it_was_asked_for() -> None:
    waits = Lease(QUEUED, 0.0)
    run = left(AskedFor("zh", {}), lease=waits)
    assert run is not None
    assert (run.may_have_run, run.asked_for, run.messages()) == (None, AskedFor("zh", {}), [])
    again = left(AskedFor("en", {}, goes_on=True), *CALL, lease=waits)
    assert again is not None
    assert again.may_have_run == frozenset()  # the call that is to be made again was not made
    assert "taken_over" not in kinds(again)


def test_restarts_while_an_agent_waits_for_its_user_do_not_count_as_tries_of_its_call() -> None:
    asked = ApprovalAsked("c", "write", {}, "writes", {}, [], 2e9, within=["d"])
    waited = [*CALL, ToolStarted("c"), asked, ToolStarted("c"), ToolStarted("c")]
    agreed = [*waited, ApprovalGiven("c", True, None, "user")]
    for events in (waited, agreed, [*agreed, ToolStarted("c")]):
        assert "tool_finished" not in kinds(left(*events))
    assert "tool_finished" in kinds(left(*agreed, ToolStarted("c"), ToolStarted("c")))
