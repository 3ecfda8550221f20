"""The engine: questions with files, replies that wait, change, stop, go on and are deleted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Any, cast

import pytest

from core.engine import Engine
from core.errors import ConflictError, NotFoundError, ParlourError
from core.llm.request import ChatRequest
from core.messages.message import Message
from core.rag.parsers import ocr
from core.runs.resumable import ResumableRun
from core.runs.run import Run
from core.settings import Settings
from core.storage.base import Lease, RunRecord, StoredMessage
from core.testing.script import Reply as Say
from core.testing.scripted_model import ScriptedModel
from tests.core.reading.held_reading import index_of
from tests.core.talks import asked_here, talk_of, world_of
from tests.stored_files import stored

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 64
FACTS = b"# The tower\n\nThe tower of Brenn is 321 metres tall. It was built in 1889 of iron."


def opened(home: Path, model: ScriptedModel) -> Engine:
    return Engine(Settings.load(home=home), model=model)


@pytest.fixture
def model() -> ScriptedModel:
    """A model that repeats what it is asked."""
    return ScriptedModel()


@pytest.fixture
async def engine(tmp_path: Path, model: ScriptedModel, anyio_backend: str) -> AsyncIterator[Engine]:
    async with opened(tmp_path / "home", model) as running:
        yield running


async def asked(engine: Engine, text: str, talk_id: str = "", files: tuple[str, ...] = ()) -> list[StoredMessage]:
    """Ask, wait for the reply, and return the thread."""
    conversation_id = talk_id or (await engine.stores.of("alice").conversations.create()).id
    run = await talk_of(engine, "alice", conversation_id).ask(text, files)
    assert await run.wait() == "complete", run.error
    return await engine.stores.of("alice").conversations.thread(conversation_id)


async def read(engine: Engine, document_id: str) -> None:
    """Wait until a document is no longer being read."""
    change = asyncio.Event()
    leave = engine.on_change(lambda _owner, _talk: change.set())
    async with asyncio.timeout(180):
        while (await engine.stores.of("alice").documents.get(document_id)).status == "reading":
            await change.wait()
            change.clear()
    leave()


async def says(run: Run, text: str) -> None:
    """Wait until the reply contains this."""
    async for _ in run.log.follow():
        if text in run.reply().text:
            return


def text_of(turn: StoredMessage) -> str:
    return "".join(part.get_text_content() for part in turn.parts)


def said_to(model: ScriptedModel) -> list[Message]:
    return [message for message in model.requests[-1].messages if message.role != "system"]


async def test_a_question_is_answered_and_gives_the_conversation_its_title(engine: Engine) -> None:
    question, reply = await asked(engine, "  What is up?\nTell me more.")
    assert text_of(question) == "  What is up?\nTell me more."
    assert text_of(reply).startswith("You said:   What is up?")
    talk = await engine.stores.of("alice").conversations.get(question.conversation_id)
    assert talk.title == "What is up?"
    await engine.stores.of("alice").conversations.rename(talk.id, "Mine")
    await asked(engine, "And now?", talk.id)
    assert (await engine.stores.of("alice").conversations.get(talk.id)).title == "Mine"


async def test_a_title_that_was_made_from_the_first_question_changes_with_it(engine: Engine) -> None:
    async def edited(message_id: str, text: str) -> str:
        run = await talk_of(engine, "alice", first.conversation_id).edit(message_id, text)
        assert await run.wait() == "complete", run.error
        return (await engine.stores.of("alice").conversations.get(first.conversation_id)).title

    first, _ = await asked(engine, "one")
    thread = await asked(engine, "and then?", first.conversation_id)
    assert await edited(thread[2].id, "a later question") == "one"
    assert await edited(first.id, "two") == "two"
    assert await edited(first.id, "three, beside the other two") == "three, beside the other two"
    await engine.stores.of("alice").conversations.rename(first.conversation_id, "Mine")
    assert await edited(first.id, "four") == "Mine"


async def test_the_model_hears_the_conversation_so_far(engine: Engine, model: ScriptedModel) -> None:
    thread = await asked(engine, "one")
    await asked(engine, "two", thread[0].conversation_id)
    assert [message.get_text_content() for message in said_to(model)] == ["one", "You said: one", "two"]


@pytest.mark.parametrize(("text", "key"), [(" \n\0 ", "empty_message"), ("x" * 2_000_001, "message_too_long")])
async def test_what_cannot_be_sent_is_refused_and_nothing_is_stored(engine: Engine, text: str, key: str) -> None:
    talk = await engine.stores.of("alice").conversations.create()
    with pytest.raises(ParlourError) as caught:
        await talk_of(engine, "alice", talk.id).ask(text)
    assert caught.value.words_key == key
    assert await engine.stores.of("alice").conversations.thread(talk.id) == []


async def test_a_megabyte_of_pasted_text_becomes_a_document(engine: Engine, model: ScriptedModel) -> None:
    text = (
        "Where does the heron nest?\n" + "The wind blows over the lake. " * 35_000 + "\nThe heron nests in the alder."
    )
    async with asyncio.timeout(120):  # a question whether all of it may be read would be waited for
        question, reply = await asked(engine, text)
    extra = question.parts[0].extra or {}
    assert extra["note"] == "pasted_as_document"
    assert len(text_of(question)) < 2000
    assert text_of(question).startswith("Where does the heron nest?")
    _, path = await stored(engine.stores.of("alice").files, extra["files"][0]["id"])
    assert path.read_text() == text
    (document,) = await engine.stores.of("alice").documents.list(question.conversation_id)
    assert document.status == "ready"
    assert (await engine.runs.of("alice").reply(reply)).passages


async def test_two_houses_on_one_data_folder_answer_one_question_at_a_time(tmp_path: Path) -> None:
    async with opened(tmp_path, ScriptedModel(Say(hang=True))) as one:
        talk = await one.stores.of("alice").conversations.create()
        run = await asked_here(one, "alice", talk.id, "first")
        async with opened(tmp_path, ScriptedModel()) as other:
            assert run.status == "running"
            assert [turn.status for turn in await other.stores.of("alice").conversations.thread(talk.id)] == [
                "complete",
                "running",
            ]
            with pytest.raises(ConflictError) as refused:
                await talk_of(other, "alice", talk.id).ask("second " * 10_000)
            assert refused.value.words_key == "busy"
            assert await other.stores.of("alice").documents.list(talk.id) == []  # nothing of it is kept
            await run.stop()
            again = await talk_of(other, "alice", talk.id).ask("third")
            assert await again.wait() == "complete"


async def test_a_document_sent_with_a_question_is_read_before_the_model_is_asked(engine: Engine) -> None:
    file = await engine.stores.of("alice").files.put("tower.md", FACTS)
    question, reply = await asked(engine, "How tall is the tower?", files=(file.id,))
    (passage, *_) = (await engine.runs.of("alice").reply(reply)).passages
    assert (passage["document"], passage["number"]) == ("tower.md", 1)
    assert "321 metres" in passage["text"]
    assert question.parts[0].items[-1].file == f"/files/{file.id}"


async def test_a_document_alone_is_a_question(engine: Engine, model: ScriptedModel) -> None:
    file = await engine.stores.of("alice").files.put("tower.md", FACTS)
    question, _ = await asked(engine, "", files=(file.id,))
    assert "What is in tower.md?" in said_to(model)[0].get_text_content()
    assert (await engine.stores.of("alice").conversations.get(question.conversation_id)).title == "tower.md"


@pytest.mark.parametrize(
    ("name", "content", "key"),
    [
        ("picture.pdf", PNG, "document_not_what_it_says"),
        ("empty.txt", b"", "document_empty"),
        ("program.exe", b"MZ\0\0\1\2\3", "document_unsupported"),
        ("cut.pdf", b"%PDF-1.7\n1 0 obj", "document_broken"),
    ],
)
async def test_a_bad_document_is_told_in_one_sentence_and_the_next_message_works(
    engine: Engine, name: str, content: bytes, key: str
) -> None:
    talk = await engine.stores.of("alice").conversations.create()
    file = await engine.stores.of("alice").files.put(name, content)
    run = await talk_of(engine, "alice", talk.id).ask("What does it say?", [file.id])
    assert await run.wait() == "error"
    assert run.error is not None
    assert run.error["key"] == key
    assert run.error["details"]["name"] == name
    assert text_of((await asked(engine, "Never mind.", talk.id))[-1]) == "You said: Never mind."


async def test_where_none_of_several_documents_can_be_read_the_error_has_each_of_them(engine: Engine) -> None:
    talk = await engine.stores.of("alice").conversations.create()
    given = {"empty.txt": b"", "cut.pdf": b"%PDF-1.7\n1 0 obj", "void.pdf": b""}
    files = [await engine.stores.of("alice").files.put(name, content) for name, content in given.items()]
    run = await talk_of(engine, "alice", talk.id).ask("What do they say?", [file.id for file in files])
    assert await run.wait() == "error"
    assert run.error is not None
    told = [run.error, *run.error["details"]["beside"]]
    assert {one["details"]["name"]: one["key"] for one in told} == {
        "empty.txt": "document_empty",
        "cut.pdf": "document_broken",
        "void.pdf": "document_empty",
    }


async def test_a_picture_reaches_a_model_that_sees_and_is_named_to_one_that_does_not(
    engine: Engine, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ocr, "is_here", lambda: False)
    file = await engine.stores.of("alice").files.put("cat.png", PNG)
    async with engine.workspaces.open("alice") as alice:
        (warning,) = await alice.unsupported_files([file])
    assert (warning.words_key, warning.details) == ("picture_not_taken", {"name": "cat.png", "model": "scripted"})
    thread = await asked(engine, "What is this?", files=(file.id,))
    assert "cat.png" in said_to(model)[-1].get_text_content()
    assert thread[0].parts[0].items[-1].image == f"/files/{file.id}"
    model.support_multimodal_input = True
    async with engine.workspaces.open("alice") as alice:
        assert await alice.unsupported_files([file]) == []
    await asked(engine, "Look again.", thread[0].conversation_id)
    seen = [item.image for message in said_to(model) for item in message.items if item.type == "image"]
    assert seen == [str((await stored(engine.stores.of("alice").files, file.id))[1])]


async def test_another_reply_stands_beside_the_first(engine: Engine) -> None:
    question, first = await asked(engine, "one")
    again = await talk_of(engine, "alice", first.conversation_id).regenerate(first.id)
    await again.wait()
    assert [turn.id for turn in await engine.stores.of("alice").conversations.siblings(first.id)] == [
        first.id,
        again.message_id,
    ]
    assert [turn.id for turn in await engine.stores.of("alice").conversations.thread(question.conversation_id)] == [
        question.id,
        again.message_id,
    ]


async def test_a_changed_question_stands_beside_the_old_one_with_its_files(
    engine: Engine, model: ScriptedModel
) -> None:
    file = await engine.stores.of("alice").files.put("tower.md", FACTS)
    thread = await asked(engine, "zero")
    thread = await asked(engine, "How tall is the tower?", thread[0].conversation_id, (file.id,))
    run = await talk_of(engine, "alice", thread[2].conversation_id).edit(thread[2].id, "Is the tower of iron?")
    await run.wait()
    shown = await engine.stores.of("alice").conversations.thread(thread[0].conversation_id)
    assert [text_of(turn) for turn in shown[:3]] == ["zero", "You said: zero", "Is the tower of iron?"]
    assert shown[2].parts[0].items[-1].file == f"/files/{file.id}"
    assert len(await engine.stores.of("alice").conversations.siblings(thread[2].id)) == 2
    assert (await engine.runs.of("alice").reply(shown[3])).passages
    assert "How tall" not in str(said_to(model))


async def test_the_first_question_can_be_changed_and_replies_cannot(engine: Engine, model: ScriptedModel) -> None:
    question, reply = await asked(engine, "one")
    run = await talk_of(engine, "alice", question.conversation_id).edit(question.id, "two")
    await run.wait()
    assert [message.get_text_content() for message in said_to(model)] == ["two"]
    with pytest.raises(NotFoundError):
        await talk_of(engine, "alice", reply.conversation_id).edit(reply.id, "me")
    with pytest.raises(NotFoundError):
        await talk_of(engine, "alice", question.conversation_id).continue_(question.id)


async def test_a_stopped_reply_goes_on_where_it_stopped(tmp_path: Path) -> None:
    model = ScriptedModel(Say(text="one two three", pace=0.2), Say(text=" and four"))
    async with opened(tmp_path / "home", model) as engine:
        talk = await engine.stores.of("alice").conversations.create()
        run = await asked_here(engine, "alice", talk.id, "Count.")
        await says(run, "two")
        await talk_of(engine, "alice", talk.id).stop()
        partial = run.reply().text
        again = await talk_of(engine, "alice", run.conversation_id).continue_(run.message_id)
        await again.wait()
        assert again.reply().text == partial + " and four"
        assert [message.get_text_content() for message in said_to(model)] == ["Count.", partial]
        assert said_to(model)[-1].role == "assistant"


async def test_a_model_is_said_to_answer_as_soon_as_it_writes(tmp_path: Path) -> None:
    async with opened(tmp_path / "home", ScriptedModel(Say(text="one two three", pace=0.2))) as engine:
        talk = await engine.stores.of("alice").conversations.create()
        assert not engine.readiness["model"].answered
        run = await asked_here(engine, "alice", talk.id, "Count.")
        await says(run, "two")
        assert engine.readiness["model"].answered
        await talk_of(engine, "alice", talk.id).stop()


async def test_a_reply_that_reached_the_models_longest_says_so_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    model = ScriptedModel(Say(text="one two", finish="length"), Say(text=" three"))
    async with opened(tmp_path / "home", model) as engine:
        talk = await engine.stores.of("alice").conversations.create()
        run = await asked_here(engine, "alice", talk.id, "Count.")
        assert await run.wait() == "complete"
        assert run.reply().cut_short
        again = await talk_of(engine, "alice", run.conversation_id).continue_(run.message_id)
        await again.wait()
        assert again.reply().text == "one two three"
        assert not again.reply().cut_short


async def test_while_a_reply_is_written_nothing_else_is_sent(tmp_path: Path) -> None:
    async with opened(tmp_path / "home", ScriptedModel(Say(hang=True))) as engine:
        talk = await engine.stores.of("alice").conversations.create()
        run = await asked_here(engine, "alice", talk.id, "one")
        question = (await engine.stores.of("alice").conversations.thread(talk.id))[0]
        for again in (
            talk_of(engine, "alice", talk.id).ask("two"),
            talk_of(engine, "alice", question.conversation_id).edit(question.id, "two"),
            talk_of(engine, "alice", question.conversation_id).regenerate(question.id),
            talk_of(engine, "alice", run.conversation_id).continue_(run.message_id),
        ):
            with pytest.raises(ConflictError) as caught:
                await again
            assert caught.value.words_key == "busy"
        await talk_of(engine, "alice", talk.id).stop()
        assert len(await engine.stores.of("alice").conversations.thread(talk.id)) == 2


async def test_of_questions_at_the_same_moment_one_is_answered_and_the_others_leave_nothing(engine: Engine) -> None:
    mine = engine.stores.of("alice")
    talk = await mine.conversations.create()
    stored = 0

    async def ask(number: int) -> Run:
        return await asked_here(engine, "alice", talk.id, f"{number}: " + "much text " * 5_000)

    put = mine.files.put

    async def counted(*args: Any, **more: Any) -> Any:
        nonlocal stored
        stored += 1
        return await put(*args, **more)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(mine.files), "put", lambda _, *args, **more: counted(*args, **more))
        begun = await asyncio.gather(*(ask(number) for number in range(4)), return_exceptions=True)
    (run,) = [one for one in begun if isinstance(one, Run)]
    refused = [one for one in begun if one is not run]
    assert [error.words_key for error in refused if isinstance(error, ConflictError)] == ["busy"] * 3
    assert stored == 1
    assert await run.wait() == "complete"
    assert len(await mine.conversations.thread(talk.id)) == 2


async def test_a_conversation_is_free_again_once_what_was_asked_in_it_is_refused(engine: Engine) -> None:
    talk = await engine.stores.of("alice").conversations.create()
    with pytest.raises(NotFoundError):
        await talk_of(engine, "alice", talk.id).ask("With this?", ["no-such-file"])
    assert len(await asked(engine, "Without it.", talk.id)) == 2


MADE = (property, cached_property)
"""What an attribute of a class is that makes, or looks up, what it gives."""


def within_reach(start: object) -> dict[str, object]:
    """What the public attributes of an object lead to, of our own classes, by how it is reached."""
    found, todo = {}, {"": start}
    known = {id(start)}
    while todo:
        way, one = todo.popitem()
        found[way] = one
        made = {name for kind in type(one).__mro__ for name, held in vars(kind).items() if isinstance(held, MADE)}
        for name in sorted({*getattr(one, "__dict__", ()), *getattr(type(one), "__slots__", ()), *made}):
            held = None
            with suppress(Exception):  # what cannot be had leads nowhere
                held = getattr(one, name, None)
            if not name.startswith("_") and type(held).__module__.startswith("core.") and id(held) not in known:
                known.add(id(held))
                todo[f"{way}.{name}"] = held
    return found


def given(function: Any) -> set[str]:
    return set(signature(function).parameters) if callable(function) else set()


async def test_nothing_that_a_workspace_or_a_conversation_gives_out_leads_to_another_owner(engine: Engine) -> None:
    async with engine.workspaces.open("alice") as workspace:
        reached = within_reach(workspace)
        reached |= {f"conversation{way}": one for way, one in within_reach(workspace.conversation("x")).items()}
    assert {".conversations", ".tools.servers", ".models", "conversation.services.agents"} <= reached.keys(), reached
    named = [(way, name, one) for way, one in reached.items() for name in vars(type(one)) if name[0] != "_"]
    assert [(way, name) for way, name, one in named if "owner" in given(getattr(one, name))] == []


async def test_a_run_of_somebody_else_cannot_be_resumed(engine: Engine) -> None:
    record = RunRecord("run", "alice", "talk", "message", "running", None, "", None, 0.0, None)
    resumable = ResumableRun(record, Lease("gone", None), [], frozenset())
    with pytest.raises(NotFoundError):
        await engine.runs.of("bob").resume(resumable, cast("Any", None), history=[])


async def test_nobody_elses_conversation_is_busy(tmp_path: Path) -> None:
    async with opened(tmp_path / "home", ScriptedModel(Say(hang=True))) as engine:
        talk = await engine.stores.of("alice").conversations.create()
        run = await asked_here(engine, "alice", talk.id, "one")
        with pytest.raises(NotFoundError):
            await talk_of(engine, "bob", talk.id).ask("two")
        await run.stop()
        with engine.runs.of("bob").reserve(talk.id):  # nor kept from its owner
            again = await asked_here(engine, "alice", talk.id, "three")
        await again.stop()


async def test_deleting_a_conversation_takes_everything_along(engine: Engine, tmp_path: Path) -> None:
    file = await engine.stores.of("alice").files.put("tower.md", FACTS)
    other = await engine.stores.of("alice").files.put("other.md", FACTS + b" And painted red.")
    keeps = (await asked(engine, "?", files=(other.id,)))[0].conversation_id
    gone = (await asked(engine, "?", files=(file.id, other.id)))[0].conversation_id
    await talk_of(engine, "alice", gone).delete()
    assert [talk.id for talk in await engine.stores.of("alice").conversations.list()] == [keeps]
    kept = [path.name for path in (tmp_path / "home" / "files").rglob("*") if path.is_file()]
    assert kept == [f"{other.id}.md"]
    library = await index_of(engine, "alice")
    assert [document.name for document in library.documents()] == ["other.md"]


async def test_a_running_conversation_can_be_deleted(tmp_path: Path) -> None:
    async with opened(tmp_path / "home", ScriptedModel(Say(hang=True))) as engine:
        talk = await engine.stores.of("alice").conversations.create()
        run = await asked_here(engine, "alice", talk.id, "one")
        await talk_of(engine, "alice", talk.id).delete()
        assert run.status == "stopped"
        assert await engine.stores.of("alice").conversations.list() == []


async def test_nothing_of_alices_can_be_used_by_bob(engine: Engine) -> None:
    file = await engine.stores.of("alice").files.put("tower.md", FACTS)
    question, reply = await asked(engine, "one", files=(file.id,))
    mine = await engine.stores.of("bob").conversations.create()
    for attempt in (
        talk_of(engine, "bob", question.conversation_id).ask("me"),
        talk_of(engine, "bob", mine.id).ask("me", [file.id]),
        talk_of(engine, "bob", question.conversation_id).edit(question.id, "me"),
        talk_of(engine, "bob", reply.conversation_id).regenerate(reply.id),
        talk_of(engine, "bob", reply.conversation_id).continue_(reply.id),
        talk_of(engine, "bob", question.conversation_id).delete(),
        world_of(engine, "bob").intake.add(mine.id, file),
        engine.services.of("bob").within_reach(question.conversation_id).__aenter__(),
    ):
        with pytest.raises(NotFoundError):
            await attempt
    assert (await index_of(engine, "bob")).documents() == []


async def test_after_a_restart_everything_is_there_and_what_was_unread_is_read(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with opened(home, ScriptedModel(Say(text="one two three", pace=0.2))) as engine:
        talk = await engine.stores.of("alice").conversations.create()
        run = await asked_here(engine, "alice", talk.id, "Count.")
        await says(run, "one")
        file = await engine.stores.of("alice").files.put("tower.md", FACTS)
        unread = await engine.stores.of("alice").documents.add(talk.id, file.id, file.name)
    async with opened(home, ScriptedModel("Done.")) as engine:
        question, reply = await engine.stores.of("alice").conversations.thread(talk.id)
        assert (text_of(question), reply.status) == ("Count.", "interrupted")
        assert text_of(reply).startswith("one")
        await read(engine, unread.id)
        assert (await engine.stores.of("alice").documents.get(unread.id)).status == "ready"
        again = await talk_of(engine, "alice", reply.conversation_id).regenerate(reply.id)
        assert await again.wait() == "complete"


async def test_what_the_model_is_asked_says_nothing_of_addresses(engine: Engine, model: ScriptedModel) -> None:
    file = await engine.stores.of("alice").files.put("tower.md", FACTS)
    await asked(engine, "How tall?", files=(file.id,))
    asked_of: ChatRequest = model.requests[-1]
    assert "/files/" not in str(asked_of.messages)


async def test_the_last_word_of_readiness_is_the_pages(engine: Engine) -> None:
    run: Any = await talk_of(engine, "alice", (await engine.stores.of("alice").conversations.create()).id).ask("Hi")
    await run.wait()
    assert not engine.readiness.ready
    engine.readiness.mark("page", "ready")
    told = engine.readiness.as_dict()
    assert told["ready"]
    assert told["parts"]["model"]["label"] == "scripted"
