"""A conversation handed out whole: every branch, what was called and found, without keys."""

from __future__ import annotations

import asyncio
import base64
import json
import queue
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from core.errors import NotFoundError, UnsupportedFormatError
from core.export import exporting
from core.export.exporting import Exporting
from core.export.schema import ConversationExport, read_export
from core.messages.content import ContentItem
from core.messages.events import CallDelta, CallStarted, MessageFinished, MessageStarted, TextDelta, ToolFinished
from core.messages.message import Message, Usage
from core.runs.lease import this_worker
from core.runs.log import LoggedEvent, NestedEvent
from core.runs.manager import Runs
from core.runs.rows import rows_of
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.documents import DocumentStore
from core.storage.files import FileStore
from core.storage.runs import RunStore
from tests.core.stores import stores_over

pytestmark = pytest.mark.anyio

KEY = "correct-horse-battery"  # which looks like no key: it is known to be one
PASSAGE: dict[str, Any] = {
    "text": "Damage by water is covered.",
    "score": 1.0,
    "document": "policy.pdf",
    "document_id": "d1",
    "page": 4,
    "rectangles": [],
    "heading": "Cover",
    "chunk_id": 7,
}


@dataclass
class Room:
    """Alice's conversation, and what exports it."""

    talks: Callable[[str], ConversationStore]
    store: Callable[[str], RunStore]
    runs: Runs
    files: Callable[[str], FileStore]
    documents: Callable[[str], DocumentStore]
    exporting: Callable[[str], Exporting]
    id: str

    async def text(self, form: Any = "json", lang: Any = "en") -> str:
        exported = await self.exporting("alice").export(self.id, form, lang)
        return "".join([piece async for piece in exported.pieces])

    async def whole(self) -> ConversationExport:
        return read_export(await self.text())

    async def replied(self, question: Sequence[Message], parts: Sequence[Message], parent: str | None = None) -> str:
        """A question and its whole reply; the id of the reply."""
        record, place = await self.store("alice").create(self.id, user=question, parent_id=parent, model="scripted")
        from core.runs.steps import thoughts_of

        steps = thoughts_of(record, parts, [])
        usage = Usage(prompt_tokens=3, completion_tokens=4, total_tokens=7)
        await self.store("alice").finish(record.id, "complete", epoch=1, parts=parts, usage=usage, thoughts=steps)
        return place.id


@pytest.fixture
async def room(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Room]:
    database = await Database.open(tmp_path / "parlour.db")
    stores = stores_over(database)
    talks, store = partial(ConversationStore, database), stores.runs.of
    runs = Runs(stores)

    async def secrets() -> list[str]:
        return [KEY]

    files, documents = stores.files.of, partial(DocumentStore, database)
    conversation = await talks("alice").create("A trip")

    def exporting(owner: str) -> Exporting:
        return Exporting(stores.of(owner).whole, runs.of(owner), secrets)

    yield Room(talks, store, runs, files, documents, exporting, conversation.id)
    await runs.aclose()
    await database.aclose()


def called(arguments: dict[str, Any], result: str, name: str = "web", **extra: Any) -> list[Message]:
    tied = {"function_id": "c1"}
    call: Any = {"name": name, "arguments": json.dumps(arguments)}
    return [
        Message("assistant", "", reasoning_content="I look it up."),
        Message("assistant", "", function_call=call, extra=tied),
        Message("function", result, name=name, extra={**tied, **extra}),
    ]


async def test_all_branches_of_a_conversation_are_in_it_with_what_was_called_thought_and_cited(room: Room) -> None:
    found = called({"query": "water"}, "[1] Damage by water", "ask_documents", passages=[PASSAGE])
    first = await room.replied([Message("user", "Covered?")], [*found, Message("assistant", "Yes, it is [1].")])
    await room.replied([Message("user", "And fire?")], [Message("assistant", "No.")], parent=first)
    await room.replied([Message("user", "And wind?")], [Message("assistant", "Perhaps.")], parent=first)
    whole = await room.whole()
    assert whole.conversation.title == "A trip"
    assert [(turn.role, turn.shown) for turn in whole.turns] == [
        ("user", True),
        ("assistant", True),
        ("user", False),
        ("assistant", False),
        ("user", True),
        ("assistant", True),
    ]
    reply = whole.turns[1]
    [call], [cited] = reply.calls, reply.citations
    assert (call.name, call.arguments, call.state) == ("ask_documents", {"query": "water"}, "done")
    assert call.result is not None
    assert reply.messages[call.message].function_call
    assert (reply.messages[call.result].extra or {})["passages"] == [1]
    assert (cited.number, cited.document, cited.page, cited.text, cited.cited) == (
        1,
        "policy.pdf",
        4,
        PASSAGE["text"],
        True,
    )
    assert [(one.position, one.tool_name, one.tool_input) for one in reply.thoughts] == [
        (1, "ask_documents", {"query": "water"}),
        (2, None, None),
    ]
    assert reply.run is not None
    assert (reply.run.usage, reply.run.model) == (
        Usage(prompt_tokens=3, completion_tokens=4, total_tokens=7),
        "scripted",
    )
    raw = json.loads(await room.text())
    assert raw["turns"][0]["created_at"].endswith("Z")
    assert not raw["running"]


async def test_a_reply_that_was_stored_under_another_name_of_a_file_is_exported_under_the_one_it_has_here(
    room: Room,
) -> None:
    kept = await room.files("alice").put("mine.pdf", b"%PDF-1.7 ...")
    record = await room.documents("alice").add(room.id, kept.id, "mine.pdf")
    await room.documents("alice").update(record.id, status="ready", library_id="d1")
    found = called({"query": "water"}, "[1] Damage by water", "ask_documents", passages=[PASSAGE])
    await room.replied([Message("user", "Covered?")], [*found, Message("assistant", "Yes, it is [1].")])
    assert [one.document for one in (await room.whole()).turns[1].citations] == ["mine.pdf"]
    for form in ("json", "md", "html"):
        text = await room.text(form)
        assert "mine.pdf" in text, form
        assert "policy.pdf" not in text, form


async def test_no_key_leaves_the_house(room: Room) -> None:
    env = {"mcpServers": {"mail": {"command": "mail", "env": {"MAIL_TOKEN": "swordfish-in-env"}}}}
    planted = [
        *called(
            {"url": "https://u:secretpw1@example.org/x", "headers": {"Authorization": "Bearer abcdef"}, "note": KEY},
            f'api_key="swordfish" and {KEY}',
            found={"password": "swordfish-in-extra", "max_tokens": 5},
        ),
        Message("assistant", f"Your key is sk-live-abcdefgh12345678 or {KEY}."),
    ]
    await room.replied([Message("user", f"password: hunter2x {json.dumps(env)} {KEY}")], planted)
    await room.talks("alice").rename(room.id, f"About {KEY}")
    for form in ("json", "md"):
        exported = await room.exporting("alice").export(room.id, form)
        text = exported.name + "".join([piece async for piece in exported.pieces])
        for secret in (KEY, "swordfish", "hunter2x", "secretpw1", "abcdef", "sk-live"):
            assert secret not in text, f"{secret} in {form}"
    reply = (await room.whole()).turns[1]
    assert reply.calls[0].arguments["url"] == "https://…@example.org/x"
    assert (reply.messages[2].extra or {})["found"]["max_tokens"] == 5


async def test_words_that_only_resemble_a_key_stay(room: Room) -> None:
    said = "The secret is patience; a token: one piece of text. Basic training, skateboarding-lessons, sklearn."
    await room.replied([Message("user", said)], [Message("assistant", said)])
    whole = await room.whole()
    assert [turn.messages[0].content for turn in whole.turns] == [said, said]


async def test_files_are_named_and_their_bytes_stay(room: Room) -> None:
    picture = base64.b64encode(b"\x89PNG" + b"x" * 500).decode()
    kept = await room.files("alice").put("plan.txt", b"One two three")
    items = [ContentItem(text="Look"), ContentItem(file=kept.address)]
    drawn = [ContentItem(image=f"data:image/png;base64,{picture}")]
    await room.replied([Message("user", items)], [Message("assistant", drawn)])
    await room.documents("alice").add(room.id, kept.id, "plan.txt")
    whole = await room.whole()
    stored, inside = whole.files
    assert (stored.name, stored.size, stored.sha256) == ("plan.txt", 13, sha256(b"One two three").hexdigest())
    assert (inside.media_type, inside.size) == ("image/png", 504)
    assert whole.turns[1].messages[0].items[0].value == inside.id
    assert whole.documents[0].file_id == stored.id
    assert picture[:40] not in await room.text()
    read = await room.text("md")
    assert f"plan.txt (text/plain, 13 bytes, SHA-256 {stored.sha256})" in read
    assert inside.sha256 in read


async def test_a_running_reply_is_there_as_far_as_it_got_and_says_so(room: Room) -> None:
    import anyio

    class Endless:
        async def stream(self, messages: list[Message], **kwargs: Any) -> Any:
            yield MessageStarted()
            yield TextDelta("So far, ")
            await anyio.sleep_forever()

    agent: Any = Endless()
    run = await room.runs.of("alice").start(
        room.id, agent, user=Message("user", "Go."), parent_id=None, history=[Message("user", "Go.")]
    )
    with anyio.fail_after(10):
        async for logged in run.log.follow():
            if isinstance(logged.event, TextDelta):
                break
    whole = await room.whole()
    assert whole.running
    assert (whole.turns[1].status, whole.turns[1].messages[0].content) == ("running", "So far, ")
    assert "So far, \n\n*This reply was still being written" in await room.text("md")
    assert "*导出时，这条回复还在生成中。*" in await room.text("md", "zh")


async def test_a_reply_whose_process_was_killed_is_there_as_far_as_it_got_and_says_that_it_was_interrupted(
    room: Room,
) -> None:
    asked = [Message("user", "Go.")]
    record, _ = await room.store("alice").create(
        room.id, user=asked, parent_id=None, worker=f"{this_worker().rpartition('/')[0]}/999999999@1"
    )
    events = (MessageStarted(), TextDelta("So far, "))
    rows = rows_of(LoggedEvent(seq, 0.1, event) for seq, event in enumerate(events, start=1))
    await room.store("alice").append(record.id, rows, epoch=1)
    whole = await room.whole()
    assert not whole.running
    assert (whole.turns[1].status, whole.turns[1].messages[0].content) == ("interrupted", "So far, ")
    assert whole.turns[1].run is not None
    assert whole.turns[1].run.status == "interrupted"
    assert "So far, \n\n*This reply was interrupted here.*" in await room.text("md")


async def test_a_reply_that_another_container_is_writing_is_not_called_interrupted(room: Room) -> None:
    asked = [Message("user", "Go.")]
    await room.store("alice").create(room.id, user=asked, parent_id=None, worker="another-machine/1@1")
    assert (await room.whole()).turns[1].status == "running"


async def test_what_an_agent_did_that_was_called_stands_under_its_call(room: Room) -> None:
    record, _ = await room.store("alice").create(room.id, user=[Message("user", "Ask her.")], parent_id=None)
    inside = [
        NestedEvent(("c1",), MessageStarted("Ada")),
        NestedEvent(("c1",), TextDelta(f"I count, with {KEY}.")),
        NestedEvent(("c1",), CallStarted("c2", "calculator")),
        NestedEvent(("c1",), CallDelta("c2", "{}")),
        NestedEvent(("c1",), MessageFinished("calls")),
        NestedEvent(
            ("c1",), ToolFinished("c2", Message("function", "42", name="calculator", extra={"function_id": "c2"}))
        ),
    ]
    rows = rows_of(LoggedEvent(seq, 0.1, event) for seq, event in enumerate(inside, start=1))
    await room.store("alice").finish(
        record.id, "complete", epoch=1, parts=called({"task": "count"}, "42", "ada"), rows=rows
    )
    reply = (await room.whole()).turns[1]
    [inner] = reply.inner
    assert inner.calls == ("c1",)
    assert [one.role for one in inner.messages] == ["assistant", "assistant", "function"]
    read = await room.text("md")
    assert read.index("ada · done") < read.index("**Ada**\n\nI count, with ….") < read.index("<summary>calculator</")
    assert KEY not in await room.text() + read


async def test_somebody_elses_conversation_does_not_exist(room: Room) -> None:
    with pytest.raises(NotFoundError):
        await room.exporting("bob").export(room.id, "json")


async def test_a_long_conversation_comes_in_pieces(room: Room) -> None:
    parent = None
    for number in range(130):
        parent = (await room.talks("alice").add_message(room.id, "user", [Message("user", f"{number}.")], parent)).id
    exported = await room.exporting("alice").export(room.id, "json")
    pieces = [piece async for piece in exported.pieces]
    assert len(pieces) == 4
    assert [turn.messages[0].content for turn in read_export("".join(pieces)).turns] == [f"{n}." for n in range(130)]


async def test_turns_whose_parents_are_damaged_are_in_it_and_hold_nothing_up(room: Room, tmp_path: Path) -> None:
    first = await room.replied([Message("user", "One?")], [Message("assistant", "Yes.")])
    for parent in (first, "gone"):  # in a circle, and nowhere
        with closing(sqlite3.connect(tmp_path / "parlour.db")) as connection, connection:
            connection.execute("UPDATE messages SET parent_id = ? WHERE role = 'user'", (parent,))
        assert [turn.messages[0].content for turn in (await room.whole()).turns] == ["One?", "Yes."]
        assert "Yes." in await room.text("md")


async def test_an_empty_conversation_is_a_file_too(room: Room) -> None:
    assert (await room.whole()).turns == ()
    assert (await room.text("md")).startswith("# A trip\n")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "other"}', '{"format": "parlour.conversation"}'])
def test_what_is_no_export_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedFormatError):
        read_export(text)


def test_an_export_of_a_newer_parlour_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    path.write_text('{"format": "parlour.conversation", "version": 2}', encoding="utf-8")
    with pytest.raises(UnsupportedFormatError, match="newer Parlour"):
        read_export(path)


async def test_two_are_printed_at_once_and_the_others_wait(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def print_slowly(html: str, style: str) -> bytes:
        return b"%PDF" if ended.wait(30) else b""

    monkeypatch.setattr(exporting, "as_pdf", print_slowly)
    waiting: queue.SimpleQueue[Any] = vars(vars(exporting)["_PRINTERS"])["_work_queue"]
    made = asyncio.gather(*(room.exporting("alice").printed(room.id) for _ in range(6)))
    async with asyncio.timeout(30):
        while waiting.qsize() < 4:
            await asyncio.sleep(0)
    ended.set()
    assert [data for _, data in await made] == [b"%PDF"] * 6
