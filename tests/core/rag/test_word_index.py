"""The quick word index of a large library: it says what the library says, or nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from core.rag.index_file import IndexFile
from core.rag.library import Library
from core.rag.search import word_index
from core.rag.search.keyword import KeywordSearcher
from core.rag.search.word_index import BrokenFolderError, WordFolder, WordIndex
from core.rag.search.word_table import WordTable

ROOT = Path(__file__).parents[3]
SMALL = "from core.rag.search import word_index\nword_index.LARGE, word_index._GATHER = 5, 0.005\n"
COLOURS = ("green", "red", "blue", "yellow", "black", "white", "orange", "grey")
WAIT = 60.0


@pytest.fixture(scope="module", autouse=True)
def _five_chunks_are_many() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as here:
        here.setattr(word_index, "LARGE", 5)
        here.setattr(word_index, "_GATHER", 0.005)
        yield


@pytest.fixture(scope="module")
def _filled(tmp_path_factory: pytest.TempPathFactory, _five_chunks_are_many: None) -> Path:
    folder = tmp_path_factory.mktemp("filled") / "large"
    with Library.open(folder) as library:
        fill(library)
        assert library.retriever.wait_for_words(WAIT)
    return folder


@pytest.fixture
def folder(_filled: Path, tmp_path: Path) -> Path:
    """A library with an index that was up to date when it was closed."""
    return shutil.copytree(_filled, tmp_path / "large")


@pytest.fixture
def quick_answers(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each question, whether the quick index answered it."""
    said: list[bool] = []
    find = WordIndex.find

    def noted(index: WordIndex, *args: object) -> object:
        found = find(index, *args)  # type: ignore[arg-type]
        said.append(found is not None)
        return found

    monkeypatch.setattr(WordIndex, "find", noted)
    return said


def fill(library: Library, start: int = 0) -> None:
    for number, colour in enumerate(COLOURS, start):
        library.add_text(f"Lamp {number} is {colour}.", name=f"{number}.txt")


def names(library: Library, question: str, **how: object) -> list[str]:
    return [passage.document for passage in library.find(question, **how)]  # type: ignore[arg-type]


def test_a_small_library_has_none(tmp_path: Path, quick_answers: list[bool]) -> None:
    with Library.open(tmp_path / "small") as library:
        library.add_text("The lamp is green.", name="a.txt")
        assert library.retriever.wait_for_words(WAIT)
        assert names(library, "lamp") == ["a.txt"]
    assert not any(quick_answers)
    assert not list(tmp_path.rglob("*.words*"))


def test_a_large_one_is_answered_at_once_and_soon_quickly(tmp_path: Path, quick_answers: list[bool]) -> None:
    with Library.open(tmp_path / "large") as library:
        fill(library)
        assert names(library, "the red one") == ["1.txt"]
        assert library.retriever.wait_for_words(WAIT)
        assert names(library, "the red one") == ["1.txt"]
    assert quick_answers[-1]


def test_it_outlives_the_process(folder: Path, quick_answers: list[bool]) -> None:
    with Library.open(folder) as library:
        assert library.retriever.wait_for_words(WAIT)
        assert names(library, "yellow") == ["3.txt"]
    assert quick_answers == [True]


def test_both_rank_alike(folder: Path) -> None:
    file = IndexFile(folder / "library.sqlite")
    try:
        quick = WordIndex(file, lambda: None)
        assert quick.fill(threading.Event())
        for question in ("lamp 3", "green red lamp", "Which lamp is grey?", "绿", "nothing of it", "4"):
            slow = [one for one, _ in KeywordSearcher(WordTable(file)).find(question, 9)]
            assert [one for one, _ in KeywordSearcher(WordTable(file, quick)).find(question, 9)] == slow
    finally:
        file.close()


def test_chinese_is_found_in_it(folder: Path, quick_answers: list[bool]) -> None:
    with Library.open(folder) as library:
        library.add_text("绿茶用八十度的水冲泡。", name="tea")
        assert library.retriever.wait_for_words(WAIT)
        assert names(library, "绿茶怎么冲泡？") == ["tea"]
    assert quick_answers == [True]


def test_only_the_named_documents_are_searched(folder: Path, quick_answers: list[bool]) -> None:
    with Library.open(folder) as library:
        assert library.retriever.wait_for_words(WAIT)
        wanted = [one.id for one in library.documents() if one.name in {"2.txt", "5.txt"}]
        assert sorted(names(library, "lamp", documents=wanted)) == ["2.txt", "5.txt"]
        assert names(library, "the white lamp", documents=wanted)[0] == "5.txt"
        assert names(library, "lamp", documents=[]) == []
        assert names(library, "lamp", documents=["nobody"]) == []
    assert quick_answers == [True] * 4


def test_what_is_new_removed_or_replaced_is_never_answered_from_an_old_state(
    folder: Path, quick_answers: list[bool]
) -> None:
    with Library.open(folder) as library:
        assert library.retriever.wait_for_words(WAIT)
        green = next(one.id for one in library.documents() if one.name == "0.txt")
        library.remove(green)
        assert names(library, "green") == []
        library.add_text("Lamp 0 is purple.", name="0.txt")
        assert names(library, "purple") == ["0.txt"]
        assert library.retriever.wait_for_words(WAIT)
        assert names(library, "green") == []
        assert names(library, "purple") == ["0.txt"]
        assert len(names(library, "lamp", k=20)) == len(COLOURS)
    assert quick_answers[-3:] == [True] * 3


def test_what_was_changed_without_it_is_caught_up(
    folder: Path, quick_answers: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as here:
        here.setattr(WordIndex, "is_wanted", lambda _: False)
        with Library.open(folder) as library:
            library.remove(library.find("green")[0].document_id)
            library.add_text("Lamp 99 is purple.", name="99.txt")
            assert names(library, "purple") == ["99.txt"]
    with Library.open(folder) as library:
        assert library.retriever.wait_for_words(WAIT)
        assert names(library, "purple") == ["99.txt"]
        assert names(library, "green") == []
    assert quick_answers[-2:] == [True, True]


def test_when_most_of_it_is_gone_it_is_made_anew(folder: Path, quick_answers: list[bool]) -> None:
    with Library.open(folder) as library:
        for document in library.documents()[2:]:
            library.remove(document.id)
        assert library.retriever.wait_for_words(WAIT)
        library.add_text("Lamp 9 is purple.", name="9.txt")
        assert library.retriever.wait_for_words(WAIT)
        assert sorted(names(library, "lamp", k=20)) == ["0.txt", "1.txt", "9.txt"]
    assert quick_answers == [True]
    assert WordFolder(folder / "library.words").waste() < 0.5


def test_without_the_package_a_library_works(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tantivy", None)
    with Library.open(folder) as library:
        assert not library.retriever.wait_for_words(WAIT)
        library.add_text("Lamp 9 is purple.", name="9.txt")
        library.remove(library.find("green")[0].document_id)
        assert names(library, "purple") == ["9.txt"]
        assert len(names(library, "lamp", k=20)) == len(COLOURS)


def test_a_library_that_grows_without_the_package_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_index, "is_installed", lambda: False)
    with Library.open(tmp_path / "large") as library:
        fill(library)
        assert library.retriever.wait_for_words(WAIT)
        assert names(library, "red") == ["1.txt"]
    assert not list(tmp_path.rglob("*.words*"))


def flipped(data: bytes) -> bytes:
    return bytes(byte ^ 0x5A for byte in data[:-200]) + data[-200:] if len(data) > 200 else bytes(len(data))


def halved(data: bytes) -> bytes:
    return data[: len(data) // 2]


@pytest.mark.parametrize("damage", [flipped, halved, None])
@pytest.mark.parametrize("part", ["meta.json", "*.idx", "*.term", "*.fast", "*.fieldnorm", "*.store", "*"])
def test_a_damaged_one_is_made_anew(
    folder: Path, part: str, damage: Callable[[bytes], bytes] | None, quick_answers: list[bool]
) -> None:
    for path in list((folder / "library.words").glob(part)):
        data = path.read_bytes()
        path.unlink()
        if damage:
            path.write_bytes(damage(data))
    with Library.open(folder) as library:
        assert names(library, "yellow") == ["3.txt"]
        assert library.retriever.wait_for_words(WAIT)
        assert names(library, "yellow") == ["3.txt"]
        assert len(names(library, "lamp", k=20)) == len(COLOURS)
    assert quick_answers[-2:] == [True, True]


def test_one_that_breaks_under_a_question_is_made_anew_and_the_question_is_answered(
    folder: Path, monkeypatch: pytest.MonkeyPatch, quick_answers: list[bool]
) -> None:
    with Library.open(folder) as library:
        assert library.retriever.wait_for_words(WAIT)
        with monkeypatch.context() as here:
            here.setattr(word_index.Snapshot, "find", broken)
            assert names(library, "yellow") == ["3.txt"]
        assert library.retriever.wait_for_words(WAIT)
        assert names(library, "yellow") == ["3.txt"]
    assert quick_answers == [False, True]


def broken(*_: object) -> None:
    raise BrokenFolderError("A panic.")


def test_one_that_breaks_again_and_again_is_left_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_index.Snapshot, "find", broken)
    with Library.open(folder) as library:
        for _ in range(6):
            library.retriever.wait_for_words(WAIT)
            assert names(library, "yellow") == ["3.txt"]


def test_a_disk_that_takes_nothing_costs_the_index_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_index.WordWriter, "commit", broken)
    with Library.open(folder) as library:
        library.add_text("Lamp 9 is purple.", name="9.txt")
        assert not library.retriever.wait_for_words(WAIT)
        library.add_text("Lamp 10 is pink.", name="10.txt")
        assert not library.retriever.wait_for_words(WAIT)  # given up, which is not up to date
        assert names(library, "purple") == ["9.txt"]


def test_one_of_another_version_is_made_anew(
    folder: Path, monkeypatch: pytest.MonkeyPatch, quick_answers: list[bool]
) -> None:
    monkeypatch.setattr(word_index, "_FORMAT", 99)
    with Library.open(folder) as library:
        assert library.retriever.wait_for_words(WAIT)
        assert names(library, "yellow") == ["3.txt"]
    assert quick_answers == [True]


def test_one_of_another_library_is_not_asked(folder: Path, tmp_path: Path, quick_answers: list[bool]) -> None:
    other = tmp_path / "other"
    with Library.open(other) as library:
        fill(library, start=100)
        assert library.retriever.wait_for_words(WAIT)
    shutil.rmtree(folder / "library.words")
    shutil.copytree(other / "library.words", folder / "library.words")
    with Library.open(folder) as library:
        assert library.retriever.wait_for_words(WAIT)
        assert names(library, "103") == []
        assert names(library, "3") == ["3.txt"]
    assert quick_answers[-1]


def test_an_old_copy_of_it_is_made_anew(folder: Path, tmp_path: Path, quick_answers: list[bool]) -> None:
    words, copy = folder / "library.words", tmp_path / "copy"
    shutil.copytree(words, copy)
    with Library.open(folder) as library:
        library.remove(library.find("green")[0].document_id)
        assert library.retriever.wait_for_words(WAIT)
    shutil.rmtree(words)
    copy.rename(words)
    with Library.open(folder) as library:
        assert library.retriever.wait_for_words(WAIT)
        assert names(library, "green") == []
        assert len(names(library, "lamp", k=20)) == len(COLOURS) - 1
    assert quick_answers[-2:] == [True, True]


def test_a_lost_library_file_takes_its_index_along(folder: Path, quick_answers: list[bool]) -> None:
    (folder / "library.sqlite").write_bytes(b"rubbish" * 2000)
    with Library.open(folder) as library:
        assert names(library, "yellow") == ["3.txt"]
        assert library.retriever.wait_for_words(WAIT)
        assert len(names(library, "lamp", k=20)) == len(COLOURS)
    assert quick_answers[-1]


def test_while_another_writes_sqlite_answers(folder: Path, quick_answers: list[bool]) -> None:
    with Library.open(folder) as library:
        assert library.retriever.wait_for_words(WAIT)
        with FileLock(folder / "library.words.lock"):
            library.add_text("Lamp 9 is purple.", name="9.txt")
            assert not library.retriever.wait_for_words(0.5)
            assert names(library, "purple") == ["9.txt"]
        assert library.retriever.wait_for_words(WAIT)
        assert names(library, "purple") == ["9.txt"]
    assert quick_answers == [False, True]


def test_a_closed_library_does_not_wait_for_the_other(folder: Path) -> None:
    with FileLock(folder / "library.words.lock"), Library.open(folder) as library:
        library.add_text("Lamp 9 is purple.", name="9.txt")


def test_two_libraries_on_one_folder_follow_each_other(folder: Path, quick_answers: list[bool]) -> None:
    with Library.open(folder) as first, Library.open(folder) as second:
        first.add_text("Lamp 9 is purple.", name="9.txt")
        assert first.retriever.wait_for_words(WAIT)
        assert names(second, "purple") == ["9.txt"]
        assert second.retriever.wait_for_words(WAIT)
        quick_answers.clear()
        assert names(second, "purple") == ["9.txt"]
        assert quick_answers == [True]


def test_several_processes_read_while_one_writes(folder: Path) -> None:
    reader = SMALL + (
        "import sys\n"
        "from core.rag.library import Library\n"
        "with Library.open(sys.argv[1]) as library:\n"
        "    seen = 0\n"
        "    while seen < 48:\n"
        "        found = len(library.find('lamp', 100))\n"
        "        assert found >= seen, (found, seen)\n"
        "        seen = found\n"
        "    assert library.retriever.wait_for_words(60)\n"
        "    assert len(library.find('lamp', 100)) == 48\n"
    )
    readers = [started(reader, folder) for _ in range(2)]
    with Library.open(folder) as library:
        for number in range(100, 140):
            library.add_text(f"Lamp number {number}.", name=f"{number}.txt")
        assert [process.wait(WAIT) for process in readers] == [0, 0]
        assert library.retriever.wait_for_words(WAIT)
        assert len(library.find("lamp", 100)) == 48


def test_two_processes_write_at_once_and_nothing_is_lost(folder: Path, quick_answers: list[bool]) -> None:
    writer = SMALL + (
        "import sys\n"
        "from core.rag.library import Library\n"
        "with Library.open(sys.argv[1]) as library:\n"
        "    for number in range(25):\n"
        "        made = library.add_text(f'Lamp {sys.argv[2]} {number}.', name='a.txt')\n"
        "        if number % 5 == 0:\n"
        "            library.remove(made.id)\n"
        "    assert library.retriever.wait_for_words(60)\n"
    )
    writers = [started(writer, folder, name) for name in "ab"]
    assert [process.wait(WAIT) for process in writers] == [0, 0]
    with Library.open(folder) as library:
        assert library.retriever.wait_for_words(WAIT)
        assert len(library.find("lamp", 100)) == 40 + len(COLOURS)
    assert quick_answers == [True]


def test_a_process_that_is_killed_in_mid_write_leaves_the_old_state_and_no_lock(
    folder: Path, quick_answers: list[bool]
) -> None:
    writer = SMALL + (
        "import sys\n"
        "from core.rag.library import Library\n"
        "from core.rag.search import word_index\n"
        "add = word_index.WordWriter.add\n"
        "def hang(self, rows):\n"
        "    add(self, rows)\n"
        "    print('writing', flush=True)\n"
        "    sys.stdin.read()\n"
        "word_index.WordWriter.add = hang\n"
        "with Library.open(sys.argv[1]) as library:\n"
        "    library.remove(library.find('green')[0].document_id)\n"
        "    library.add_text('Lamp 9 is purple.', name='9.txt')\n"
        "    library.retriever.wait_for_words()\n"
    )
    with started(writer, folder, pipes=subprocess.PIPE) as process, Library.open(folder) as library:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        assert WordFolder(folder / "library.words").snapshot().mark.chunks == len(COLOURS)
        assert names(library, "purple") == ["9.txt"]  # the other holds the lock
        assert not library.retriever.wait_for_words(0.3)
        process.kill()
        assert library.retriever.wait_for_words(WAIT)
        assert names(library, "purple") == ["9.txt"]
        assert names(library, "green") == []
    assert quick_answers == [False, True, True]


def started(program: str, *arguments: object, pipes: int | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        env={"PYTHONPATH": str(ROOT)},
        stdin=pipes,
        stdout=pipes,
    )
