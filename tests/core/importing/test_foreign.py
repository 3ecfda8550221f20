"""Exports of four other applications, in the shapes that they document, and what is left out of them."""

from __future__ import annotations

import asyncio
import base64
import json
import zipfile
from collections import Counter
from io import BytesIO
from itertools import count
from pathlib import Path
from time import thread_time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import UnsupportedFormatError
from core.export.bundle import bundled
from core.importing import chatgpt as chatgpt_reader
from core.importing import claude as claude_reader
from core.importing import json_elements, open_webui
from core.importing.catalog import READERS
from core.importing.importing import Imported, bring_in
from core.importing.json_elements import ElementError, elements
from core.importing.problems import problem
from core.importing.tree import BrokenTreeError, Foreign, arrived, moment
from core.storage.base import StoredMessage
from core.storage.stores import OwnerStores
from tests.core.importing.talks import Home, home
from tests.stored_files import stored
from tests.tries import tries

pytestmark = pytest.mark.anyio

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def gpt(key: str, parent: str | None, role: str, *parts: Any, at: float = 0.0, **metadata: Any) -> tuple[str, Any]:
    kind = "text" if all(isinstance(one, str) for one in parts) else "multimodal_text"
    message = {
        "id": key,
        "author": {"role": role},
        "create_time": 1_700_000_000 + at,
        "content": {"content_type": kind, "parts": list(parts)},
        "metadata": metadata,
    }
    return key, {"id": key, "parent": parent, "children": [], "message": message}


def chatgpt() -> dict[str, Any]:
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_abc"}
    hidden = {"is_visually_hidden_from_conversation": True}
    code: Any = {"content_type": "code", "language": "python", "text": "print(1)"}
    called = gpt("a1", "q1", "assistant", at=3, model_slug="gpt-4o")
    called[1]["message"]["content"] = code
    nodes = [
        ("root", {"id": "root", "parent": None, "message": None, "children": []}),
        gpt("s", "root", "system", "Be brief.", **hidden),
        gpt("q1", "s", "user", "What is it?", picture, {"asset_pointer": "file-service://file-gone"}, at=1),
        called,
        gpt("t1", "a1", "tool", "1", at=4),
        gpt("a2", "t1", "assistant", "It is 1.", at=5, model_slug="gpt-4o"),
        gpt("b1", "q1", "assistant", "Another.", at=6, model_slug="o3"),
    ]
    return {"title": "T" * 10_000, "create_time": 1_700_000_000, "current_node": "a2", "mapping": dict(nodes)}


CLAUDE: dict[str, Any] = {
    "uuid": "c",
    "name": "Tea",
    "created_at": "2024-05-01T10:00:00.000000Z",
    "updated_at": "2024-05-01T11:00:00.000000Z",
    "chat_messages": [
        {
            "uuid": "1",
            "sender": "human",
            "text": "Which tea?",
            "content": [{"type": "text", "text": "Which tea?"}],
            "created_at": "2024-05-01T10:00:01Z",
            "attachments": [{"file_name": "list.pdf", "extracted_content": "green, black"}],
            "files": [{"file_name": "list.pdf"}, {"file_name": "photo.jpg"}],
        },
        {
            "uuid": "2",
            "sender": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm."},
                {"type": "tool_use", "name": "search", "input": {}},
                {"type": "text", "text": "Green."},
            ],
            "created_at": "2024-05-01T10:00:02Z",
        },
    ],
}
THOUGHT = '<details type="reasoning" done="true">\n<summary>Thought</summary>\n&gt; Hm.\n</details>\n'
OPEN_WEBUI: dict[str, Any] = {
    "id": "o",
    "title": "图片",
    "created_at": 1_700_000_000,
    "updated_at": 1_700_000_100,
    "chat": {
        "history": {
            "currentId": "a1",
            "messages": {
                "q": {
                    "id": "q",
                    "parentId": None,
                    "childrenIds": ["a1", "a2"],
                    "role": "user",
                    "content": "这是什么？",
                    "timestamp": 1_700_000_001,
                    "files": [
                        {"type": "image", "url": f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"},
                        {"type": "file", "name": "a.pdf", "file": {"data": {"content": "text of it"}}},
                        {"type": "file", "name": "gone.pdf"},
                    ],
                },
                "a1": {
                    "id": "a1",
                    "parentId": "q",
                    "role": "assistant",
                    "modelName": "qwen3",
                    "content": f"{THOUGHT}猫。",
                    "timestamp": 1_700_000_002,
                },
                "a2": {"id": "a2", "parentId": "q", "role": "assistant", "content": "狗。", "timestamp": 1_700_000_003},
            },
        }
    },
}
LIBRECHAT: dict[str, Any] = {
    "conversationId": "l",
    "endpoint": "openAI",
    "title": "Branches",
    "exportAt": "10:00:00 GMT",
    "branches": True,
    "recursive": True,
    "options": {"model": "gpt-4o"},
    "messages": [
        {
            "messageId": "1",
            "parentMessageId": "00000000-0000-0000-0000-000000000000",
            "isCreatedByUser": True,
            "text": "Hi",
            "createdAt": "2024-05-01T10:00:01Z",
            "files": [{"filename": "a.png"}],
            "children": [
                {"messageId": "2", "text": "Hello", "createdAt": "2024-05-01T10:00:02Z", "children": []},
                {
                    "messageId": "3",
                    "content": [{"type": "think", "think": "Hm."}, {"type": "text", "text": {"value": "Hey"}}],
                    "createdAt": "2024-05-01T10:00:03Z",
                },
            ],
        }
    ],
}


async def brought(of: Home, folder: Path, made: Any) -> tuple[Imported, list[StoredMessage]]:
    path = folder / "export.json"
    path.write_bytes(made if isinstance(made, bytes) else json.dumps(made).encode())
    imported = await bring_in(path, of.stores)
    return imported, await of.stores.conversations.thread(imported.conversations[0])


def copied(one: dict[str, Any], **own: Any) -> dict[str, Any]:
    return {**json.loads(json.dumps(one)), **own}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (chatgpt(), {"conversation_id": "another", "id": "another"}),
        (CLAUDE, {"uuid": "another"}),
        (OPEN_WEBUI, {"id": "another"}),
        (LIBRECHAT, {"conversationId": "another"}),
    ],
)
async def test_a_conversation_is_here_already_only_where_its_own_id_is(
    tmp_path: Path, one: dict[str, Any], other: dict[str, Any]
) -> None:
    """Two may hold the same messages: one that was copied, or went on from another."""
    both, path = [one, copied(one, **other)], tmp_path / "export.json"
    async with home(tmp_path) as of:

        async def comes(made: Any, **how: Any) -> tuple[int, int]:
            path.write_text(json.dumps(made))
            told = await bring_in(path, of.stores, **{"unless_there": (), **how})
            return len(told.conversations), len(told.here)

        assert await comes([one]) == (1, 0)
        assert await comes(both) == (1, 1)
        assert await comes(both) == (0, 2)
        assert await comes(both[1:]) == (0, 1)
        assert await comes(both, unless_there=None) == (2, 0)
        assert await comes(both) == (0, 2)
    async with home(tmp_path / "fresh") as of:
        assert await comes(both) == (2, 0)
        assert await comes(both) == (0, 2)


def zipped(files: dict[str, bytes]) -> bytes:
    sink = BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return sink.getvalue()


async def test_chatgpts_branches_pictures_and_steps_come_in(tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        made = zipped({"conversations.json": json.dumps([chatgpt()]).encode(), "file_abc-cat.png": PIXEL})
        imported, thread = await brought(of, tmp_path, made)
        assert imported.source == "ChatGPT"
        assert [turn.role for turn in thread] == ["user", "assistant"]
        assert thread[0].parts[0].get_text_content() == "What is it?"
        assert [item.type for item in thread[0].parts[0].items] == ["text", "image"]
        assert [part.get_text_content() for part in thread[1].parts] == ["```python\nprint(1)\n```", "It is 1."]
        versions = await of.stores.conversations.siblings(thread[1].id)
        assert [one.parts[-1].get_text_content() for one in versions] == ["It is 1.", "Another."]
        assert (await of.stores.runs.get(thread[1].run_id or "")).model == "gpt-4o"
        assert len((await of.stores.conversations.get(imported.conversations[0])).title) == 200
        assert imported.left_out == {"hidden": 1, "files": 1, "tool_results": 1}
        assert thread[0].created_at == 1_700_000_001


async def test_claudes_thoughts_and_texts_of_files_come_in(tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        imported, thread = await brought(of, tmp_path, [CLAUDE])
        assert imported.source == "Claude"
        assert (await of.stores.conversations.get(imported.conversations[0])).title == "Tea"
        assert (thread[1].parts[0].content, thread[1].parts[0].reasoning_content) == ("Green.", "Hm.")
        (about,) = (thread[0].parts[0].extra or {})["files"]
        assert about["name"] == "list.pdf.txt"
        _, path = await stored(of.stores.files, about["id"])
        assert path.read_text("utf-8") == "green, black"
        assert imported.left_out == {"files": 1, "tool_results": 1}


async def test_open_webuis_pictures_and_versions_come_in(tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        imported, thread = await brought(of, tmp_path, [OPEN_WEBUI])
        assert imported.source == "Open WebUI"
        assert [item.type for item in thread[0].parts[0].items] == ["text", "image", "file"]
        assert thread[1].parts[0].get_text_content() == "猫。"
        assert thread[1].parts[0].reasoning_content == "Hm."
        assert len(await of.stores.conversations.siblings(thread[1].id)) == 2
        assert imported.left_out == {"files": 1}


async def test_librechats_tree_comes_in(tmp_path: Path) -> None:
    async with home(tmp_path) as of:
        imported, thread = await brought(of, tmp_path, LIBRECHAT)
        assert imported.source == "LibreChat"
        assert [turn.parts[0].get_text_content() for turn in thread] == ["Hi", "Hey"]
        assert thread[1].parts[0].reasoning_content == "Hm."
        assert len(await of.stores.conversations.siblings(thread[1].id)) == 2
        assert imported.left_out == {"files": 1}


async def test_a_conversation_without_a_title_is_called_by_its_first_question(tmp_path: Path) -> None:
    for one, expected in (
        ({**chatgpt(), "title": ""}, "What is it?"),
        ({**chatgpt(), "title": " Mine\n"}, "Mine"),
        ({"title": None, "mapping": dict([gpt("a", None, "assistant", "Hello.")])}, ""),
    ):
        came = arrived(chatgpt_reader.read(one, Counter(), lambda _: ""), Counter(), lambda _: None)
        assert came is not None
        assert came.row["title"] == expected


async def test_a_conversation_in_a_circle_and_what_is_none_are_left_out_and_the_others_come_in(tmp_path: Path) -> None:
    broken = chatgpt()
    broken["mapping"]["q1"]["parent"] = "a2"
    async with home(tmp_path) as of:
        imported, _ = await brought(of, tmp_path, [None, broken, chatgpt(), {"mapping": {}}, {"odd": 1}, "junk", 3, []])
        assert len(imported.conversations) == 1
        assert (imported.left_out["broken"], imported.left_out["empty"]) == (6, 1)


async def test_twenty_thousand_rows_come_in_and_an_end_that_is_missing_takes_all_back(tmp_path: Path) -> None:
    def talk(number: int) -> dict[str, Any]:
        nodes = (
            gpt(f"{at}", f"{at - 1}" if at else None, ("user", "assistant")[at % 2], f"Say {at}", at=at)
            for at in range(100)
        )
        return {"title": f"Talk {number}", "mapping": dict(nodes)}

    made = json.dumps([talk(number) for number in range(200)]).encode()
    some = json.dumps([talk(number) for number in range(20)]).encode()
    async with home(tmp_path) as of:
        before = of.rows()
        with pytest.raises(UnsupportedFormatError) as raised:
            await brought(of, tmp_path, some[:-2])
        assert raised.value.words_key == "import_damaged_itself"
        assert of.rows() == before
        shares: list[float] = []
        (tmp_path / "all.json").write_bytes(made)
        imported = await bring_in(tmp_path / "all.json", of.stores, told=shares.append)
        assert (len(imported.conversations), imported.messages) == (200, 20_000)
        assert shares == sorted(shares)
        assert len(shares) > 5
        assert shares[-1] == 1.0


async def test_many_come_in_by_and_by_nobody_waits_long_to_write_and_none_is_seen_before_the_last(
    tmp_path: Path,
) -> None:
    talks = [{**chatgpt(), "title": f"Talk {number}"} for number in range(160)]
    async with home(tmp_path) as of:
        there = await of.stores.conversations.list(temporary=True)
        seen: list[asyncio.Task[int]] = []

        async def written() -> int:
            await of.stores.conversations.rename(of.id, "Meanwhile")
            return len(await of.stores.conversations.list())

        def told(share: float) -> None:
            if share > 0.3 and share < 1:
                seen.append(asyncio.get_running_loop().create_task(written()))

        (tmp_path / "all.json").write_text(json.dumps(talks))
        imported = await bring_in(tmp_path / "all.json", of.stores, told=told)
        assert len(seen) >= 3
        counts = await asyncio.gather(*seen)
        assert set(counts[:-1]) == {len(there)}  # the last of them may come after the end
        listed = await of.stores.conversations.list()
        assert len(listed) == 160 + len(there)
        assert {one.id for one in listed} >= set(imported.conversations)
        assert [await of.stores.conversations.settings(one) for one in imported.conversations[:3]] == [{}, {}, {}]
        assert max(one.updated_at for one in listed if one.id in imported.conversations) < 1_800_000_000

        def breaks(share: float) -> None:
            if share > 0.7:
                raise OSError("The disk is gone.")

        with pytest.raises(OSError, match="gone"):
            await bring_in(tmp_path / "all.json", of.stores, told=breaks)
        assert len(await of.stores.conversations.list(temporary=True)) == len(listed)


@pytest.mark.parametrize("kind", ["export", "bundle"])
async def test_one_long_conversation_is_looked_at_turn_by_turn_and_what_ends_it_anywhere_leaves_nothing(
    tmp_path: Path, kind: str
) -> None:
    nodes = (
        gpt(f"{at}", f"{at - 1}" if at else None, ("user", "assistant")[at % 2], f"Say {at}", at=at)
        for at in range(600)
    )
    (tmp_path / "long.json").write_text(json.dumps([{"title": "Long", "mapping": dict(nodes)}]))
    async with home(tmp_path) as of:
        path = tmp_path / "long.json"
        if kind == "bundle":
            (long,) = (await bring_in(path, of.stores)).conversations
            path = tmp_path / "long.zip"
            path.write_bytes(b"".join([piece async for piece in bundled(of.exporting, of.stores, [long])]))
        looks = await _looks(path, of.of("somebody"))
        assert looks > 2 * 600  # as it is read, and as it is stored
        before = of.rows()
        for last in (1, looks // 4, looks // 2, 3 * looks // 4, looks):
            with pytest.raises(UnsupportedFormatError, match="called off"):
                await _looks(path, of.stores, last)
            assert of.rows() == before


async def _looks(path: Path, stores: OwnerStores, last: int = 0) -> int:
    """Bring a file in, and end it at look number `last`; how often was looked."""
    looks = count(1)
    seen = 0

    def look() -> None:
        nonlocal seen
        seen = next(looks)
        if seen == last:
            raise problem("import_stopped", file=path.name)

    await bring_in(path, stores, look=look)
    return seen


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "mapping",
                        "message",
                        "author",
                        "role",
                        "content",
                        "parts",
                        "parent",
                        "id",
                        "text",
                        "type",
                        "user",
                    ),
                    *("chat_messages", "sender", "human", "uuid", "chat", "history", "messages", "files", "children"),
                    *(
                        "conversationId",
                        "messageId",
                        "parentMessageId",
                        "metadata",
                        "attachments",
                        "create_time",
                        "title",
                    ),
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@settings(max_examples=tries(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(["mapping", "chat_messages", "chat", "messages", "conversationId"]), JSON))
async def test_whatever_a_file_says_a_reader_gives_a_tree_or_refuses(one: dict[str, Any]) -> None:
    for reader in READERS:
        if reader.takes(one):
            try:
                found = reader.read(one, Counter(), lambda _: "")
                made = arrived(found, Counter(), lambda _: None) if isinstance(found, Foreign) else found
            except BrokenTreeError:
                continue
            known: set[str | None] = {None}
            for turn in made.turns if made is not None else ():
                assert turn.row["parent_id"] in known
                known.add(turn.row["id"])
                json.dumps(turn.row, allow_nan=False).encode()


@settings(max_examples=tries(150), deadline=None)
@given(st.lists(JSON, max_size=5), st.integers(0, 3))
async def test_a_list_is_read_as_json_reads_it(rows: list[Any], gap: int) -> None:
    text = json.dumps(rows, indent=gap or None, ensure_ascii=gap == 1).encode(errors="replace")
    read = list(elements(BytesIO(text), 1 << 20))
    assert json.dumps(read) == json.dumps(json.loads(text))
    for cut in range(1, len(text), max(1, len(text) // 7)):
        with pytest.raises(ElementError):
            list(elements(BytesIO(text[:-cut]), 1 << 20))


async def test_a_file_that_is_made_to_take_long_is_read_as_fast_as_any(tmp_path: Path) -> None:
    """Each of these took minutes or hours, the first with the whole house standing still."""
    openings = '<details type="reasoning"><summary></summary>' * 20_000
    half = '<details type="x"' * 20_000
    entry = "file-a.png"
    pictures = [{"asset_pointer": f"sediment://{entry}"}] * 20_000
    nodes = {
        "a": {
            "message": {
                "author": {"role": "user"},
                "content": {"parts": pictures},
                "metadata": {"attachments": [{"id": "file-b", "name": "b.png"}] * 20_000},
            }
        }
    }
    thinking = [{"type": "thinking", "thinking": "Hm. " * 100}] * 20_000
    began = thread_time()
    for text in (openings, half):
        message = {"id": "a", "role": "assistant", "content": text}
        made = open_webui.read({"chat": {"history": {"messages": {"a": message}}}}, Counter(), lambda _: "")
        assert made.nodes[0].text == text
    chatgpt_reader.read({"mapping": nodes}, Counter(), lambda beginning: f"{beginning[:6]}.png")
    claude_reader.read({"chat_messages": [{"sender": "assistant", "content": thinking}]}, Counter(), lambda _: "")
    for one in (b"{}", b"1", b'"a"'):
        assert sum(1 for _ in elements(BytesIO(b"[" + one + (b"," + one) * 100_000 + b"]"), 1 << 20)) == 100_001
    assert thread_time() - began < 5


@pytest.mark.parametrize("given_time", [None, True, "", "soon", -1, 1e300, float("nan"), {}, [], "0001-01-01"])
async def test_a_time_that_is_none_is_none(given_time: Any) -> None:
    assert moment(given_time) is None


async def test_times_are_read_in_each_form() -> None:
    assert moment(1_700_000_000) == moment(1_700_000_000_000) == 1_700_000_000
    assert moment("2023-11-14T22:13:20Z") == 1_700_000_000


@pytest.mark.parametrize("one", [b"{}", b"[]", b"1.5", b'{"a":"b"}', b'""'])
async def test_a_conversation_of_very_many_small_values_is_too_large_for_memory_whatever_its_bytes(
    one: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read, each takes up to a hundred times the room that it has in the file."""
    monkeypatch.setattr(json_elements, "MOST_VALUES", 500_000)
    half = (json_elements.MOST_VALUES // (one.count(b"{") + one.count(b"[") + 1) // 2) * (one + b",")
    begin, end = b'[{"mapping":[', b'0]},{"last":1}]'
    assert len(list(elements(BytesIO(begin + half + end), 128 << 20))) == 2
    with pytest.raises(ElementError) as refused:
        list(elements(BytesIO(begin + half * 3 + end), 128 << 20))
    assert refused.value.large


async def test_a_long_text_is_one_value_however_many_commas_it_has() -> None:
    text = json.dumps([{"a": "well, " * 100_000}] * 3).encode()
    assert len(list(elements(BytesIO(text), 128 << 20))) == 3
