"""Parlour's own export as JSON comes in again: what was said, every version, and the marks with their passages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.errors import UnsupportedFormatError
from core.export.together import zipped
from core.importing.importing import Imported, bring_in
from core.messages.message import Message
from core.rag.claims.omission import LeftOut
from core.runs.log import Checked, ClaimsChecked, ClaimsJudged, Judged, LoggedEvent, MoreSaid, RunEvent
from core.runs.rows import rows_of
from core.storage.base import EventRow
from tests.core.importing.talks import Home, home

pytestmark = pytest.mark.anyio
OTHER = "somebody"


async def exported(of: Home) -> dict[str, Any]:
    made = await of.exporting.export(of.id, "json")
    return json.loads("".join([piece async for piece in made.pieces]))


async def brought(of: Home, told: Any, **given: Any) -> Imported:
    file = of.path / "talk.json"
    file.write_text(json.dumps(told), "utf-8")
    return await bring_in(file, of.of(OTHER), **given)


async def test_a_conversation_comes_in_with_its_versions_thoughts_calls_and_marks(tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        made = await brought(of, await exported(of))
        assert (made.source, made.messages, made.files, made.left_out) == ("Parlour", 3, 0, {"files": 1})
        theirs = of.of(OTHER)
        (talk,) = made.conversations
        assert (await theirs.conversations.get(talk)).title == "A trip 旅行"
        outline = await theirs.whole.outline(talk)
        turns = [one.message for one in await theirs.whole.turns(talk, list(outline.turns))]
        question, first, second = turns
        assert question.parts[0].get_text_content() == "Where to?\n  * north\n\n[notes.txt]"
        assert (question.parts[0].extra or {})["note"] == "json_without_files"
        assert [one.parent_id for one in turns] == [None, question.id, question.id]
        assert (await theirs.conversations.thread(talk))[-1].id == second.id
        assert first.parts[0].reasoning_content == "hm"
        assert first.parts[0].function_call is not None
        assert first.parts[2].get_text_content() == "Yes, it is covered [1]. 😀"
        (passage,) = (first.parts[1].extra or {})["passages"]
        assert (passage["number"], passage["page"], passage["text"]) == (1, 4, "Damage by water is covered.")


async def test_a_reply_that_failed_before_its_first_word_comes_in_with_what_was_said_after_it(tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        last = (await of.stores.conversations.thread(of.id))[-1]
        run, place = await of.stores.runs.create(
            of.id, user=[Message("user", "And then?")], parent_id=last.id, model="M"
        )
        away = {"key": "k", "message": "It is away."}
        await of.stores.runs.finish(run.id, "error", epoch=run.epoch, parts=[], error=away)
        await of.stores.conversations.add_message(of.id, "user", [Message("user", "Once more.")], place.id)
        (talk,) = (await brought(of, await exported(of))).conversations
        asked, failed, again = (await of.of(OTHER).conversations.thread(talk))[-3:]
        assert [one.parts[0].get_text_content() for one in (asked, again)] == ["And then?", "Once more."]
        assert (failed.status, failed.parts) == ("error", ())


async def test_what_is_here_already_is_left_out(tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        told = await exported(of)
        await brought(of, told)
        again = await brought(of, told, unless_there=())
        assert (again.conversations, len(again.here)) == ((), 1)


async def test_a_conversation_that_is_here_itself_is_left_out(tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        (of.path / "talk.json").write_text(json.dumps(await exported(of)), "utf-8")
        again = await bring_in(of.path / "talk.json", of.stores, unless_there=())
        assert (again.conversations, again.here) == ((), (of.id,))


async def test_what_a_bundle_brought_is_here_already_also_for_its_json(tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        (of.path / "talk.parlour").write_bytes(await of.bundle())
        (talk,) = (await bring_in(of.path / "talk.parlour", of.of(OTHER))).conversations
        again = await brought(of, await exported(of), unless_there=())
        assert (again.conversations, again.here) == ((), (talk,))


async def test_one_with_a_version_that_is_not_here_comes_in(tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        told = await exported(of)
        await brought(of, told)
        more = {**told["turns"][1], "id": "another", "created_at": "2026-05-04T03:09:00Z"}
        again = await brought(of, {**told, "turns": [*told["turns"], more]}, unless_there=())
        assert (len(again.conversations), again.here) == (1, ())


async def test_what_the_check_found_of_its_sentences_comes_along(tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        last = (await of.stores.conversations.thread(of.id))[-1]
        end = len("Another version [1].")
        found: list[RunEvent] = [
            ClaimsChecked((Checked(2, end, "weak", ()),)),
            MoreSaid((LeftOut(1, 0, 27, "Damage by water is covered."),)),
            ClaimsJudged("Qwen", (Judged(2, end, borne_out=False),)),
        ]
        for row in rows_of(LoggedEvent(99 + at, 1.0, one) for at, one in enumerate(found)):
            await of.stores.runs.add(str(last.run_id), row.kind, row.payload)
        made = await brought(of, await exported(of))
        reply = (await of.of(OTHER).conversations.thread(made.conversations[0]))[-1]
        events: list[EventRow] = await of.of(OTHER).runs.events(str(reply.run_id))
        assert [one.kind for one in events] == ["claims_checked", "more_said", "claims_judged"]
        assert [one[2] for one in events[0].payload["claims"]] == ["unsupported"]  # as it was judged
        assert events[1].payload["left_out"] == [[1, 0, 27, "Damage by water is covered."]]
        assert events[2].payload["said"] == [[2, end, False]]


@pytest.mark.parametrize("title", ["conversations", "conversations-2025"])
async def test_all_of_a_zip_comes_in_whatever_the_conversations_are_called(tmp_path: Path, title: str) -> None:
    async with home(tmp_path) as of:
        other = await of.stores.conversations.create(title)
        await of.stores.conversations.add_message(other.id, "user", [Message("user", "Hello")], None)
        file = tmp_path / "talks.zip"
        file.write_bytes(b"".join([piece async for piece in zipped(of.exporting, [of.id, other.id], "json")]))
        made = await bring_in(file, of.of(OTHER))
        assert (len(made.conversations), made.left_out) == (2, {"files": 1})


def _circle(told: dict[str, Any]) -> None:
    told["turns"][0]["parent_id"] = told["turns"][2]["id"]


def _twice(told: dict[str, Any]) -> None:
    told["turns"][1]["id"] = told["turns"][2]["id"]


def _role(told: dict[str, Any]) -> None:
    told["turns"][0]["messages"][0]["role"] = "system"


def _ages(told: dict[str, Any]) -> None:
    told["turns"][0]["created_at"] = "0001-01-01T00:00:00Z"


def _cut(told: dict[str, Any]) -> None:
    del told["turns"][0]["status"]


@pytest.mark.parametrize("damage", [_circle, _twice, _role, _ages, _cut])
async def test_one_that_is_damaged_is_left_out_and_counted(
    tmp_path: Path, damage: Callable[[dict[str, Any]], None]
) -> None:
    async with home(tmp_path) as of:
        whole = await exported(of)
        told = json.loads(json.dumps(whole))
        damage(told)
        made = await brought(of, [told, whole])
        assert (len(made.conversations), made.left_out["broken"]) == (1, 1)


async def test_one_of_a_newer_parlour_changes_nothing(tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        with pytest.raises(UnsupportedFormatError) as refused:
            await brought(of, {**await exported(of), "version": 99})
        assert (refused.value.words_key, refused.value.details["file"]) == ("import_newer", "talk.json")
        assert await of.of(OTHER).conversations.list() == []


async def test_without_files_none_are_said_to_be_left_out(tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        made = await brought(of, {**await exported(of), "files": []})
        assert made.left_out == {}
