"""Sessions: a conversation goes on from question to question, in a file also after the end of the process."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from core import Confirm, Guard, Policy, Reply, handoff, tool
from core.agents.basic import BasicAgent, FnCallAgent
from core.errors import ConflictError, LimitReachedError, ParlourError, SettingsError
from core.storage.database import Database
from core.testing.script import Reply as Said
from core.testing.scripted_model import ScriptedModel
from core.tools.run_state import Limits

ROOT = Path(__file__).resolve().parents[3]
RAN: list[int] = []


@tool
def refund(order: int) -> str:
    """Give the money back."""
    RAN.append(order)
    return "done"


refund.writes = True
CALL = Said(calls=[("refund", {"order": 17})])


def clerk(*turns: Any) -> FnCallAgent:
    return FnCallAgent([refund], ScriptedModel(*turns))


def test_each_question_goes_on_from_the_one_before():
    model = ScriptedModel("Hello Ann.", "You are Ann.")
    with BasicAgent(llm=model).session() as session:
        session.ask("I am Ann.")
        assert session.ask("Who am I?").text == "You are Ann."
        assert len(session.messages) == 4
    assert [one.content for one in model.requests[1].messages] == ["I am Ann.", "Hello Ann.", "Who am I?"]


@pytest.mark.anyio
async def test_a_session_in_a_file_goes_on_in_the_next_program(tmp_path: Path):
    store = tmp_path / "talks.db"
    async with BasicAgent(llm=ScriptedModel("Hello Ann.")).session(store, "ann") as session:
        first = await session.aask("I am Ann.")
        assert (first.text, first.usage.total_tokens > 0) == ("Hello Ann.", True)
    model = ScriptedModel("3", "4")
    async with BasicAgent(llm=model).session(str(store), "ann") as session:
        reply = await session.aask("How old am I?", output_type=int)
        assert (reply.output, reply.output + 1, len(session.messages)) == (3, 4, 4)
    async with BasicAgent(llm=model).session(store, "ben") as session:
        assert session.messages == []
        assert [event.kind async for event in session.events("Hello?")][-1] == "message_finished"


def test_a_call_waits_for_its_decision_in_another_program(tmp_path: Path):
    store = tmp_path / "talks.db"
    RAN.clear()
    with clerk(CALL).session(store, approval=Policy()) as session:
        reply = session.ask("Refund order 17.")
        assert (reply.stop_reason, reply.waiting[0].arguments) == ("approval", {"order": 17})
        with pytest.raises(ConflictError, match=r"session\.decide"):
            session.ask("And now?")
    with clerk("It is refunded.").session(store, approval=Policy()) as session:
        assert not RAN
        session.decide(session.waiting[0].call_id, True, {"order": 18})
        reply = session.resume()
        assert (reply.text, reply.calls[0].result, RAN) == (
            "It is refunded.",
            '(The user changed the arguments to {"order": 18}.)\ndone',
            [18],
        )
        assert (reply.question, len(reply.asked)) == ("Refund order 17.", 1)
        with pytest.raises(ConflictError, match="waits for a decision"):
            session.decide("call_1", True)
        with pytest.raises(SettingsError, match="nothing to resume"):
            session.resume()


def test_who_is_there_decides_at_once(tmp_path: Path):
    RAN.clear()
    with clerk(CALL, "No.").session(tmp_path / "talks.db", approval=lambda asking: False) as session:
        reply = session.ask("Refund order 17.")
    assert (reply.text, RAN, reply.calls[0].failed) == ("No.", [], "refused")


@pytest.mark.parametrize("agreed", [True, False])
def test_what_a_guard_wants_to_know_waits_for_somebody_in_a_file(tmp_path: Path, agreed: bool):
    agent = BasicAgent(llm=ScriptedModel("Hello."))
    agent.input_guard(lambda text: Confirm("answer it", "Nobody agreed."))
    with agent.session(tmp_path / "talks.db") as session:
        asked = session.ask("Hello?")
        assert (asked.text, asked.stop_reason) == ("", "approval")
        session.decide(session.waiting[0].call_id, agreed)
        assert session.resume().text == ("Hello." if agreed else "Nobody agreed.")


@pytest.mark.parametrize("agreed", [True, False])
def test_what_a_guard_wants_to_know_is_answered_in_another_program(tmp_path: Path, agreed: bool):
    def guarded(*turns: Any) -> BasicAgent:
        agent = BasicAgent(llm=ScriptedModel(*turns))
        agent.input_guard(lambda text: Confirm("answer it", "Nobody agreed."))
        return agent

    with guarded("never said").session(tmp_path / "talks.db") as session:
        assert session.ask("Hello?").stop_reason == "approval"
    with guarded("Hello.").session(tmp_path / "talks.db") as session:
        (asked,) = session.waiting
        assert "answer it" in str(asked.arguments)
        session.decide(asked.call_id, agreed)
        reply = session.resume()
        assert (reply.text, reply.stop_reason) == (
            "Hello." if agreed else "Nobody agreed.",
            "stop" if agreed else "guard",
        )
    with guarded("And again.").session(tmp_path / "talks.db") as session:
        assert session.ask("And now?").stop_reason == "approval"  # each question is asked about anew


@pytest.mark.parametrize("agreed", [True, False])
def test_a_call_of_who_took_over_waits_for_another_program(tmp_path: Path, agreed: bool):
    RAN.clear()

    def desk(*turns: Any) -> FnCallAgent:
        model = ScriptedModel(*turns)
        refunds = FnCallAgent([refund], model, name="refunds", description="Gives money back.")
        return FnCallAgent([handoff(refunds)], model, name="desk")

    over = Said(calls=[("transfer_to_refunds", {})])
    with desk(over, CALL).session(tmp_path / "talks.db", approval=Policy()) as session:
        assert session.ask("My money back.").stop_reason == "approval"
    with desk("It is done.").session(tmp_path / "talks.db", approval=Policy()) as session:
        (asked,) = session.waiting
        assert (asked.name, asked.arguments) == ("refund", {"order": 17})
        session.decide(asked.call_id, agreed)
        reply = session.resume()
        assert (reply.text, reply.messages[-1].name) == ("It is done.", "refunds")
        assert [one.name for one in reply.calls] == ["transfer_to_refunds", "refund"]
    assert ([17] if agreed else []) == RAN


def test_the_calls_of_an_agent_that_is_a_tool_wait_one_after_the_other(tmp_path: Path):
    RAN.clear()
    asks = Said(calls=[("refunds", {"question": "Orders 17 and 18."})])
    two = Said(calls=[("refund", {"order": 17}), ("refund", {"order": 18})])
    model = ScriptedModel(asks, two, "Done.", "Both are done.")
    refunds = FnCallAgent([refund], model, name="refunds", description="Gives money back.")
    desk = FnCallAgent([refunds], model, name="desk")
    with desk.session(tmp_path / "talks.db", approval=Policy()) as session:
        reply = session.ask("My money back, twice.")
        for order in (17, 18):
            assert reply.stop_reason == "approval"
            (asked,) = session.waiting
            assert (asked.name, asked.arguments) == ("refund", {"order": order})
            session.decide(asked.call_id, True)
            reply = session.resume()
        assert (reply.text, RAN) == ("Both are done.", [17, 18])


@pytest.mark.parametrize("agreed", [(True, True), (True, False), (False, True)])
def test_an_agent_that_is_a_tool_goes_on_in_another_program_and_nothing_is_done_twice(
    tmp_path: Path, agreed: tuple[bool, bool]
):
    RAN.clear()
    asks = Said(calls=[("refunds", {"question": "Orders 17 and 18."})])
    two = Said(calls=[("refund", {"order": 17}), ("refund", {"order": 18})])

    def desk(*turns: Any) -> FnCallAgent:
        model = ScriptedModel(*turns)
        refunds = FnCallAgent([refund], model, name="refunds", description="Gives money back.")
        return FnCallAgent([refunds], model, name="desk")

    with desk(asks, two).session(tmp_path / "talks.db", approval=Policy()) as session:
        assert session.ask("My money back, twice.").stop_reason == "approval"
    with desk().session(tmp_path / "talks.db", approval=Policy()) as session:
        (asked,) = session.waiting
        assert asked.arguments == {"order": 17}
        session.decide(asked.call_id, agreed[0])
        assert session.resume().stop_reason == "approval"
    with desk("Done.", "Both are done.").session(tmp_path / "talks.db", approval=Policy()) as session:
        (asked,) = session.waiting
        assert asked.arguments == {"order": 18}
        session.decide(asked.call_id, agreed[1])
        assert session.resume().text == "Both are done."
    assert [order for order, is_yes in zip((17, 18), agreed, strict=True) if is_yes] == RAN


DIES_INSIDE = """
import os, sys
from core import FnCallAgent, tool
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

@tool
def refund(order: int) -> str:
    "Give money back."
    with open(sys.argv[2], "a") as file:
        file.write(f"{order} ")
    if order == 18:
        os._exit(9)
    return "Refunded."

refund.writes, refund.idempotent = True, False
calls = [Reply(calls=[("refund", {"order": one})]) for one in (17, 18)]
model = ScriptedModel(*calls[int(sys.argv[3]):], "Done.")
refunds = FnCallAgent([refund], model, name="refunds", description="Refunds.")
outer = [Reply(calls=[("refunds", {"question": "17 and 18."})])]
desk = FnCallAgent([refunds], ScriptedModel(*outer[int(sys.argv[3]):], "Both are done."), name="desk")
with desk.session(sys.argv[1]) as session:
    print((session.resume() if int(sys.argv[3]) else session.ask("My money back.")).text)
"""


def test_after_a_crash_inside_a_call_with_effects_of_an_agent_that_is_a_tool_none_is_made_twice(tmp_path: Path):
    def run(times: int) -> subprocess.CompletedProcess[str]:
        given = [sys.executable, "-c", DIES_INSIDE, str(tmp_path / "talks.db"), str(tmp_path / "ran"), str(times)]
        return subprocess.run(given, cwd=ROOT, check=False, capture_output=True, text=True)

    assert run(0).returncode == 9
    again = run(2)
    assert again.stdout.strip() == "Both are done.", again.stderr
    assert (tmp_path / "ran").read_text() == "17 18 "


CRASHES = """
import os, sys
from core import BasicAgent
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

def dies(request):
    os._exit(9)

agent = BasicAgent(llm=ScriptedModel("Hello.", dies))
with agent.session(sys.argv[1]) as session:
    session.ask("Hello?")
    session.ask("Still there?")
"""


def test_what_a_crash_broke_off_is_answered_after_it(tmp_path: Path):
    store = tmp_path / "talks.db"
    died = subprocess.run([sys.executable, "-c", CRASHES, str(store)], cwd=ROOT, check=False)
    assert died.returncode == 9
    with BasicAgent(llm=ScriptedModel("Yes.")).session(store) as session:
        reply: Reply[Any] = session.resume()
        assert (reply.text, reply.question) == ("Yes.", "Still there?")
        assert [one.content for one in session.messages] == ["Hello?", "Hello.", "Still there?", "Yes."]


@pytest.mark.anyio
async def test_who_leaves_a_reply_early_can_ask_again(tmp_path: Path):
    agent = BasicAgent(llm=ScriptedModel("One two three.", Said("Slow.", delay=30), "Yes."))
    async with agent.session(tmp_path / "talks.db") as session:
        events = session.events("Count.")
        async for _ in events:
            break
        await events.aclose()
        asked = asyncio.create_task(session.aask("Slowly."))
        await asyncio.sleep(0.5)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        assert (await session.aask("Still there?")).text == "Yes."


def test_a_function_that_cannot_decide_leaves_the_session_usable(tmp_path: Path):
    def fails(asking: Any) -> bool:
        raise ValueError("nobody is there")

    with clerk(CALL, "Yes.").session(tmp_path / "talks.db", approval=fails) as session:
        with pytest.raises(ParlourError, match="nobody is there"):
            session.ask("Refund order 17.")
        assert session.ask("Still there?").text == "Yes."


def test_calls_that_were_decided_are_not_asked_about_again(tmp_path: Path):
    RAN.clear()
    store, asked = tmp_path / "talks.db", list[str]()
    with clerk(CALL).session(store, approval=Policy()) as session:
        session.ask("Refund order 17.")
    with clerk("Done.").session(store, approval=lambda asking: not asked.append(asking.call_id)) as session:
        session.decide(session.waiting[0].call_id, True)
        assert session.resume().text == "Done."
    assert (asked, RAN) == ([], [17])


DIES_IN_A_CALL = """
import os, sys
from core import FnCallAgent, tool
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

@tool
def refund(order: int) -> str:
    "Give the money back."
    os._exit(9)

with FnCallAgent([refund], ScriptedModel(Reply(calls=[("refund", {"order": 17})]))).session(sys.argv[1]) as session:
    session.ask("Refund order 17.")
"""


def test_after_a_crash_in_a_call_on_a_machine_that_is_gone_another_question_can_be_asked(tmp_path: Path):
    store = tmp_path / "talks.db"
    died = subprocess.run([sys.executable, "-c", DIES_IN_A_CALL, str(store)], cwd=ROOT, check=False)
    assert died.returncode == 9
    with closing(sqlite3.connect(store)) as file, file:
        file.execute("UPDATE runs SET worker = 'elsewhere/1@1', lease_until = lease_until + 900")
    with clerk("Yes.").session(store) as session:
        with pytest.raises(ConflictError, match="another process"):
            session.ask("Still there?")
        with closing(sqlite3.connect(store)) as file, file:
            file.execute("UPDATE runs SET lease_until = 1")
        assert session.ask("Still there?").text == "Yes."


@pytest.mark.anyio
async def test_a_file_is_opened_once_and_closed_where_opening_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    opened, closed = list[Database](), list[Database]()
    real_open, real_close = Database.open, Database.aclose

    async def opens(*given: Any, **more: Any) -> Database:
        opened.append(await real_open(*given, **more))
        return opened[-1]

    async def closes(self: Database) -> None:
        closed.append(self)
        await real_close(self)

    def breaks(stores: Any) -> None:
        raise OSError("The disk is gone.")

    monkeypatch.setattr(Database, "open", opens)
    monkeypatch.setattr(Database, "aclose", closes)
    session = BasicAgent(llm=ScriptedModel("Yes.")).session(tmp_path / "talks.db")
    with monkeypatch.context() as broken:
        broken.setattr("core.runs.stored_session.Runs", breaks)
        with pytest.raises(OSError, match="The disk is gone"):
            await session.aopen()
    assert (len(opened), closed) == (1, opened)
    await asyncio.gather(session.aopen(), session.aopen())
    await session.aclose()
    assert (len(opened), closed) == (2, opened)


def test_a_limit_ends_a_reply_of_a_file_as_any_other(tmp_path: Path):
    with clerk(CALL, "Done.").session(tmp_path / "talks.db") as session:
        with pytest.raises(LimitReachedError) as error:
            session.ask("Refund order 17.", limits=Limits(calls=1))
        assert error.value.reply.calls[0].result == "done"
        assert session.resume().text == "Done."


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"store": 3}, 'store must be the path of a file, not 3. Write session(store="talks.db"), or leave it out.'),
        ({"store": "t.db", "name": " "}, "name must be a text, not ' '. Write session(..., name=\"order 17\")."),
    ],
)
def test_what_is_no_place_for_a_session_is_refused(wrong: dict[str, Any], sentence: str):
    with pytest.raises(SettingsError) as error:
        BasicAgent(llm=ScriptedModel("Yes.")).session(**wrong)
    assert str(error.value) == sentence


def test_nobody_is_asked_in_vain(tmp_path: Path):
    class Own(Guard):
        """Decides in its own way."""

    with pytest.raises(SettingsError, match=r"cannot be Own\. Give a Policy"):
        clerk("Yes.").session(tmp_path / "talks.db", approval=Own(Policy()))
    with clerk("Yes.").session(tmp_path / "talks.db", approval=Guard(Policy())) as session:
        with pytest.raises(SettingsError, match="one approval for all its questions"):
            session.ask("Hello?", approval=Policy())
        assert session.ask("Hello?").text == "Yes."


def test_a_session_has_its_history():
    with pytest.raises(SettingsError, match=r"^A session has its history"):
        BasicAgent(llm=ScriptedModel("Yes.")).session().ask("Hello?", history=[])
