"""Pictures, recordings and videos of this machine travel inside the request, or are refused by name."""

from __future__ import annotations

import base64
import io

import pytest
from PIL import Image

from core.errors import ModelRefusedError
from core.llm.media import LARGEST, inlined
from core.messages.content import ContentItem
from core.messages.message import USER, Message

pytestmark = pytest.mark.anyio

WAV = b"RIFF\x24\x00\x00\x00WAVEfmt " + b"\0" * 24
MP4 = b"\0\0\0\x18ftypmp42" + b"\0" * 16


@pytest.fixture
def png() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (4, 4), "red").save(out, "PNG")
    return out.getvalue()


async def sent(item: ContentItem) -> ContentItem:
    (message,) = await inlined([Message(USER, [ContentItem(text="look"), item])], lambda item: item.type != "text")
    return message.items[1]


def address(media_type: str, raw: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(raw).decode()}"


@pytest.mark.parametrize(
    ("kind", "raw", "media_type"),
    [
        ("audio", WAV, "audio/wav"),
        ("audio", b"ID3" + b"\0" * 20, "audio/mpeg"),
        ("audio", b"\xff\xfb" + b"\0" * 20, "audio/mpeg"),
        ("audio", b"OggS" + b"\0" * 20, "audio/ogg"),
        ("audio", b"fLaC" + b"\0" * 20, "audio/flac"),
        ("audio", b"\0\0\0\x18ftypM4A " + b"\0" * 9, "audio/mp4"),
        ("video", MP4, "video/mp4"),
        ("video", b"\0\0\0\x14ftypqt  " + b"\0" * 9, "video/quicktime"),
        ("video", b"\x1aE\xdf\xa3" + b"\0" * 9, "video/webm"),
    ],
)
async def test_what_a_file_is_is_told_by_its_bytes(tmp_path, kind, raw, media_type):
    file = tmp_path / "a b 图.dat"
    file.write_bytes(raw)
    expected = address(media_type, raw)
    assert (await sent(ContentItem(**{kind: str(file)}))).value == expected
    assert (await sent(ContentItem(**{kind: file.as_uri()}))).value == expected


async def test_frames_of_a_video_are_pictures(tmp_path, png):
    file = tmp_path / "frame.png"
    file.write_bytes(png)
    item = await sent(ContentItem(video=[str(file), "https://example.org/2.png"]))
    assert item.video == [address("image/png", png), "https://example.org/2.png"]


@pytest.mark.parametrize(
    "item",
    [
        ContentItem(image="https://example.org/a.png"),
        ContentItem(audio="https://example.org/a.mp3"),
        ContentItem(audio={"data": "AAAA", "format": "wav"}),
        ContentItem(audio=address("audio/wav", WAV)),
        ContentItem(video="oss://bucket/a.mp4"),
        ContentItem(video=address("video/mp4", MP4)),
    ],
)
async def test_what_needs_no_change_stays_the_same_object(item):
    message = Message(USER, [item])
    plain = Message(USER, "text")
    assert await inlined([message, plain], lambda _: True) == (message, plain)
    assert (await inlined([message], lambda _: True))[0] is message


async def test_of_a_picture_that_is_gone_it_is_said_that_it_is_gone(tmp_path):
    with pytest.raises(ModelRefusedError, match=r"The picture 'gone\.png' is not there any more"):
        await sent(ContentItem(image=str(tmp_path / "gone.png")))


async def test_what_the_model_does_not_take_is_left_alone(tmp_path):
    message = Message(USER, [ContentItem(audio=str(tmp_path / "none.wav"))])
    assert (await inlined([message], lambda item: item.type == "image"))[0] is message


@pytest.mark.parametrize(
    ("kind", "key"),
    [("image", "picture_unreadable"), ("audio", "recording_unreadable"), ("video", "video_unreadable")],
)
@pytest.mark.parametrize("raw", [b"root:x:0:0", b"", None])
async def test_a_file_that_is_something_else_is_refused_by_name_alone(tmp_path, kind, key, raw):
    file = tmp_path / "secret.dat"
    if raw is not None:
        file.write_bytes(raw)
    with pytest.raises(ModelRefusedError, match=r"secret\.dat") as caught:
        await sent(ContentItem(**{kind: str(file)}))
    assert caught.value.words_key == key
    assert caught.value.hint
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("kind", ["image", "audio", "video"])
@pytest.mark.parametrize(
    "data", ["data:image/png;base64,AAAA", "data:audio/wav,plain", "data:video/mp4;base64,€", "\0"]
)
async def test_an_address_that_holds_something_else_is_refused(kind, data):
    with pytest.raises(ModelRefusedError) as caught:
        await sent(ContentItem(**{kind: data}))
    assert caught.value.hint


async def test_fifty_megabytes_are_refused_before_they_are_read(tmp_path):
    file = tmp_path / "long.wav"
    with file.open("wb") as out:
        out.write(WAV)
        out.truncate(50 * 1024 * 1024)
    with pytest.raises(ModelRefusedError, match=rf"'long\.wav' is larger than {LARGEST >> 20} MB"):
        await sent(ContentItem(audio=str(file)))
    with pytest.raises(ModelRefusedError, match="larger than"):
        await sent(ContentItem(audio="data:audio/wav;base64," + "A" * (LARGEST * 2)))


async def test_the_name_that_a_tool_gave_its_picture_does_not_go_to_the_service(png):
    named = address("image/png", png).replace(";base64", ";name=plot.png;base64")
    assert (await sent(ContentItem(image=named))).image == address("image/png", png)
    sound = address("audio/wav", WAV).replace(";base64", ";name=a.wav;base64")
    assert (await sent(ContentItem(audio=sound))).audio == address("audio/wav", WAV)
