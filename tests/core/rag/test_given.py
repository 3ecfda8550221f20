"""What a program gives wrongly is told in one sentence: the argument, what was given, and what to write instead."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from core.errors import DocumentError, NotFoundError, SettingsError, StorageError
from core.rag.library import Library

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def lake(tmp_path: Path) -> Any:
    with Library.open(tmp_path / "lake") as library:
        library.add_text("Herons eat fish.", name="lake")
        yield library


def told(call: Callable[[], object], name: str, given: str) -> None:
    """The call is refused with the argument's name, what was given, and a hint that says what to write."""
    with pytest.raises(SettingsError) as caught:
        call()
    message = caught.value.args[0]
    assert message.startswith(name)
    assert given in message
    assert message.count(". ") == 0
    assert re.match(r"(Write|Leave|Give) ", caught.value.hint)


@pytest.mark.parametrize(
    ("arguments", "name", "given"),
    [
        ({"question": None}, "question", "None"), ({"question": 5}, "question", "5"),
        ({"question": b"herons"}, "question", "b'herons'"), ({"question": ["herons"]}, "question", "a list"),
        ({"k": "3"}, "k", "'3'"), ({"k": 2.5}, "k", "2.5"), ({"k": True}, "k", "True"), ({"k": -1}, "k", "-1"),
        ({"k": 10**30}, "k", "1000"), ({"k": [3]}, "k", "a list"),
        ({"retrieval_type": 5}, "retrieval_type", "5"), ({"retrieval_type": ["keyword"]}, "retrieval_type", "a list"),
        ({"documents": "lake"}, "documents", "'lake'"), ({"documents": 5}, "documents", "5"),
        ({"documents": [None]}, "documents", "None"), ({"documents": (one for one in "a")}, "documents", "a generator"),
    ],
)  # fmt: skip
def test_a_search_names_the_argument_that_is_wrong(lake: Any, arguments: dict[str, Any], name: str, given: str) -> None:
    told(lambda: lake.find(**{"question": "herons", **arguments}), name, given)


def test_documents_are_named_by_their_ids(lake: Any) -> None:
    (document,) = lake.documents()
    for given in (document, [document]):
        told(lambda given=given: lake.find("herons", documents=given), "documents", "a Document")
    assert lake.find("herons", documents={document.id})
    assert lake.find("herons", 0) == []
    told(lambda: lake.holding(None, 3), "text", "None")
    told(lambda: lake.first_passages("3"), "k", "'3'")


def test_a_page_is_drawn_of_a_passage_with_a_zoom_above_0(lake: Any) -> None:
    (document,), (passage,) = lake.documents(), lake.find("herons")
    for given, as_told in [(None, "None"), (document, "a Document"), ([passage], "a list"), (document.id, "'")]:
        told(lambda given=given: lake.page_picture(given), "passage", as_told)
    for zoom in ("2", None, 0, -1.5, True, float("nan"), float("inf")):
        told(lambda zoom=zoom: lake.page_picture(passage, zoom), "zoom", repr(zoom))
        told(lambda zoom=zoom: lake.page_image(document.id, 1, zoom), "zoom", repr(zoom))
    told(lambda: lake.page_image(document.id, "1"), "page", "'1'")


def test_of_a_page_that_is_not_there_it_is_told_how_many_there_are(lake: Any, tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (40, 30), "white").save(tmp_path / "heron.png")
    frames = [Image.new("RGB", (40, 30), "white") for _ in range(3)]
    frames[0].save(tmp_path / "herons.tiff", save_all=True, append_images=frames[1:])
    one, three = lake.add(tmp_path / "heron.png"), lake.add(tmp_path / "herons.tiff")
    for ask in (lake.page_image, lake.page_size, lake.text_box):
        with pytest.raises(NotFoundError) as caught:
            ask(three.id, 9)
        assert str(caught.value) == "There is no page 9: 'herons.tiff' has 3 pages. Write page=1 to page=3."
    with pytest.raises(NotFoundError, match=r"There is no page 0: 'heron\.png' has 1 page\. Write page=1\."):
        lake.page_image(one.id, 0)


def test_a_folder_that_is_added_is_told_how_its_files_are(lake: Any, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    with pytest.raises(DocumentError) as caught:
        lake.add(tmp_path / "docs")
    hint = 'Add its files: for path in Path("docs").rglob("*.pdf"): library.add(path).'
    assert str(caught.value) == f"'docs' is a folder, not a file. {hint}"


@pytest.mark.parametrize(
    ("arguments", "name", "given"),
    [
        ({"folder": None}, "folder", "None"), ({"folder": b"lake"}, "folder", "bytes"),
        ({"folder": ""}, "folder", "''"),
        ({"folder": "a\0b"}, "folder", r"'a\x00b'"),
        ({"folder": "a\ud800"}, "folder", r"'a\ud800'"),
        ({"limits": {"seconds": 3}}, "limits", "a dict"),
        ({"shelf": 5}, "shelf", "5"), ({"fetch": "x"}, "fetch", "'x'"),
    ],
)  # fmt: skip
def test_opening_names_the_argument_that_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], name: str, given: str
) -> None:
    monkeypatch.chdir(tmp_path)
    told(lambda: Library.open(**{"folder": "lake", **arguments}), name, given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x" * 300, "manual.pdf/lake"])
def test_a_folder_that_cannot_be_made_is_told_in_one_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / "manual.pdf").write_bytes(b"%PDF")
    with pytest.raises(StorageError, match="The library cannot be used: "):
        Library.open(tmp_path / name)


def test_a_file_is_no_folder_of_a_library(tmp_path: Path) -> None:
    (tmp_path / "manual.pdf").write_bytes(b"%PDF")
    told(lambda: Library.open(tmp_path / "manual.pdf"), "folder", "'manual.pdf'")
