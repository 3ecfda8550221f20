"""Local files, uploaded to where DashScope can read them."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from core.errors import ModelMisbehavedError, ModelRefusedError, ModelUnavailableError
from core.messages.content import ContentItem
from core.messages.message import USER, Message
from core.testing.dashscope_dialect import DashScopeDialect
from core.testing.dialect import Answered
from core.testing.script import Reply

WAVE = b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(32)
FILM = b"\x00\x00\x00\x18ftypmp42" + bytes(32)
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def qwen(server, opened):
    """Opens models on the server."""

    def open_one(model_type="qwenaudio_dashscope", model="qwen-audio-turbo", **cfg):
        address = server.dashscope_url
        return opened(model=model, model_type=model_type, base_url=address, api_key="sk-test-0123", **cfg)

    return open_one


@pytest.fixture
def dialect(server) -> DashScopeDialect:
    """The server's store."""
    return next(dialect for dialect in server.dialects if isinstance(dialect, DashScopeDialect))


@pytest.fixture
def file(tmp_path):
    """Writes a file; its path."""

    def written(name: str, raw: bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(raw)
        return path

    return written


def sent(server, model, *items: ContentItem) -> list:
    server.add(Reply(text="a"))
    model.chat([Message(USER, [*items, ContentItem(text="what?")])], stream=False)
    return server.requests[-1].messages[-1]["content"]


@pytest.mark.parametrize("written", ["{}", "file://{}"])
def test_a_recording_is_uploaded_once_for_many_questions(server, dialect, qwen, file, written):
    model = qwen()
    item = ContentItem(audio=written.format(file("a.wav", WAVE)))
    first, second = sent(server, model, item), sent(server, model, item)
    (upload,) = dialect.uploads
    assert upload.raw == WAVE
    assert first == second == [{"audio": upload.address}, {"text": "what?"}]
    assert dialect.policies == [{"action": "getPolicy", "model": "qwen-audio-turbo"}]
    assert server.requests[0].headers["x-dashscope-ossresourceresolve"] == "enable"
    assert "/a.wav" not in upload.address


def test_a_file_that_changed_is_uploaded_again(server, dialect, qwen, file):
    model, path = qwen(), file("a.wav", WAVE)
    sent(server, model, ContentItem(audio=str(path)))
    path.write_bytes(WAVE + b"more")
    sent(server, model, ContentItem(audio=str(path)))
    assert [upload.raw for upload in dialect.uploads] == [WAVE, WAVE + b"more"]


def test_recordings_within_the_message_are_uploaded(server, dialect, qwen):
    data = base64.b64encode(WAVE).decode()
    first = ContentItem(audio=f"data:audio/wav;base64,{data}")
    second = ContentItem(audio={"data": data, "format": "wav"})
    parts = sent(server, qwen(), first, second)
    (upload,) = dialect.uploads
    assert [part.get("audio") for part in parts[:2]] == [upload.address, upload.address]
    assert upload.address.endswith(".wav")


def test_a_video_is_uploaded_and_pictures_travel_in_the_request(server, dialect, qwen, file):
    picture = str(file("dot.png", DOT))
    uri = f"data:image/png;base64,{base64.b64encode(DOT).decode()}"
    model = qwen("qwenvl_dashscope", "qwen-vl-max")
    items = [ContentItem(video=str(file("a.mp4", FILM))), ContentItem(image=picture), ContentItem(video=[picture] * 2)]
    parts = sent(server, model, *items)
    (upload,) = dialect.uploads
    assert parts[:3] == [{"video": upload.address}, {"image": uri}, {"video": [uri, uri]}]
    assert upload.form["x-oss-content-type"] == "video/mp4"


def test_what_is_elsewhere_is_named_by_its_address(server, dialect, qwen):
    there = ["https://h/a.wav", "oss://b/a.wav", "http://h/b.mp3"]
    assert sent(server, qwen(), *(ContentItem(audio=address) for address in there))[:3] == [{"audio": a} for a in there]
    assert dialect.policies == []


def test_where_there_is_no_store_small_files_travel_in_the_request(server, dialect, qwen, file):
    dialect.stores = False
    parts = sent(server, qwen(), ContentItem(audio=str(file("a.wav", WAVE))))
    assert parts[0] == {"audio": f"data:audio/wav;base64,{base64.b64encode(WAVE).decode()}"}
    with pytest.raises(ModelRefusedError, match="7 MB"):
        sent(server, qwen(), ContentItem(audio=str(file("b.wav", WAVE + bytes(8 << 20)))))


def test_a_model_that_only_listens_is_told_of_pictures(server, qwen, file):
    parts = sent(server, qwen(), ContentItem(image=str(file("dot.png", DOT))))
    assert [list(part) for part in parts] == [["text"]]
    assert "dot.png" in parts[0]["text"]
    assert not qwen().support_multimodal_input
    assert qwen(vision=True).support_multimodal_input
    assert qwen(model="qwen3-omni-flash").support_multimodal_input


def test_a_model_of_text_is_told_of_everything(server, dialect, qwen, file):
    model = qwen("qwen_dashscope", "qwen-max")
    content = sent(server, model, ContentItem(audio=str(file("a.wav", WAVE))), ContentItem(image="https://h/b.png"))
    assert isinstance(content, str)
    assert content.index("a.wav") < content.index("b.png") < content.index("what?")
    assert dialect.policies == []


def huge(path: Path, size: int) -> Path:
    """Makes the file larger without writing it."""
    os.truncate(path, size)
    return path


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (
            lambda file: ContentItem(audio=str(huge(file("long.wav", WAVE), 50 << 20))),
            r"'long\.wav' is larger .* 48 MB",
        ),
        (lambda file: ContentItem(audio=str(file("passwd", b"root:x:0:0"))), "'passwd' is none that is known"),
        (lambda file: ContentItem(audio=str(file("empty.wav", b""))), r"'empty\.wav' is none that is known"),
        (lambda file: ContentItem(audio=str(file("film.mp3", b"RIFF\x24\x00\x00\x00AVI "))), "none that is known"),
        (lambda file: ContentItem(audio=str(file("a.wav", WAVE).parent)), "cannot be read"),
        (lambda _file: ContentItem(audio="/not/there.wav"), r"'there\.wav' cannot be read"),
        (lambda _file: ContentItem(audio="a\0b.wav"), "cannot be read"),
        (lambda _file: ContentItem(audio="data:audio/wav;base64,not base64"), "cannot be read"),
        (lambda _file: ContentItem(audio={"format": "wav"}), "is none that is known"),
    ],
)
def test_what_cannot_be_sent_is_refused_by_name_before_anything_leaves(server, dialect, qwen, file, item, said):
    with pytest.raises(ModelRefusedError, match=said) as caught:
        qwen().chat([Message(USER, [item(file)])], stream=False)
    assert caught.value.words_key == "recording_unreadable"
    assert caught.value.hint
    assert server.requests == dialect.uploads == []


def test_a_store_that_refuses_is_an_error(monkeypatch, qwen, file):
    monkeypatch.setattr(DashScopeDialect, "_store", lambda _self, _asked: _answer(403, b"<Error/>"))
    with pytest.raises(ModelMisbehavedError, match="did not take"):
        qwen().chat([Message(USER, [ContentItem(audio=str(file("a.wav", WAVE)))])], stream=False)


@pytest.mark.parametrize(
    ("status", "raw", "kind"),
    [
        (200, b"{}", ModelMisbehavedError),
        (200, b"<html>", ModelMisbehavedError),
        (401, b'{"code": "InvalidApiKey", "message": "sk-test-0123"}', ModelRefusedError),
        (503, b"", ModelUnavailableError),
    ],
)
def test_a_policy_that_is_none_is_an_error(monkeypatch, qwen, file, status, raw, kind):
    monkeypatch.setattr(DashScopeDialect, "_policy", lambda _self, _asked: _answer(status, raw))
    with pytest.raises(kind) as caught:
        qwen().chat([Message(USER, [ContentItem(audio=str(file("a.wav", WAVE)))])], stream=False)
    assert "sk-test" not in str(caught.value)


def _answer(status: int, raw: bytes) -> Answered:

    return Answered(status, raw)
