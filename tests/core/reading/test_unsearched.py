"""Nobody is told that the documents hold no answer while some of them were not searched, or not all of them was."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.rag.search.stored_vectors import Vectors
from core.runs.manager import Live
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from tests.core.reading.held_reading import PAGES, is_read, long_pdf
from tests.core.talks import libraries_of, talk_of, world_of

pytestmark = pytest.mark.anyio

LARGE = "\n\n".join(f"Paragraph {n} tells of bicycles, bells and baskets in a shed." for n in range(3_000)).encode()
QUESTION = "Zygomorphic quartz?"


def house(tmp_path: Path, model: ScriptedModel, retrieval: str = "keyword") -> Engine:
    return Engine(Settings.load(home=tmp_path / "home", retrieval=retrieval), model=model)


async def asked(engine: Engine, talk_id: str, text: str, **files: bytes) -> Live:
    ids = [(await engine.stores.of("alice").files.put(name.replace("_", "."), data)).id for name, data in files.items()]
    run = await talk_of(engine, "alice", talk_id).ask(text, ids)
    assert await run.wait() == "complete", run.error
    return run


def searched(run: Live) -> tuple[str, dict[str, Any]]:
    """What the search gave the model, and what is known besides."""
    (result,) = (block.result for block in run.reply().blocks if block.kind == "call" and block.result is not None)
    return result.get_text_content(), dict(result.extra or {})


async def test_a_search_through_everything_may_say_that_nothing_matches(tmp_path: Path) -> None:
    async with house(tmp_path, ScriptedModel("ok")) as engine:
        talk = await engine.stores.of("alice").conversations.create()
        text, extra = searched(await asked(engine, talk.id, QUESTION, shed_md=LARGE))
        assert text.startswith("No passage of the documents matches.")
        assert "left_out" not in extra


async def test_while_search_by_meaning_is_unfinished_that_is_told_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never_done(_: Vectors, __: object, stop: threading.Event) -> None:
        stop.wait()

    monkeypatch.setattr(Vectors, "make", never_done)
    async with house(tmp_path, ScriptedModel("ok"), "hybrid") as engine:
        talk = await engine.stores.of("alice").conversations.create()
        text, extra = searched(await asked(engine, talk.id, QUESTION, shed_md=LARGE))
        assert "No passage" not in text
        assert "shed.md (MD, read, search by meaning knows 0 of its" in text
        (told,) = extra["left_out"]
        assert (told["name"], told["status"], told["pages"]) == ("shed.md", "preparing", 0)


async def test_a_file_that_could_not_be_read_is_told_instead_also_in_later_turns(tmp_path: Path) -> None:
    async with house(tmp_path, ScriptedModel("ok")) as engine:
        talk = await engine.stores.of("alice").conversations.create()
        await asked(engine, talk.id, "Hello.", shed_md=LARGE, broken_pdf=b"%PDF-1.7 nothing of it")
        text, extra = searched(await asked(engine, talk.id, QUESTION))
        assert "No passage" not in text
        assert "broken.pdf (PDF, could not be read)" in text
        assert [(one["name"], one["status"]) for one in extra["left_out"]] == [("broken.pdf", "failed")]


@pytest.mark.parametrize("small", [False, True])
async def test_the_model_is_told_which_files_there_are(tmp_path: Path, *, small: bool) -> None:
    model = ScriptedModel("ok")
    model.small = small
    async with house(tmp_path, model) as engine:
        talk = await engine.stores.of("alice").conversations.create()
        await asked(engine, talk.id, "Hello.", tower_md=b"The tower is tall.", broken_pdf=b"%PDF-1.7 nothing of it")
        run = await asked(engine, talk.id, "What is in these files?")
        system = model.requests[-1].messages[0].get_text_content()
        assert "tower.md (MD, read)" in system
        assert "broken.pdf (PDF, could not be read)" in system
        assert [one["document"] for one in run.reply().passages] == ["tower.md"]


async def test_the_model_is_told_the_headings_of_the_files(tmp_path: Path) -> None:
    model = ScriptedModel("ok")
    async with house(tmp_path, model) as engine:
        talk = await engine.stores.of("alice").conversations.create()
        text = b"# The tower\n\nIt is tall.\n\n## Its stairs\n\nThey wind.\n"
        await asked(engine, talk.id, "Hello.", tower_md=text)
        await asked(engine, talk.id, "Which chapters are there?")
        system = model.requests[-1].messages[0]
        assert "- tower.md (MD, read)\n  - The tower\n    - Its stairs" in system.get_text_content()
        assert (system.extra or {})["files"], "these are words of documents"


async def test_the_model_is_told_of_files_of_which_none_can_be_read(tmp_path: Path) -> None:
    model = ScriptedModel("ok")
    async with house(tmp_path, model) as engine:
        talk = await engine.stores.of("alice").conversations.create()
        file = await engine.stores.of("alice").files.put("broken.pdf", b"%PDF-1.7 nothing of it")
        assert (
            await is_read(engine, (await world_of(engine, "alice").intake.add(talk.id, file)).id)
        ).status == "failed"
        await asked(engine, talk.id, "What is in these files?")
        assert "broken.pdf (PDF, could not be read)" in model.requests[-1].messages[0].get_text_content()


async def test_a_conversation_without_files_is_told_of_none(tmp_path: Path) -> None:
    model = ScriptedModel("ok")
    async with house(tmp_path, model) as engine:
        await asked(engine, (await engine.stores.of("alice").conversations.create()).id, "Hello.")
        assert "file" not in model.requests[-1].messages[0].get_text_content()


async def test_an_answer_from_a_long_documents_beginning_says_what_was_read(tmp_path: Path) -> None:
    model = ScriptedModel("ok")
    model.small = True  # it is never given a document whole
    async with house(tmp_path, model) as engine:
        talk = await engine.stores.of("alice").conversations.create()
        _, extra = searched(await asked(engine, talk.id, "Summarise this document.", policy_pdf=long_pdf()))
        (part,) = extra["read"]
        assert (part["name"], part["of"], part["first"], part["total"]) == ("policy.pdf", "page", 1, PAGES)
        assert 1 <= part["last"] < PAGES
        again = await asked(engine, talk.id, "What is the deductible for water damage?")
        assert "read" not in searched(again)[1]


async def test_a_library_that_is_tried_says_nothing_fits_only_where_all_was_searched(tmp_path: Path) -> None:
    async with house(tmp_path, ScriptedModel("ok")) as engine:
        library = await libraries_of(engine, "alice").create("Mixed")
        fine = await libraries_of(engine, "alice").add(library.id, LARGE, "shed.md")
        await is_read(engine, fine.id)
        assert await libraries_of(engine, "alice").unsearched(library.id) == []
        broken = await libraries_of(engine, "alice").add(library.id, b"%PDF-1.7 nothing of it", "broken.pdf")
        await is_read(engine, broken.id)
        assert [one.name for one in await libraries_of(engine, "alice").unsearched(library.id)] == ["broken.pdf"]
