"""A file made to do harm: what says it is our JSON comes in, or is counted as damaged, and stays small."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.export import shared_turns
from core.importing import own_json
from core.importing.importing import bring_in
from core.importing.tree import BrokenTreeError
from core.messages.message import Message
from core.rag.document import Passage
from core.runs.log import LoggedEvent
from core.runs.reply import Reply
from core.runs.rows import events_of
from core.storage.arriving import ArrivingConversation
from tests.core.importing.talks import home

WHEN = "2026-05-04T03:02:00Z"
CITATION: dict[str, Any] = {
    "number": 1,
    "document": "policy.pdf",
    "document_id": "d1",
    "page": 4,
    "heading": "Cover",
    "url": "",
    "text": "Damage by water is covered.",
    "cited": True,
    "rectangles": [[10, 20, 110, 40.5]],
}
RUN: dict[str, Any] = {
    "id": "r1",
    "model": "M",
    "status": "error",
    "error": {"key": "k", "message": "It took 5 s.", "details": {"seconds": 5}},
    "started_at": WHEN,
}
CLAIM: dict[str, Any] = {
    "text": "It is covered.",
    "verdict": "weak",
    "numbers": [1],
    "reasons": [{"kind": "amount", "words": "5", "instead": "7", "passage": 1}],
    "judged": False,
}


def found(*numbers: Any, content: str = "found") -> dict[str, Any]:
    return {"role": "function", "name": "ask", "content": content, "extra": {"passages": list(numbers)}}


def turn(turn_id: str = "t1", **more: Any) -> dict[str, Any]:
    about = {"id": turn_id, "role": "assistant", "status": "complete", "shown": True, "created_at": WHEN}
    return {**about, "messages": [{"role": "assistant", "content": "It is covered [1]."}], "run": RUN, **more}


def talk(*turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    about = {"id": "a" * 22, "title": "A trip", "created_at": WHEN, "updated_at": WHEN, "leaf_id": None}
    head = {"format": "parlour.conversation", "version": 1, "exported_at": WHEN, "conversation": about}
    return {**head, "turns": list(turns), "files": [], **more}


WHOLE = talk(
    turn(
        "t0",
        role="user",
        run=None,
        messages=[{"role": "user", "content": [{"text": "Is it?"}, {"file": "/files/f1"}]}],
    ),
    turn(
        parent_id="t0",
        messages=[
            {"role": "assistant", "content": "", "function_call": {"name": "ask", "arguments": "{}"}},
            {**found(1), "extra": {"passages": [1, 2], "function_id": "c1", "failed": ""}},
            {"role": "assistant", "content": "It is covered."},
        ],
        inner=[{"calls": ["c1"], "messages": [{"role": "assistant", "content": "Let me see."}]}],
        citations=[CITATION],
        claims=[CLAIM],
        left_out=["Damage by water is covered."],
        judged_by="Qwen",
        edited=True,
    ),
    files=[{"id": "f1", "name": "notes.txt", "media_type": "text/plain", "size": 1, "sha256": "0"}],
)


def read(one: dict[str, Any]) -> tuple[ArrivingConversation | None, Counter[str]]:
    left_out: Counter[str] = Counter()
    return own_json.read(json.loads(json.dumps(one)), left_out, lambda _: ""), left_out


def bytes_of(made: ArrivingConversation | None) -> int:
    assert made is not None
    return len(json.dumps([[one.row, one.run, one.log] for one in made.turns]))


def test_a_passage_that_was_found_twice_keeps_the_numbers_of_those_after_it() -> None:
    called = {"role": "assistant", "content": "", "function_call": {"name": "ask", "arguments": "{}"}}
    messages = [
        {**one, "extra": {**one.get("extra", {}), "function_id": name}}
        for name, numbers in (("c1", (2, 2)), ("c2", (3,)))
        for one in (called, found(*numbers))
    ]
    citations = [
        {**CITATION, "number": number, "text": text} for number, text in ((1, "Twice."), (2, "Twice."), (3, "Once."))
    ]
    made, left_out = read(talk(turn(messages=messages, citations=citations)))
    assert made is not None
    parts = [Message(**part) for part in made.turns[0].row["parts"]]
    reply = Reply(LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events_of(parts), start=1))
    told = [(one["number"], one["text"]) for one in reply.passages]
    assert told == [(1, "Twice."), (2, "Twice."), (3, "Once.")]
    assert not left_out


@pytest.mark.parametrize(
    "hostile",
    [
        turn(messages=[found(*[1] * 1_000)] * 2, citations=[{**CITATION, "text": "w" * 20_000}]),
        turn(messages=[found(1)] * 2_000, citations=[{**CITATION, "text": "w" * 20_000}]),
        turn(messages=[found(*range(1, 1_001))] * 20),
        turn(
            inner=[
                {"calls": ["c" * 20_000], "messages": [{"role": "assistant", "content": "x"}, found()] * 1_000},
            ]
        ),
        turn(
            role="user",
            messages=[{"role": "user", "content": [{"file": "f1"}] * 10_000}],
        ),
    ],
    ids=["a number again and again", "texts of passages", "numbers alone", "calls of agents", "names of files"],
)
def test_what_comes_in_is_no_more_than_a_few_times_its_file(hostile: dict[str, Any]) -> None:
    file = {"id": "f1", "name": "n" * 20_000, "media_type": "text/plain", "size": 1, "sha256": "0"}
    given = talk(hostile, files=[file])
    made, left_out = read(given)
    assert bytes_of(made) < 8 * len(json.dumps(given)) + 1_000
    assert left_out["passages"] or hostile["role"] == "user"


def test_of_passages_those_come_in_for_which_there_is_room_and_the_others_are_counted() -> None:
    given = talk(turn(messages=[found(1)] * 500, citations=[{**CITATION, "text": "w" * 20_000}]))
    made, left_out = read(given)
    assert made is not None
    kept = [len(part["extra"]["passages"]) for part in made.turns[0].row["parts"]]
    assert kept == sorted(kept, reverse=True), "what is left out is the last: a reply counts its passages"
    assert kept[0] == 1
    assert sum(kept) + left_out["passages"] == 500


def test_a_reply_that_was_given_very_many_passages_comes_in_with_all_of_them() -> None:
    """One who may be given a whole book names each of its passages."""
    citations = [{**CITATION, "number": number, "text": f"Page {number}."} for number in range(1, 3_001)]
    made, left_out = read(talk(turn(messages=[found(*range(1, 3_001))], citations=citations)))
    assert made is not None
    (part,) = made.turns[0].row["parts"]
    assert [one["text"] for one in part["extra"]["passages"]] == [one["text"] for one in citations]
    assert not left_out


def test_where_no_version_is_marked_as_shown_the_last_one_is() -> None:
    made, _ = read(talk(turn("t1", shown=False), turn("t2", shown=False, parent_id="t1")))
    assert made is not None
    assert made.row["leaf_id"] == made.turns[-1].row["id"]


def test_the_text_of_a_passage_is_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    inner: Any = shared_turns  # a name of its own is replaced
    plainly = inner._plainly

    def counted(text: str) -> str:
        texts.append(text)
        return plainly(text)

    monkeypatch.setattr(inner, "_plainly", counted)
    citations = [{**CITATION, "cited": False, "number": number} for number in range(1, 6)]
    read(talk(turn(messages=[found(*range(1, 6), content="y")] * 50, citations=citations)))
    assert texts.count(CITATION["text"]) == 5


def test_no_more_is_looked_through_for_passages_than_a_few_times_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_turns, "_LOOKS", (1, 0))
    citations = [{**CITATION, "cited": False, "number": number} for number in range(1, 101)]
    given = talk(turn(messages=[found(*range(1, 101), content="y" * 10_000)], citations=citations))
    made, left_out = read(given)
    assert made is not None
    kept = len(made.turns[0].row["parts"][0]["extra"]["passages"])
    assert kept == 4 * len(json.dumps(given)) // 10_000
    assert left_out["passages"] == 100 - kept


@pytest.mark.parametrize(
    "damaged",
    [
        turn(messages=[{"content": "x"}]),
        *[turn(messages=[found(one)]) for one in ({}, [], "a", None, 1.5, True, 0, -3, 10**30)],
        turn(messages=[{**found(), "extra": {"passages": 5}}]),
        turn(messages=[{**found(), "extra": {"function_id": {}}}]),
        turn(messages=[{**found(), "extra": {"failed": ["x"]}}]),
        turn(citations=[{**CITATION, "number": 0}]),
        turn(citations=[{**CITATION, "rectangles": [[0, 0, 1, float("nan")]]}]),
        turn(claims=[{**CLAIM, "numbers": [-9]}]),
        turn(claims=[{**CLAIM, "reasons": [{"kind": "amount", "words": "5", "passage": -1}]}]),
        turn(created_at="0001-01-01T00:00:00"),
        turn(created_at="9999-12-31T23:59:59"),
    ],
)
def test_what_no_export_has_makes_its_conversation_a_damaged_one(damaged: dict[str, Any]) -> None:
    with pytest.raises(BrokenTreeError):
        read(talk(damaged))


@pytest.mark.anyio
async def test_the_good_conversations_of_a_hostile_file_come_in(tmp_path: Path) -> None:
    hostile = [
        talk(turn(messages=[found({})])),
        talk(turn(created_at="0001-01-01T00:00:00")),
        talk(turn(), conversation={**WHOLE["conversation"], "created_at": "0001-01-01T00:00:00"}),
    ]
    async with home(tmp_path) as of:
        file = tmp_path / "talks.json"
        file.write_text(json.dumps([*hostile, talk(turn())]), "utf-8")
        made = await bring_in(file, of.of("somebody"))
    assert (len(made.conversations), made.left_out) == (1, {"broken": 3})


def places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all that is in a value."""
    inside: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inside = list(value.items())
    elif isinstance(value, list):
        inside = list(enumerate(value))
    return [way for name, one in inside for way in ((*above, name), *places(one, (*above, name)))]


BROKEN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=[]), max_size=8)
    | st.sampled_from(["0001-01-01T00:00:00", "9999-12-31T23:59:59", 10**30, "t0", "t1", "assistant", "user"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@settings(deadline=None)
@given(
    way=st.sampled_from([one for one in places(WHOLE) if one not in {("format",), ("version",)}]),
    broken=BROKEN,
    gone=st.booleans(),
)
def test_whatever_stands_in_a_field_its_conversation_comes_in_or_is_damaged(
    way: tuple[Any, ...], broken: Any, gone: bool
) -> None:
    one = copy.deepcopy(WHOLE)
    at: Any = one
    for name in way[:-1]:
        at = at[name]
    if gone:
        del at[way[-1]]
    else:
        at[way[-1]] = broken
    try:
        made, _ = read(one)
    except BrokenTreeError:
        return
    for each in made.turns if made is not None else ():
        json.dumps([each.row, each.run, each.log], allow_nan=False)
        parts = [Message(**part) for part in each.row["parts"]]
        Reply(LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events_of(parts), start=1))
        for part in parts:
            for passage in (part.extra or {}).get("passages") or []:
                Passage.from_dict({"score": 0.0, **passage})


def test_the_whole_of_it_comes_in() -> None:
    made, left_out = read(WHOLE)
    assert made is not None
    assert [len(one.log) for one in made.turns] == [0, 6]
    assert left_out == {"files": 1}
    assert "files" not in read(talk(turn()))[1]
