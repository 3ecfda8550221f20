"""An assistant reads the files, folders and patterns that it was given, and says how far it is."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from core import Assistant, Message
from core.agents.file_library import FileLibrary, read_files
from core.errors import BrokenDocumentError, DocumentError, SettingsError
from core.rag.config import RAGConfig
from core.rag.library import Library
from core.testing.scripted_model import ScriptedModel

BROKEN = b"%PDF-1.7 and nothing more"


def written(folder: Path, **texts: str) -> Path:
    """The folder with text files of these names and texts."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def names(library: FileLibrary, *more: str) -> list[str]:
    """What its documents are called, in their order."""
    found, ids = library.with_files(more)
    return [found.document(one).name for one in ids]


def library_of(*files: Path | str) -> FileLibrary:
    return FileLibrary([str(one) for one in files], RAGConfig())


def test_a_folder_is_its_files_and_those_of_folders_inside_it_without_hidden_ones(tmp_path: Path) -> None:
    folder = written(tmp_path / "docs", b="The sea is blue.", a="The sky is green.")
    written(folder / "inner", c="The sun is red.")
    written(folder / ".git", d="Nobody reads this.")
    (folder / ".hidden.txt").write_text("Nor this.")
    assert names(library_of(folder)) == ["a.txt", "b.txt", "c.txt"]


def test_a_pattern_is_the_files_that_it_matches(tmp_path: Path) -> None:
    folder = written(tmp_path / "docs", b="The sea is blue.", a="The sky is green.")
    written(folder / "inner", c="The sun is red.")
    assert names(library_of(folder / "[ab].txt")) == ["a.txt", "b.txt"]
    assert names(library_of(folder / "**/c*")) == ["c.txt"]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "a[1].txt").write_text("The sky is green.")
    assert names(library_of(tmp_path / "a[1].txt")) == ["a[1].txt"]


def test_what_is_put_into_a_folder_later_is_found_at_the_next_question(tmp_path: Path) -> None:
    folder = written(tmp_path / "docs", a="The sky is green.")
    library = library_of(folder)
    assert names(library) == ["a.txt"]
    written(folder, b="The sea is blue.")
    (folder / "a.txt").unlink()
    assert names(library) == ["b.txt"]


def test_in_a_folder_what_is_damaged_or_no_document_is_passed_over_and_not_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = written(tmp_path / "docs", a="The sky is green.")
    (folder / "broken.pdf").write_bytes(BROKEN)
    (folder / "program.exe").write_bytes(b"MZ\x90\x00" + bytes(range(256)) * 8)
    library = library_of(folder)
    assert names(library) == ["a.txt"]
    assert "broken.pdf" in caplog.text
    caplog.clear()
    assert names(library) == ["a.txt"]
    assert not caplog.text


def test_a_damaged_file_that_was_named_itself_is_an_error_though_its_folder_was_given_too(tmp_path: Path) -> None:
    folder = written(tmp_path / "docs", a="The sky is green.")
    (folder / "broken.pdf").write_bytes(BROKEN)
    with pytest.raises(DocumentError):
        names(library_of(folder / "broken.pdf", folder))
    with pytest.raises(DocumentError):
        names(library_of(folder, folder / "broken.pdf"))


def test_a_folder_with_more_files_than_anybody_means_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.agents.file_library._MOST_FILES", 2)
    folder = written(tmp_path / "docs", a="a", b="b", c="c")
    with pytest.raises(SettingsError, match=r"has more than 2 files\. Give a smaller folder"):
        library_of(folder)


def test_a_folder_that_is_gone_at_the_question_says_so(tmp_path: Path) -> None:
    folder = written(tmp_path / "docs", a="The sky is green.")
    library = library_of(folder)
    (folder / "a.txt").unlink()
    folder.rmdir()
    with pytest.raises(BrokenDocumentError, match="There is no file 'docs' in"):
        names(library)


def test_links_to_nothing_pipes_and_what_vanishes_in_a_folder_stop_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path / "docs", a="The sky is green.", b="The sea is blue.")
    (folder / "nowhere.txt").symlink_to(tmp_path / "nowhere")
    os.mkfifo(folder / "pipe.txt")
    library = library_of(folder)
    assert names(library) == ["a.txt", "b.txt"]
    here = [folder / name for name in ("a.txt", "b.txt", "gone.txt")]
    monkeypatch.setattr("core.agents.file_library._in_folder", lambda _: iter(here))
    assert names(library) == ["a.txt", "b.txt"]


def test_a_file_that_may_not_be_opened_is_passed_over_in_a_folder_and_an_error_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path / "docs", a="The sky is green.", b="Nobody may read this.")
    opened = Path.open

    def shut(self: Path, *arguments: Any, **options: Any) -> Any:
        if self.name == "b.txt":
            raise PermissionError(13, "Permission denied")
        return opened(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", shut)
    assert names(library_of(folder)) == ["a.txt"]
    with pytest.raises(DocumentError, match=r"'b.txt' cannot be opened: Permission denied\. Let Parlour"):
        names(library_of(folder / "b.txt"))


@pytest.mark.parametrize("pattern", ["**/*.txt", "**/*.pdf"])
def test_links_that_lead_back_up_are_not_followed(tmp_path: Path, pattern: str) -> None:
    folder = written(tmp_path / "docs", a="The sky is green.")
    for name in ("one", "other"):
        (folder / name).symlink_to(folder, target_is_directory=True)
    if pattern.endswith("pdf"):
        with pytest.raises(BrokenDocumentError, match="No file matches"):
            library_of(folder / pattern)
    else:
        assert names(library_of(folder / pattern)) == ["a.txt"]
    assert names(library_of(folder)) == ["a.txt"]


def test_what_is_no_pattern_is_refused_in_a_sentence(tmp_path: Path) -> None:
    written(tmp_path / "docs", a="The sky is green.")
    if sys.version_info < (3, 13):
        with pytest.raises(SettingsError, match=r"is no pattern: .*Write it as 'docs/\*\*/\*.pdf'"):
            library_of(tmp_path / "docs" / "**a")


@pytest.mark.anyio
async def test_who_stops_asking_stops_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path / "docs", a="The sky is green.")
    begun, ended = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def add(_: Library, path: Path, *, cancelled: threading.Event, **__: Any) -> Any:
        loop.call_soon_threadsafe(begun.set)
        if cancelled.wait(60):
            ended.set()
        raise DocumentError("It was cancelled.", key="document_cancelled")

    monkeypatch.setattr(Library, "add", add)
    asking = asyncio.create_task(read_files(library_of(folder), (), "en"))
    await begun.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await asyncio.to_thread(ended.wait, 60)


def test_equal_files_are_read_once_and_named_once(tmp_path: Path) -> None:
    folder = written(tmp_path / "docs", a="The sky is green.", b="The sky is green.")
    assert len(names(library_of(folder, folder / "a.txt"))) == 1


@pytest.mark.parametrize(("lang", "said"), [("en", "Reading a.txt"), ("zh", "正在读取 a.txt")])
def test_a_program_is_told_what_is_read_while_it_is_read(tmp_path: Path, lang: str, said: str) -> None:
    folder = written(tmp_path / "docs", a="The sky is green.", b="The sea is blue.")
    told: list[tuple[Any, ...]] = []
    agent = Assistant(llm=ScriptedModel("Green."), files=[str(folder)])
    list(agent.run([Message("user", "What colour is the sky?")], lang=lang, progress=lambda *one: told.append(one)))
    reading = [one for one in told if one[0] == "documents"]
    assert said in [one[1] for one in reading]
    assert {one[3] for one in reading} == {2}
    assert all(0 <= one[2] <= 2 for one in reading)


def test_pages_are_told_where_there_are_pages(tmp_path: Path, three_pages: Path) -> None:
    told: list[tuple[Any, ...]] = []
    agent = Assistant(llm=ScriptedModel("Yes."), files=[str(three_pages)])
    list(agent.run([Message("user", "What stands there?")], progress=lambda *one: told.append(one)))
    assert ("documents", f"Reading {three_pages.name}: page 3 of 3", 0, 1) in told


@pytest.fixture
def three_pages(tmp_path: Path) -> Path:
    import pymupdf

    document: Any = pymupdf.open()
    for page in range(3):
        document.new_page().insert_text((60, 60), f"Page {page + 1} speaks of lanterns and of harbours.")
    document.save(tmp_path / "pages.pdf")
    return tmp_path / "pages.pdf"


def test_a_progress_function_that_raises_does_not_stop_the_reading(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = written(tmp_path / "docs", a="The sky is green.")

    def follow(*_: object) -> None:
        raise RuntimeError("not today")

    agent = Assistant(llm=ScriptedModel("Green."), files=[str(folder)])
    *_, last = agent.run([Message("user", "What colour is the sky?")], progress=follow)
    assert last[-1].get_text_content().startswith("Green.")
    assert "not today" in caplog.text


def test_a_progress_function_that_ends_the_program_ends_it(tmp_path: Path) -> None:
    folder = written(tmp_path / "docs", a="The sky is green.")
    agent = Assistant(llm=ScriptedModel("Green."), files=[str(folder)])
    with pytest.raises(SystemExit):
        list(agent.run([Message("user", "What colour is the sky?")], progress=lambda *_: sys.exit(3)))


def test_of_several_files_the_one_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("The harbour is deep.")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 and nothing behind it")
    files = FileLibrary([tmp_path / "good.txt", tmp_path / "broken.pdf"], RAGConfig(index_path=str(tmp_path / "index")))
    with pytest.raises(BrokenDocumentError, match=r"^broken\.pdf: "):
        files.with_files([])
