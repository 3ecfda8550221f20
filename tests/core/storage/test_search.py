"""What is looked for is found down to the message, whatever was typed, and only what is the owner's."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.messages.content import ContentItem
from core.messages.message import FunctionCall, Message
from core.storage.database import Database
from core.storage.excerpts import Sought, excerpt, marked
from core.storage.message_texts import make_index_anew, plain, spaced
from core.storage.sealing import Sealer
from core.storage.search import HITS, LATEST, MOST, Found
from core.storage.stores import OwnerStores, Stores
from tests.tries import tries

pytestmark = pytest.mark.anyio

Of = Callable[[str], OwnerStores]


@pytest.fixture
def of(database: Database, tmp_path: Path) -> Of:
    return Stores(database, tmp_path, Sealer("secret")).of


async def talk(mine: OwnerStores, title: str, *said: str) -> str:
    """A conversation of questions and replies in turn."""
    made = await mine.conversations.create(title)
    above = None
    for number, text in enumerate(said):
        role = "assistant" if number % 2 else "user"
        above = (await mine.conversations.add_message(made.id, role, [Message(role, text)], above)).id
    return made.id


def titles(found: Found) -> list[str]:
    return [one.conversation.title for one in found.conversations]


def lines(found: Found) -> list[tuple[str, str]]:
    """Each message that was found: who said it, and its line with the words in brackets."""
    said: list[tuple[str, str]] = []
    for one in found.conversations:
        for hit in one.hits:
            line, at = "", 0
            for begin, end in hit.said.marks:
                line += f"{hit.said.text[at:begin]}[{hit.said.text[begin:end]}]"
                at = end
            said.append((hit.role, line + hit.said.text[at:]))
    return said


async def test_a_message_is_found_by_all_of_its_words_and_by_the_beginning_of_the_last(of: Of) -> None:
    mine = of("alice")
    await talk(mine, "Policy", "What about hail?", "For damage by storm or hail the **deductible** is 750 dollars [1].")
    await talk(mine, "Weather", "Will the storm pass?")
    found = await mine.search.find("deductible sto")
    assert lines(found) == [("assistant", "For damage by [sto]rm or hail the [deductible] is 750 dollars .")]
    assert titles(await mine.search.find("storm")) == ["Weather", "Policy"]
    assert titles(await mine.search.find("sto deductible")) == []  # only the last word may be a beginning
    assert titles(await mine.search.find("eductible")) == []


async def test_accents_and_capitals_do_not_matter(of: Of) -> None:
    mine = of("alice")
    await talk(mine, "Café", "Le Garçon à la crème brûlée", "Über den Wolken. Cafe\u0301 noir")
    for asked in ("garcon", "GARÇON", "creme bru", "Brûlée"):
        assert [role for role, _ in lines(await mine.search.find(asked))] == ["user"], asked
    assert lines(await mine.search.find("uber")) == [("assistant", "[Über] den Wolken. Cafe\u0301 noir")]
    found = await mine.search.find("cafe")
    assert found.conversations[0].marks == ((0, 4),)
    assert lines(found)[0][1].endswith("[Cafe\u0301] noir")


@pytest.mark.parametrize(
    ("said", "asked", "shown"),
    [
        ("灯塔看守人收集邮票。", "灯", "[灯]塔看守人收集邮票。"),
        ("灯塔看守人收集邮票。", "看守人", "灯塔[看守人]收集邮票。"),
        ("灯塔看守人收集邮票。", "看守 邮票", "灯塔[看守]人收集[邮票]。"),
        ("用Python3写的灯塔", "python3写", "用[Python3写]的灯塔"),
        ("灯台の守人がカメラを買う", "カメラ", "灯台の守人が[カメラ]を買う"),
        ("ประภาคารอยู่ที่ไหน", "ประภาคาร", "[ประภาคาร]อยู่ที่ไหน"),
        ("등대지기는 우표를 모은다", "등대지기", "[등대지기]는 우표를 모은다"),
    ],
)
async def test_scripts_without_spaces_are_found_from_one_character_on(
    of: Of, said: str, asked: str, shown: str
) -> None:
    mine = of("alice")
    await talk(mine, "", said, "塔灯 守看")
    assert lines(await mine.search.find(asked))[-1] == ("user", shown)


async def test_what_tools_gave_is_not_found_and_what_a_reply_says_is(of: Of) -> None:
    mine = of("alice")
    made = await mine.conversations.create("Tools")
    parts = [
        Message("assistant", "", function_call=FunctionCall("search", '{"query": "zebra"}')),
        Message("function", "A zebra stands there.", name="search"),
        Message("assistant", [ContentItem(text="It is a giraffe.")]),
    ]
    await mine.conversations.add_message(made.id, "assistant", parts, None)
    assert titles(await mine.search.find("zebra")) == []
    assert titles(await mine.search.find("giraffe")) == ["Tools"]


async def test_what_changes_is_found_as_it_is_now(of: Of) -> None:
    mine = of("alice")
    made = await mine.conversations.create("Before")
    turn = await mine.conversations.add_message(made.id, "user", [Message("user", "an old word")], None)
    await mine.conversations.update_message(turn.id, [Message("user", "a new word")], "complete")
    await mine.conversations.rename(made.id, "After")
    assert titles(await mine.search.find("old")) == titles(await mine.search.find("before")) == []
    assert titles(await mine.search.find("new")) == titles(await mine.search.find("after")) == ["After"]
    await mine.conversations.update_message(turn.id, [], "complete")
    assert titles(await mine.search.find("new")) == []


async def test_a_reply_is_found_as_soon_as_it_is_whole_and_with_it_the_title_of_its_question(of: Of) -> None:
    mine = of("alice")
    made = await mine.conversations.create()
    asked = [Message("user", "Where is the heron?")]
    run, _ = await mine.runs.create(made.id, user=asked, parent_id=None, title="Where is the heron")
    assert titles(await mine.search.find("heron")) == ["Where is the heron"]
    await mine.runs.finish(run.id, "complete", epoch=1, parts=[Message("assistant", "In the reeds.")])
    assert lines(await mine.search.find("reeds")) == [("assistant", "In the [reeds].")]
    await mine.conversations.name(made.id, "A grey bird")
    assert titles(await mine.search.find("grey")) == ["A grey bird"]


async def test_a_conversation_that_branched_off_is_found_as_well(of: Of) -> None:
    mine = of("alice")
    made = await talk(mine, "Birds", "Where is the heron?", "In the reeds.", "And then?")
    turns = await mine.conversations.thread(made)
    fork = await mine.whole.fork(made, turns[1].id)
    found = (await mine.search.find("heron")).conversations
    assert [one.conversation.id for one in found] == [fork.id, made]
    assert len((await mine.search.find("birds")).conversations) == 2


async def test_only_the_owners_own_is_found(of: Of) -> None:
    await talk(of("alice"), "Hers secret", "the secret of alice")
    await talk(of("bob"), "His secret", "the secret of bob")
    assert titles(await of("alice").search.find("secret")) == ["Hers secret"]
    assert titles(await of("bob").search.find("secret")) == ["His secret"]
    assert titles(await of("nobody").search.find("secret")) == []
    for asked in ("owner_key", "alice", "o"):
        assert "His secret" not in titles(await of("alice").search.find(asked))


async def test_archived_conversations_are_found_too_and_say_so(of: Of) -> None:
    mine = of("alice")
    away, here = await talk(mine, "Away", "a heron"), await talk(mine, "Here", "a heron")
    await mine.conversations.archive([away])
    folder = await mine.folders.create("Birds")
    await mine.folders.put([here], folder.id)
    found = (await mine.search.find("heron")).conversations
    assert [(one.conversation.title, bool(one.conversation.archived_at), one.folder) for one in found] == [
        ("Here", False, "Birds"),
        ("Away", True, ""),
    ]


async def test_what_is_deleted_is_found_no_more(of: Of) -> None:
    mine = of("alice")
    gone = await talk(mine, "Gone heron", "a heron", "a bird")
    await mine.conversations.delete(gone)
    assert await mine.search.find("heron") == Found()


async def test_titles_come_before_messages_and_of_one_conversation_come_two_messages(of: Of) -> None:
    mine = of("alice")
    await talk(mine, "About the heron", "nothing")
    await talk(mine, "Many", *["a heron here"] * 5)
    found = await mine.search.find("heron")
    assert titles(found) == ["About the heron", "Many"]
    assert [len(one.hits) for one in found.conversations] == [0, HITS]
    for number in range(MOST - 2):
        await talk(mine, f"One more {number}", "a heron")
    found = await mine.search.find("heron")
    assert (len(found.conversations), found.more) == (MOST, frozenset())
    await talk(mine, "One too many", "a heron")
    found = await mine.search.find("heron")
    assert (len(found.conversations), found.more) == (MOST, {"conversations"})


async def test_it_is_told_of_which_kind_more_fits_than_is_shown(of: Of) -> None:
    mine = of("alice")
    made = await mine.conversations.create("Insurance")
    for number in range(MOST + 1):
        await talk(mine, f"Policy {number}", "nothing")
        file = await mine.files.put(f"Policy {number}.pdf", f"words {number}".encode())
        await mine.documents.add(made.id, file.id, file.name)
        await mine.libraries.create(f"Policies {number}")
    found = await mine.search.find("polic")
    assert [len(those) for those in (found.conversations, found.documents, found.libraries)] == [MOST] * 3
    assert found.more == {"conversations", "documents", "libraries"}
    await talk(mine, "One that is long", *["a heron"] * 300)
    await talk(mine, "Newer", "nothing")
    assert (await mine.search.find("heron")).more == {"conversations"}, "older messages were not looked at"


async def test_documents_and_libraries_are_found_by_their_names(of: Of) -> None:
    mine = of("alice")
    made = await mine.conversations.create("Insurance")
    file = await mine.files.put("Hausrat-Police 2024.pdf", b"words")
    document = await mine.documents.add(made.id, file.id, file.name)
    library = await mine.libraries.create("Policen des Hauses")
    found = await mine.search.find("polic")
    assert [(one.id, one.within, one.marks) for one in found.documents] == [(document.id, "Insurance", ((8, 13),))]
    assert [(one.id, one.name) for one in found.libraries] == [(library.id, "Policen des Hauses")]
    assert (await of("bob").search.find("polic")) == Found()


async def test_nothing_typed_gives_the_latest_conversations(of: Of) -> None:
    mine = of("alice")
    for number in range(LATEST + 2):
        await talk(mine, f"Number {number}", "words")
    away = await talk(mine, "Away", "words")
    await mine.conversations.archive([away])
    assert titles(await mine.search.find("  ")) == [f"Number {number}" for number in range(LATEST + 1, 1, -1)]
    assert await mine.search.find("?!") == Found()


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "damage",
    [
        "DROP TABLE message_index",
        "DELETE FROM message_index_data",
        "UPDATE message_index_data SET block = x'00ff00ff' WHERE id > 1",
        "UPDATE message_index_data SET block = x'ff'",
        "DROP TABLE message_index_config",
    ],
)
async def test_a_damaged_or_missing_index_is_made_anew_and_nobody_notices(
    of: Of, database: Database, damage: str
) -> None:
    mine = of("alice")
    for number in range(30):
        await talk(mine, f"Number {number}", f"a heron and bird {number}")
    with closing(sqlite3.connect(database.place)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute(damage)
        connection.commit()
    assert len((await mine.search.find("heron")).conversations) == MOST
    fresh = await talk(mine, "Fresh", "a heron again")
    assert titles(await mine.search.find("heron again")) == ["Fresh"]
    await mine.conversations.delete(fresh)
    with closing(sqlite3.connect(database.place)) as connection:
        connection.execute("INSERT INTO message_index(message_index) VALUES ('integrity-check')")
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_a_message_is_kept_where_the_index_is_gone(of: Of, database: Database) -> None:
    with closing(sqlite3.connect(database.place)) as connection:
        connection.execute("DROP TABLE message_index")
        connection.commit()
    await talk(of("alice"), "Kept", "all the same")
    assert titles(await of("alice").search.find("same")) == ["Kept"]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_an_index_that_is_made_anew_is_the_one_of_the_migration(database: Database) -> None:
    def made(connection: sqlite3.Connection) -> list[str]:
        query = "SELECT sql FROM sqlite_master WHERE name LIKE 'message_%' AND sql NOT NULL ORDER BY name"
        return [str(sql) for (sql,) in connection.execute(query)]

    with closing(sqlite3.connect(database.place)) as connection:
        before = made(connection)
        await database.write(make_index_anew)
        assert made(connection) == before


@settings(max_examples=tries(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    asked=st.text(st.characters(exclude_categories=()), max_size=60)
    | st.text('"*^:(){}-+NEARORANDT \0\ud83d灯é', max_size=40)
)
async def test_whatever_is_typed_is_looked_for_and_never_an_error(of: Of, asked: str) -> None:
    mine = of("alice")
    if not await mine.conversations.list():
        await talk(mine, "NEAR and OR", "words AND 灯塔 é")
    found = await mine.search.find(asked)
    for one in found.conversations:
        for begin, end in one.marks:
            assert 0 <= begin < end <= len(one.conversation.title)


@pytest.mark.parametrize(
    "asked", ['"', "NEAR(a b)", "***", "a" * 10_000, "a " * 5_000, "灯" * 10_000, "\ud83d", "owner_key : x"]
)
async def test_what_looks_like_a_language_of_questions_is_none(of: Of, asked: str) -> None:
    assert await of("alice").search.find(asked) == Found()


@settings(max_examples=tries(200), deadline=None)
@given(text=st.text(max_size=400), asked=st.text(max_size=20))
async def test_the_marks_of_a_line_stand_within_it_one_after_the_other(text: str, asked: str) -> None:
    assert len(plain(text)) == len(text)
    assert "\0" not in spaced(text)
    line = excerpt(text, Sought.of(asked))
    ends = [0, *(place for mark in line.marks for place in mark), len(line.text)]
    assert ends == sorted(ends)
    assert all(begin < end for begin, end in line.marks)


async def test_the_line_of_a_long_text_is_where_most_of_the_words_are() -> None:
    text = "storm " * 30 + "word " * 2_000 + "and here a storm takes the deductible away " + "word " * 2_000
    line = excerpt(text, Sought.of("deductible storm"))
    assert line.text.startswith("… ")
    assert len(line.text) <= 202
    assert [line.text[begin:end] for begin, end in line.marks] == ["storm", "deductible"]


async def test_words_that_overlap_are_marked_once() -> None:
    assert marked("stormy storms", Sought.of("storms storm")) == ((0, 5), (7, 13))
