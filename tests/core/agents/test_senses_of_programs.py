"""Pictures and recordings that a program gives to a model without the sense: read as on the page, and cited."""

from __future__ import annotations

import base64
import io
import struct
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont

from core.agents.assistant import Assistant
from core.errors import SettingsError
from core.llm.transcription import kind_of_file
from core.messages.content import ContentItem
from core.messages.events import ToolFinished
from core.messages.message import SYSTEM, Message
from core.testing.scripted_model import ScriptedModel
from tests.transcription_server import TranscriptionServer

pytestmark = pytest.mark.anyio

ANSWER = "The deductible for water damage is 150 euros."
SPOKEN = {
    "text": ANSWER,
    "duration": 75.0,
    "segments": [
        {"start": 1.0, "end": 4.0, "text": " Welcome to the meeting of the house."},
        {"start": 65.4, "end": 70.0, "text": f" {ANSWER}"},
    ],
}


def box(kind: bytes, *inside: bytes) -> bytes:
    data = b"".join(inside)
    return struct.pack(">I4s", len(data) + 8, kind) + data


SOUND = struct.pack("<480h", *(8_000 if at // 12 % 2 else -8_000 for at in range(480)))
MOVIE_HEAD = box(b"mvhd", struct.pack(">IIIII", 0, 0, 0, 8_000, 480) + b"\0\1\0\0\1\0" + b"\0" * 70 + b"\0\0\0\2")
MOV = box(b"ftyp", b"qt  \0\0\2\0qt  ") + box(b"wide") + box(b"mdat", SOUND) + box(b"moov", MOVIE_HEAD)
M4A = box(b"ftyp", b"M4A \0\0\2\0M4A mp42isom") + box(b"moov", MOVIE_HEAD) + box(b"mdat", SOUND)
OLD_MOV = MOV[20:]  # without its first box, as cameras wrote it


def letter() -> bytes:
    drawn = Image.new("RGB", (1000, 220), "white")
    ImageDraw.Draw(drawn).text((40, 80), ANSWER, "black", font=ImageFont.load_default(40))
    out = io.BytesIO()
    drawn.save(out, "PNG")
    return out.getvalue()


async def asked(agent: Assistant, *items: ContentItem) -> list[dict[str, Any]]:
    """The passages that the model got for its answer."""
    question = Message("user", [ContentItem(text="What is the deductible for water damage?"), *items])
    events = [event async for event in agent.stream([question])]
    return [row for one in events if isinstance(one, ToolFinished) for row in (one.message.extra or {})["passages"]]


def system(model: ScriptedModel) -> str:
    return "\n".join(one.get_text_content() for one in model.requests[-1].messages if one.role == SYSTEM)


@pytest.mark.parametrize("inline", [False, True])
async def test_a_picture_is_read_for_a_model_that_does_not_see(tmp_path: Path, inline: bool) -> None:
    data, model = letter(), ScriptedModel(ANSWER)
    (tmp_path / "letter.png").write_bytes(data)
    address = f"data:image/png;name=letter.png;base64,{base64.b64encode(data).decode()}"
    (passage,) = await asked(
        Assistant(llm=model), ContentItem(image=address if inline else str(tmp_path / "letter.png"))
    )
    assert (passage["document"], passage["page"]) == ("letter.png", 1)
    assert "150 euros" in passage["text"]
    assert passage["rectangles"]
    assert "You do not see pictures. Of letter.png you get the text" in system(model)
    assert {item.type for one in model.requests[-1].messages for item in one.items} <= {"text", "file"}


async def test_a_model_that_sees_gets_the_picture_itself(tmp_path: Path) -> None:
    (tmp_path / "letter.png").write_bytes(letter())
    model = ScriptedModel(ANSWER)
    model.support_multimodal_input = True
    assert await asked(Assistant(llm=model), ContentItem(image=str(tmp_path / "letter.png"))) == []
    assert "image" in {item.type for one in model.requests[-1].messages for item in one.items}


@pytest.mark.parametrize(
    ("name", "data", "kind", "sent_as"),
    [
        ("meeting.mov", MOV, "video", ("recording.mp4", "video/mp4")),
        ("older.mov", OLD_MOV, "video", ("recording.mp4", "video/mp4")),
        ("meeting.m4a", M4A, "audio", ("recording.m4a", "audio/mp4")),
    ],
)
async def test_a_recording_is_written_down_with_times_by_the_service_that_was_named(
    tmp_path: Path, name: str, data: bytes, kind: str, sent_as: tuple[str, str]
) -> None:
    (tmp_path / name).write_bytes(data)
    model = ScriptedModel(ANSWER)
    with TranscriptionServer(SPOKEN) as service:
        agent = Assistant(llm=model, hearing={"base_url": service.base_url, "api_key": service.key})
        (passage,) = await asked(agent, ContentItem(**{kind: str(tmp_path / name)}))
        await asked(agent, ContentItem(**{kind: str(tmp_path / name)}))
        (sent,) = service.sent  # once, though it was asked about twice
    assert (sent.name, sent.media_type, sent.sound) == (*sent_as, data)
    assert passage["document"] == name
    assert f"0:01:05 {ANSWER}" in passage["text"]
    assert f"Of {name} you get a transcript" in system(model)


async def test_no_recording_goes_anywhere_that_was_not_named(tmp_path: Path) -> None:
    (tmp_path / "meeting.m4a").write_bytes(M4A)
    model = ScriptedModel(ANSWER)
    assert await asked(Assistant(llm=model), ContentItem(audio=str(tmp_path / "meeting.m4a"))) == []
    (question,) = model.requests[-1].messages[-1:]
    assert "meeting.m4a" in question.get_text_content()  # it knows the name
    assert {item.type for item in question.items} == {"text"}


async def test_where_nothing_is_said_the_model_is_told(tmp_path: Path) -> None:
    (tmp_path / "silence.m4a").write_bytes(M4A)
    model = ScriptedModel(ANSWER)
    with TranscriptionServer({"text": "", "segments": []}) as service:
        agent = Assistant(llm=model, hearing={"base_url": service.base_url, "api_key": service.key})
        await asked(agent, ContentItem(audio=str(tmp_path / "silence.m4a")))
    assert "[recording silence.m4a: you do not hear it" in model.requests[-1].messages[-1].get_text_content()


async def test_a_long_recording_of_a_program_goes_to_the_service_in_parts(tmp_path: Path) -> None:
    frame = b"\xff\xf3\x18\xc4" + bytes(32)  # 36 ms of MPEG 2, layer III
    path = tmp_path / "long.mp3"
    path.write_bytes(b"ID3\x04\0\0\0\0\0\0" + frame * 20_000)
    with TranscriptionServer({"text": ANSWER}) as service:
        agent = Assistant(
            llm=ScriptedModel("150 euros [1]."), hearing={"base_url": service.base_url, "api_key": service.key}
        )
        await asked(agent, ContentItem(audio=str(path)))
    sent = [one.sound for one in service.sent]
    assert [len(one) // len(frame) for one in sent] == [16_666, 3_334]  # ten minutes, and the rest
    assert b"".join(sent) == frame * 20_000


@pytest.mark.parametrize("settings", [{}, {"base_url": "http://127.0.0.1:1/v1", "modell": "whisper-1"}])
async def test_settings_that_name_no_service_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        Assistant(llm=ScriptedModel(""), hearing=settings)


def test_kinds_of_recordings_are_told_by_their_first_bytes() -> None:
    assert [kind_of_file(one, is_video=True) for one in (MOV, OLD_MOV)] == ["video/mp4", "video/mp4"]
    assert kind_of_file(M4A) == kind_of_file(M4A, is_video=True) == "audio/mp4"
    assert kind_of_file(b"the wide sea") == ""
