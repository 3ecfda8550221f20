"""What is added to a message: kept, titled, and given to the model."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ParlourError
from core.messages.content import ContentItem
from core.messages.message import Message
from core.rag.parsers import ocr
from core.reading.attachments import (
    LONGEST_TEXT,
    checked_text,
    excerpt,
    for_model,
    kind_of,
    title_of,
    unsupported_files,
    user_message,
    with_text,
)
from core.storage.base import FileRecord, file_ids
from core.testing.scripted_model import ScriptedModel


def file(name: str, media_type: str) -> FileRecord:
    return FileRecord("id-" + name.partition(".")[0], "alice", name, media_type, 1, "", 0.0)


@pytest.mark.parametrize(
    ("name", "media_type", "kind"),
    [
        ("a.png", "image/png", "picture"),
        ("a.pdf", "image/png", "document"),
        ("a.wav", "audio/wav", "sound"),
        ("a.mp4", "video/mp4", "video"),
        ("a.pdf", "application/pdf", "document"),
        ("a.bin", "application/octet-stream", "document"),
    ],
)
def test_what_is_called_a_document_is_one(name: str, media_type: str, kind: str) -> None:
    assert kind_of(file(name, media_type)) == kind


def test_a_message_keeps_its_files_by_address_and_what_the_page_shows_of_them() -> None:
    files = [file("cat.png", "image/png"), file("talk.wav", "audio/wav"), file("a.pdf", "application/pdf")]
    message = user_message("Look", files, "a_note")
    assert [item.type for item in message.items] == ["text", "image", "audio", "file"]
    assert file_ids([message]) == ["id-cat", "id-talk", "id-a"]
    assert message.extra is not None
    assert [about["kind"] for about in message.extra["files"]] == ["picture", "sound", "document"]
    assert message.extra["note"] == "a_note"
    assert user_message("Hi", []) == Message("user", "Hi")


def test_a_changed_question_keeps_its_files() -> None:
    message = user_message("old", [file("cat.png", "image/png")])
    changed = with_text(message, "new")
    assert [item.value for item in changed.items] == ["new", "/files/id-cat"]
    assert changed.extra == message.extra
    assert with_text(Message("user", "old"), "new").content == "new"
    assert message.items[0].text == "old"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Hello", "Hello"),
        ("\n\n  # A   heading\nmore", "A heading"),
        ("a" * 80, "a" * 59 + "…"),
        (
            "one two three four five six seven eight nine ten eleven twelve, and",
            "one two three four five six seven eight nine ten eleven…",
        ),
        ("今天天气怎么样？" * 10, "今天天气怎么样？" * 7 + "今天天…"),
    ],
)
def test_a_title_is_the_first_words(text: str, title: str) -> None:
    assert title_of(Message("user", text)) == title


def test_without_words_the_file_gives_the_title() -> None:
    assert title_of(user_message("", [file("cat.png", "image/png")])) == "cat.png"


@given(st.text(max_size=300))
def test_a_title_fits_whatever_was_said(text: str) -> None:
    title = title_of(Message("user", text))
    assert len(title) <= 60
    assert "\n" not in title


@given(st.text(max_size=50))
def test_what_is_sent_can_be_stored(text: str) -> None:
    checked, _ = checked_text("!" + text + "\ud83d", 0)
    assert checked.encode()
    assert "\0" not in checked
    assert checked_text(checked, 0) == (checked, 0)


def test_a_text_that_shrinks_when_what_nobody_sees_is_gone_is_judged_by_what_is_left() -> None:
    hidden = "\U000e0041"
    assert checked_text(f" a {hidden}", 0) == (" a", 1)
    assert checked_text(hidden, 1) == ("", 1)
    with pytest.raises(ParlourError) as caught:
        checked_text(f"\0 {hidden}", 0)
    assert caught.value.words_key == "empty_message"
    with pytest.raises(ParlourError) as caught:
        checked_text("x" * LONGEST_TEXT + hidden, 0)
    assert caught.value.words_key == "message_too_long"


def test_the_ends_of_a_long_text_are_shown() -> None:
    shown = excerpt("What is this?\n" + "x" * 30_000 + "\nPlease.")
    assert shown.startswith("What is this?")
    assert shown.endswith("Please.")
    assert len(shown) < 1300


def test_what_a_model_cannot_take_is_said_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ScriptedModel("x")
    assert unsupported_files([file("a.png", "image/png")], model) == []  # its words are recognised
    assert len(unsupported_files([file("a.heic", "image/heic")], model)) == 1
    monkeypatch.setattr(ocr, "is_here", lambda: False)
    files = [
        file("a.png", "image/png"),
        file("a.wav", "audio/wav"),
        file("a.mp4", "video/mp4"),
        file("a.md", "text/plain"),
    ]
    assert [error.words_key for error in unsupported_files(files, model)] == [
        "picture_not_taken",
        "sound_not_taken",
        "video_not_taken",
    ]
    model.support_multimodal_input = model.support_audio_input = True
    assert [error.words_key for error in unsupported_files(files, model)] == ["video_not_taken"]
    model.support_video_input = True
    assert unsupported_files(files, model) == []
    assert unsupported_files(files, None) == []


def test_the_model_is_given_paths_and_never_addresses(tmp_path: Path) -> None:
    model = ScriptedModel("x")
    model.support_audio_input = True
    sound, picture, document = file("a.wav", "audio/wav"), file("b.png", "image/png"), file("c.md", "text/plain")
    here = {one.id: (one, tmp_path / one.name) for one in (sound, picture, document)}
    elsewhere = ContentItem(image="https://example.org/x.png")
    message = user_message("Listen", [sound, picture, document])
    message = message.model_copy(update={"content": [*message.items, elsewhere, ContentItem(file="/files/gone")]})
    (given_,) = for_model([message], model, here, "en")
    assert [item.type for item in given_.items] == ["text", "audio", "text", "image", "text"]
    assert given_.items[1].audio == str(tmp_path / "a.wav")
    assert "b.png" in (given_.items[2].text or "")
    assert given_.items[3] == elsewhere
    assert "/files/" not in str(given_.content)


@pytest.mark.parametrize("role", ["user", "function"])
def test_no_message_opens_what_is_not_in_the_store(tmp_path: Path, role: str) -> None:
    """Messages are brought in from files of strangers, which may name what is somebody else's."""
    (tmp_path / "secret.txt").write_text("a key")
    path, inline = str(tmp_path / "secret.txt"), "data:image/png;base64,AAAA"
    model = ScriptedModel("x")
    model.support_audio_input = model.support_multimodal_input = True
    items = [
        ContentItem(text="Look"),
        *(ContentItem(file=one) for one in (path, f"file://{path}", "http://127.0.0.1/admin", inline)),
        *(ContentItem(image=one) for one in (path, f"file://{path}", f"{tmp_path}/files/secret.txt")),
        ContentItem(audio=path),
        ContentItem(video=path),
        ContentItem(video=[inline, path]),
        ContentItem(image=inline),
    ]
    (given_,) = for_model([Message(role, items, name="ask")], model, {}, "en")
    assert "secret" not in str(given_.content)
    assert "127.0.0.1" not in str(given_.content)
    assert [item.type for item in given_.items if item.type != "text"] == ["image"]
    assert given_.items[-1].image == inline


def test_a_document_alone_asks_in_the_readers_language() -> None:
    document = file("c.md", "text/plain")
    here = {document.id: (document, Path("c.md"))}
    (given_,) = for_model([user_message("", [document])], ScriptedModel("x"), here, "zh")
    assert given_.content == "c.md 讲了什么？"
