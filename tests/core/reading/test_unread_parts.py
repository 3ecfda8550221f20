"""Of an archive or a letter it is said by name which of its files could not be read."""

from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from core.engine import Engine
from core.languages import Lang
from core.rag.attached import in_library, listed
from core.rag.coverage import covered
from core.rag.not_read import told
from core.rag.parsers import parts
from core.rag.unread_parts import chunks_of_text
from core.settings import Settings
from core.storage.base import DocumentRecord
from core.testing.scripted_model import ScriptedModel
from tests.core.reading.held_reading import is_read
from tests.core.talks import world_of
from webui.words import Words

pytestmark = pytest.mark.anyio

NOTES = b"# The vault\n\nThe vault opens with heliotrope."
NOISE = bytes(range(256)) * 4


@pytest.fixture
async def engine(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Engine]:
    async with Engine(Settings.load(home=tmp_path / "home", retrieval="keyword"), model=ScriptedModel()) as running:
        yield running


def archive(files: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as zipped:
        for name, data in files.items():
            zipped.writestr(name, data)
    return made.getvalue()


async def read(engine: Engine, data: bytes, name: str = "post.zip") -> DocumentRecord:
    world = world_of(engine, "alice")
    talk = await engine.stores.of("alice").conversations.create()
    file = await engine.stores.of("alice").files.put(name, data)
    return await is_read(engine, (await world.intake.add(talk.id, file)).id)


def said(record: DocumentRecord, lang: str) -> str:
    return Words(lang).error(record.error or {})


async def test_the_files_that_were_not_read_are_named_in_their_order_also_those_within_files(engine: Engine) -> None:
    inner = archive({"deep.bin": NOISE, "fine.md": NOTES})
    record = await read(engine, archive({"notes.md": NOTES, "x.bin": NOISE, "inner.zip": inner, "empty.txt": b""}))
    assert record.status == "ready"
    assert said(record, "en").startswith(
        "Not read of post.zip: empty.txt, inner.zip/deep.bin, x.bin. Its text says why."
    )
    assert said(record, "zh").startswith("post.zip 中未能读取：empty.txt，inner.zip/deep.bin，x.bin。")


async def test_three_are_named_and_the_others_counted_with_those_beyond_the_most_that_is_read(
    engine: Engine,
) -> None:
    many = {f"{number}.bin": NOISE for number in range(1, 6)}
    record = await read(engine, archive({"notes.md": NOTES, **many}))
    assert said(record, "en").startswith("Not read of post.zip: 1.bin, 2.bin, 3.bin, and 2 more. ")
    assert said(record, "zh").startswith("post.zip 中未能读取：1.bin，2.bin，3.bin，另有 2 个。")
    over = {f"{number}.md": b"words %d" % number for number in range(parts.MOST + 2)}
    record = await read(engine, archive({"00.bin": NOISE, **over}), "long.zip")
    assert said(record, "en").startswith("Not read of long.zip: 00.bin, and 3 more. ")


async def test_bytes_that_were_read_before_are_told_of_alike(engine: Engine) -> None:
    data = archive({"notes.md": NOTES, "x.bin": NOISE})
    first, second = await read(engine, data), await read(engine, data, "copy.zip")
    assert (second.facts or {}).get("known")
    assert said(first, "en").startswith("Not read of post.zip: x.bin.")
    assert said(second, "en").startswith("Not read of copy.zip: x.bin.")


async def test_an_archive_of_which_all_was_read_says_nothing_and_what_a_file_says_of_itself_is_no_name(
    engine: Engine,
) -> None:
    assert (await read(engine, archive({"notes.md": NOTES}))).error is None
    told = parts.NOT_READ.format(*parts.REASONS["broken"])
    record = await read(engine, archive({"sly.md": f"I was not there. {told} Or so.".encode(), "x.bin": NOISE}))
    assert said(record, "en").startswith("Not read of post.zip: x.bin.")


async def test_that_a_file_was_not_read_is_no_passage_of_its_archive(engine: Engine) -> None:
    record = await read(engine, archive({"notes.md": NOTES, "x.bin": NOISE, "empty.txt": b""}))
    library_id = str(record.library_id)
    async with engine.workspaces.open("alice") as workspace:
        library = await workspace.index()
        for question in (
            "Not read: files of this kind are not read.",
            "未读取：不支持这种格式",
            "What opens the vault?",
        ):
            found = [*library.find(question, 1), *library.holding(question, 5), *library.first_passages(5)]
            assert {one.heading for one in found} <= {"notes.md > The vault"}, question
        assert library.find("which files are not read in the vault", 1), "another one comes in its place"
        whole, full = library.context.whole([library_id]), library.context.full_text([library_id], 1000)
        assert [one.text for one in whole] == [one.text for one in full or ()] == ["The vault opens with heliotrope."]
        assert len(library.context.whole([library_id], unread=True)) == 3
        (document,) = library.documents()
        coverage = covered(whole, whole, [document])
        assert coverage.counts() == {"passage": (1, 1, 0)}
        assert chunks_of_text(library, document) == 1


@pytest.mark.parametrize(
    ("lang", "said"),
    [
        ("en", "post.zip (ZIP, read, not read of what is in it: a.bin; b.bin; c.bin; d.bin; e.bin; and 2 more)"),
        ("zh", "post.zip（ZIP，已读，其中未读取：a.bin；b.bin；c.bin；d.bin；e.bin；另有 2 个）"),
    ],
)
async def test_a_model_is_told_once_and_in_its_readers_language_which_files_were_not_read(
    engine: Engine, lang: Lang, said: str
) -> None:
    record = await read(engine, archive({"notes.md": NOTES, **{f"{letter}.bin": NOISE for letter in "abcdefg"}}))
    files = await world_of(engine, "alice").intake.attached(str(record.conversation_id))
    assert listed(files, lang).count(said) == 1
    async with engine.workspaces.open("alice") as workspace:
        assert said in listed(in_library(await workspace.index(), [str(record.library_id)]), lang)


def test_what_stands_in_its_place_is_shown_in_one_language() -> None:
    for reason in parts.REASONS.values():
        kept = parts.NOT_READ.format(*reason)
        assert told(kept, "en") == f"Not read: {reason[0]}."
        assert told(kept, "zh") == f"未读取：{reason[1]}。"
    kept = parts.NOT_READ_BEYOND.format(rest=17, most=200)
    assert told(kept, "en") == "Not read: 17 more files, beyond the first 200."
    assert told(kept, "zh") == "未读取：前 200 个以外的 17 个文件。"
    assert told("Not read: the letter.", "zh") == "Not read: the letter."


async def test_an_archive_whose_first_file_is_a_pdf_is_an_archive(engine: Engine) -> None:
    record = await read(engine, archive({"a.pdf": b"%PDF-1.4 and nothing more", "notes.md": NOTES}))
    assert record.status == "ready"
    assert said(record, "en").startswith("Not read of post.zip: a.pdf.")
