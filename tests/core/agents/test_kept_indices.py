"""What a program's files say is read once for all runs, and what nobody uses goes."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from core import Assistant, Message
from core.agents import kept_indices
from core.agents.file_library import FileLibrary
from core.agents.kept_indices import kept_index, remove_unused
from core.rag.config import RAGConfig
from core.testing.scripted_model import ScriptedModel

DAY = 24 * 3600.0


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kept_indices, "place", lambda: tmp_path / "indices")
    return tmp_path / "indices"


def told(library: FileLibrary, *more: str) -> list[str]:
    """Names of the files that are read for a question."""
    heard: list[str] = []
    library.with_files(more, lambda name, _progress, _done, _files: heard.append(name))
    return sorted(set(heard))


def library_of(*files: Path, **options: Any) -> FileLibrary:
    return FileLibrary([str(one) for one in files], RAGConfig(**options))


def written(path: Path, text: str = "The sky is green.") -> Path:
    path.write_text(text)
    return path


def used(folder: Path, days: float) -> None:
    moment = (folder / "used").stat().st_mtime - days * DAY
    os.utime(folder / "used", (moment, moment))


def documents(library: FileLibrary) -> list[str]:
    found, _ = library.with_files([])
    return sorted(one.name for one in found.documents())


def test_the_next_run_reads_nothing_again_and_knows_where_it_lies(place: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "a.txt")
    first = library_of(file)
    assert first.folder is None
    opened, (document,) = first.with_files([])
    stamp = opened.document(document).seconds
    assert first.folder is not None
    assert first.folder.parent == place
    assert first.folder.stat().st_mode & 0o077 == 0
    second = library_of(file)
    again, (same,) = second.with_files([])
    assert second.folder == first.folder
    assert (same, again.document(same).seconds) == (document, stamp)


def test_a_changed_file_is_read_and_the_old_one_is_not_searched(place: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "a.txt")
    library_of(file).with_files([])
    written(file, "The sky is plaid.")
    agent = Assistant(llm=ScriptedModel("So."), files=[str(file)])
    *_, messages = agent.run([Message("user", "What colour is the sky?")])
    assert "plaid" in str(messages)
    assert "green" not in str(messages)
    assert place.is_dir()


def test_other_files_and_another_way_to_cut_them_have_other_indices(place: Path, tmp_path: Path) -> None:
    one, two = written(tmp_path / "a.txt"), written(tmp_path / "b.txt", "The sea is blue.")
    libraries = [library_of(one), library_of(two), library_of(one, two), library_of(one, chunk_size=99)]
    assert len({library.folder for library in libraries if library.with_files([])}) == 4
    assert place.is_dir()


def test_none_is_kept_where_a_program_does_not_want_it_or_gave_no_files(place: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "a.txt")
    for library in (library_of(file, keep_index=False), library_of()):
        library.with_files([str(file)])
        assert library.folder is None
    assert not place.exists()


def test_what_a_conversation_brought_does_not_stay(place: Path, tmp_path: Path) -> None:
    file, private = written(tmp_path / "a.txt"), written(tmp_path / "private.txt", "Nobody else reads this.")
    library = library_of(file)
    library.with_files([str(private)])
    assert documents(library) == ["a.txt", "private.txt"]
    del library
    gc.collect()
    assert documents(library_of(file)) == ["a.txt"]
    assert place.is_dir()


def test_an_index_goes_when_nobody_used_it_for_thirty_days_and_stays_while_it_is_used(
    tmp_path: Path, place: Path
) -> None:
    old, in_use, new = (kept_index([name], RAGConfig()) for name in ("/old.txt", "/in-use.txt", "/new.txt"))
    assert old is not None
    assert in_use is not None
    assert new is not None
    foreign = place / "something else"
    foreign.mkdir()
    (place / ("f" * 32)).symlink_to(tmp_path)
    old.close()
    used(old.folder, 31)
    used(in_use.folder, 31)
    assert remove_unused(place) == [old.folder]
    assert {one.name for one in place.iterdir() if one.is_dir()} == {
        in_use.folder.name,
        new.folder.name,
        foreign.name,
        "f" * 32,
    }
    in_use.close()
    assert remove_unused(place) == [in_use.folder]


def test_of_very_much_the_oldest_go(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_indices, "_MOST", 2_500)
    made: list[Path] = []
    for days, name in enumerate(("/newest.txt", "/middle.txt", "/oldest.txt")):
        index = kept_index([name], RAGConfig())
        assert index is not None
        (index.folder / "library.sqlite").write_bytes(b"x" * 1_000)
        index.close()
        used(index.folder, days)
        made.append(index.folder)
    assert remove_unused(place) == [made[2]]


def test_a_lock_that_was_left_behind_by_a_killed_process_holds_nothing(place: Path) -> None:
    index = kept_index(["/a.txt"], RAGConfig())
    assert index is not None
    index.close()
    (place / f"{index.folder.name}.0000.lock").touch()
    used(index.folder, 40)
    assert remove_unused(place) == [index.folder]
    assert not list(place.glob("*.0000.lock"))


def test_where_nothing_can_be_kept_the_files_are_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_indices, "place", lambda: written(tmp_path / "a file") / "indices")
    library = library_of(written(tmp_path / "a.txt"))
    assert documents(library) == ["a.txt"]
    assert library.folder is None


def test_a_model_is_told_which_documents_a_program_gave(place: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "guide.md", "# Water\n\nBoil it.\n\n# Tea\n\nWait four minutes.\n")
    model = ScriptedModel("So.")
    agent = Assistant(llm=model, files=[str(file)])
    list(agent.run([Message("user", "What are these files called?")]))
    system = model.requests[-1].messages[0].get_text_content()
    assert "guide.md (MD, read)" in system
    assert "- Water" in system
    assert place.is_dir()


def test_an_index_that_others_remove_before_it_is_held_is_made_anew(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = kept_index(["/a.txt"], RAGConfig())
    assert first is not None
    first.close()
    used(first.folder, 31)
    enter, removed = FileLock.__enter__, list[Path]()

    def after_others(lock: FileLock) -> object:
        if Path(lock.lock_file).name == "indices.lock" and not removed:
            removed.extend(remove_unused(place))
        return enter(lock)

    monkeypatch.setattr(FileLock, "__enter__", after_others)
    again = kept_index(["/a.txt"], RAGConfig())
    assert removed == [first.folder]
    assert again is not None
    assert (again.folder, again.folder.is_dir()) == (first.folder, True)
    again.close()


def test_where_an_index_cannot_be_kept_no_lock_of_it_stays(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError("not here")

    monkeypatch.setattr(Path, "touch", refused)
    assert kept_index(["/a.txt"], RAGConfig()) is None
    assert list(place.glob("*.*.lock")) == []
