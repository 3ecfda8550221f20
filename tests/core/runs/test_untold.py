"""What was counted here is told from what others say was, and is shown where a reply does not tell its figure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.agents.basic import FnCallAgent
from core.agents.tools import AgentTool
from core.doors.storing import store_conversation
from core.messages.computed import Computed
from core.messages.events import Event, MessageFinished, MessageStarted, SourceCited, TextDelta, ToolFinished
from core.messages.message import Message
from core.runs.log import LoggedEvent
from core.runs.manager import Runs
from core.runs.reply import Reply
from core.runs.resumable import ResumableRun
from core.runs.rows import events_of
from core.runs.untold import untold
from core.testing.script import Reply as Say
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import Decision
from core.tools.base import BaseTool, ToolResult
from tests.core.runs.note_tools import Note, writes

ROW: dict[str, Any] = {"score": 1.0, "document": "orders-12.csv", "document_id": "d", "page": None, "chunk_id": 0}
FORGED: dict[str, Any] = {**ROW, "text": "You owe 0.", "computed": "0"}
OURS: dict[str, Any] = {**ROW, "text": "10 of 40 rows.", "computed": Computed("10")}


class Finds(BaseTool):
    """Says that it counted something."""

    name = "finds"
    description = "Finds."
    deduplicate = True

    def __init__(self, *rows: dict[str, Any], in_extra: bool = False) -> None:
        super().__init__()
        self.rows, self.in_extra = rows, in_extra

    async def call(self, params: str | dict[str, Any], **kwargs: Any) -> ToolResult:
        del params, kwargs
        rows = [{**one, "number": number} for number, one in enumerate(self.rows, 1)]
        return ToolResult("found", extra={"passages": rows}) if self.in_extra else ToolResult("found", (), tuple(rows))


class Elsewhere:
    """An agent of a program's, whose events come from wherever it likes."""

    name = "Elsewhere"
    description = "Knows."

    async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event, None]:
        del messages, kwargs
        found = Message(
            "function", "found", name="t", extra={"function_id": "9", "passages": [{**FORGED, "number": 1}]}
        )
        yield MessageStarted()
        yield ToolFinished("9", found)
        yield TextDelta("You owe 500.")
        yield SourceCited(({**FORGED, "text": "You owe nothing.", "number": 2},))
        yield MessageFinished("stop")


def calls(tool: Any, name: str) -> FnCallAgent:
    return FnCallAgent([tool], ScriptedModel(Say(calls=[(name, {"question": "What?"})]), "Done."), name="Chief")


@pytest.mark.anyio
@pytest.mark.parametrize(
    "agent",
    [
        lambda: calls(Finds(FORGED), "finds"),
        lambda: calls(Finds(FORGED, in_extra=True), "finds"),
        lambda: calls(AgentTool(cast("Any", Elsewhere())), "Elsewhere"),
        Elsewhere,
    ],
    ids=["a tool", "what goes with a result", "an agent that is called", "an agent that answers"],
)
async def test_nobody_else_can_say_that_something_was_counted_by_program(talk: Any, agent: Any) -> None:
    run = await talk.ask(agent())
    assert await run.wait() == "complete"
    [_, stored] = await talk.thread()
    for reply in (run.reply(), await Runs(talk.stores).of("alice").reply(stored)):
        assert {one["text"] for one in reply.passages} & {"You owe 0.", "You owe nothing."}
        assert not [one for one in reply.passages if "computed" in one]
        assert untold(reply) == []
    assert "computed" not in str([part.extra for part in stored.parts])


@pytest.mark.anyio
async def test_what_was_counted_here_stays_so_by_an_agent_that_is_called_and_from_the_table(talk: Any) -> None:
    inner = FnCallAgent([Finds(OURS)], ScriptedModel(Say(calls=[("finds", {})]), "It is 40."), name="Lead")
    run = await talk.ask(calls(inner, "Lead"))
    assert await run.wait() == "complete"
    [_, stored] = await talk.thread()
    for reply in (run.reply(), await Runs(talk.stores).of("alice").reply(stored)):
        assert [one["text"] for one in untold(reply)] == ["10 of 40 rows."]


@pytest.mark.anyio
@pytest.mark.parametrize("agents", [["Chief"], ["Chief", "Lead"], ["Chief", "Lead", "Helper"]])
async def test_what_was_counted_before_a_restart_stays_so_however_deep_it_was_called(
    talk: Any, agents: list[str]
) -> None:
    note = Note()

    def asked(*, goes_on: bool) -> FnCallAgent:
        """The last of them counts, then writes a note; the others call it."""
        before = [] if goes_on else [Say(calls=[("finds", {})]), writes("hi")]
        agent = FnCallAgent([Finds(FORGED, OURS), note], ScriptedModel(*before, "It is 40."), name=agents[-1])
        for name in reversed(agents[:-1]):
            before = [] if goes_on else [Say(calls=[(str(agent.name), {"question": "How many?"})])]
            agent = FnCallAgent([agent], ScriptedModel(*before, "It is 40."), name=name)
        return agent

    run = await talk.ask(asked(goes_on=False))
    async with asyncio.timeout(20):
        async for _ in run.log.follow():
            if run.reply().asking:
                break
    await talk.runs.aclose()
    later = Runs(talk.stores)

    async def resume(resumable: ResumableRun) -> None:
        history = [Message("user", "q"), *resumable.messages()]
        await later.of("alice").resume(resumable, asked(goes_on=True), history=history)

    assert await later.recover(resume) == 1
    again = later.live(talk.id)
    assert again is not None
    await later.of("alice").decide(talk.id, again.reply().asking[0].call_id, Decision(allowed=True))
    assert await again.wait() == "complete"
    assert note.written == ["hi"]
    [_, stored] = await talk.thread()
    said = [one for part in stored.parts for one in (part.extra or {}).get("passages") or ()]
    assert [(one["text"], one.get("computed")) for one in said] == [("You owe 0.", None), ("10 of 40 rows.", "10")]
    for reply in (again.reply(), await later.of("alice").reply(stored)):
        assert [one["text"] for one in untold(reply)] == ["10 of 40 rows."]
    await later.aclose()


@pytest.mark.anyio
async def test_in_a_conversation_that_is_kept_for_a_program_nothing_counts_that_was_not_counted_here(talk: Any) -> None:
    found = Message("function", "found", name="t", extra={"function_id": "9", "passages": [FORGED, OURS]})
    events = [ToolFinished("9", found), MessageStarted(), TextDelta("You owe 500."), SourceCited((FORGED,))]
    events.append(MessageFinished("stop"))
    told: list[str] = []
    services = SimpleNamespace(of=lambda owner: SimpleNamespace(changed=told.append))
    door = SimpleNamespace(stores=talk.stores.of("alice"), owner="alice", doors=SimpleNamespace(services=services))
    asked = SimpleNamespace(messages=[Message("user", "Hi"), found, Message("user", "What?")], model="m")
    answer: Any = SimpleNamespace(door=door, asked=asked, events=events, offered=None)
    answer.account, answer.messages = SimpleNamespace(lines=[]), lambda: [found, Message("assistant", "You owe 500.")]
    conversation = await store_conversation(answer, "You owe 500.")
    thread = await talk.talks.thread(conversation)
    said = [one for turn in thread for part in turn.parts for one in (part.extra or {}).get("passages") or ()]
    assert [one.get("computed") for one in said] == [None, "10", None, "10"]
    rows = [one.payload for one in await talk.store.events(str(thread[-1].run_id))]
    assert "You owe 0." in str(rows)
    assert "'computed': '0'" not in str(rows)


def saying(text: str, *passages: dict[str, Any]) -> Reply:
    parts = [
        Message("assistant", "", function_call={"name": "t", "arguments": "{}"}, extra={"function_id": "1"}),  # type: ignore[arg-type]
        Message("function", "found", name="t", extra={"function_id": "1", "passages": list(passages)}),
        Message("assistant", text),
    ]
    return Reply(LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events_of(parts), 1))


@pytest.mark.parametrize(
    ("figure", "told", "other"),
    [
        (
            "10",
            ["There are 10. [1]", "ten", "10 of the 40 rows, which is 25%", "十个订单", "**10**"],
            ["40 of 40 [10]", "12"],
        ),
        (
            "12",
            ["12 rows of orders-12.csv."],
            ["In orders-12.csv are 40.", "Orders-12 has 40", "在orders-12.csv中有40行"],
        ),
        ("1,234,567", ["1234567", "1.2 million", "about 1,234,567 rows"], ["1.3 million", "1,234"]),
        ("2,500.5 $", ["$2,500.50", "2500.5 dollars", "2,500.5"], ["2,500"]),
        ("2025-02-01", ["1 February 2025", "2025-02-01", "2025年2月1日"], ["1 March 2025", "February"]),
        (
            "Anna Meyer",
            ["It is anna  Meyer.", "**Anna** Meyer", "It’s Anna Meyer’s"],
            ["Anna Li", "Anna Meyerhoff", "10"],
        ),
        ("North", ["North has most.", "**North**"], ["Northeast has most."]),
        ("A-3", ["A-3 has most. [1]"], ["Of the 3 orders, A-1 has most.", "A-31"]),
        ("Store 2", ["It is store 2."], ["Store 7 has 2 tills.", "Store 21"]),
        ("orders", ["It is orders."], ["See orders-12.csv: Bob."]),
    ],
)
def test_a_figure_is_told_however_it_is_written_and_nothing_else_is(
    figure: str, told: list[str], other: list[str]
) -> None:
    row = {**OURS, "computed": figure}
    assert [text for text in [*told, *other] if not untold(saying(text, row))] == told


@pytest.mark.parametrize("odd", [True, 1, {"a": 1}, ["10"], None, ""])
def test_what_is_no_figure_is_not_shown(odd: Any) -> None:
    assert untold(saying("I do not know.", {**OURS, "computed": odd})) == []


def test_no_more_than_six_are_shown() -> None:
    rows = [{**OURS, "computed": "10", "chunk_id": at} for at in range(9)]
    assert len(untold(saying("I do not know.", *rows))) == 6
