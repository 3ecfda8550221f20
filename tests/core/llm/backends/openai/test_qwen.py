"""Models that see, watch, hear, draw and speak behind the OpenAI protocol."""

from __future__ import annotations

import base64
import io
import struct
import wave

import pytest

from core.bridge.sync import run
from core.errors import ModelRefusedError
from core.llm.open_model import get_chat_model
from core.llm.request import ChatRequest
from core.messages.content import ContentItem
from core.messages.events import ItemAdded, MessageFinished, TextDelta
from core.messages.message import USER, Message
from core.testing.script import Reply

SAMPLES = struct.pack("<2400h", *range(-1200, 1200))
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt " + b"\0" * 24
MP4 = b"\0\0\0\x18ftypmp42" + b"\0" * 16
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def bytes_of(address: object) -> bytes:
    return base64.b64decode(str(address).partition(",")[2])


@pytest.fixture
def files(tmp_path):
    made = {"image": ("a.png", PNG), "audio": ("b.wav", WAV), "video": ("c.mp4", MP4)}
    for name, raw in made.values():
        (tmp_path / name).write_bytes(raw)
    return {kind: str(tmp_path / name) for kind, (name, _) in made.items()}


def everything(files) -> Message:
    return Message(USER, [ContentItem(text="what?"), *(ContentItem(**{kind: path}) for kind, path in files.items())])


@pytest.mark.parametrize(
    ("cfg", "parts"),
    [
        ({"model_type": "qwenvl_oai"}, {"image_url", "video_url"}),
        ({"model_type": "qwenvl_oai", "audio": True}, {"image_url", "video_url", "input_audio"}),
        ({"model_type": "qwenomni_oai"}, {"image_url", "video_url", "input_audio"}),
        ({"model": "gpt-4o"}, {"image_url"}),
        ({"model": "gpt-4o-audio-preview"}, {"image_url", "input_audio"}),
        ({"model": "qwen3-omni-flash"}, {"image_url", "video_url", "input_audio"}),
        ({"model": "qwen2.5-vl-7b", "video": False}, {"image_url"}),
        ({"model": "qwen2.5-vl-7b", "vision": False}, set()),
    ],
)
def test_a_model_gets_what_it_takes_and_notes_of_the_rest(server, opened, files, cfg, parts):
    server.add(Reply(text="a"))
    model = opened(**cfg)
    model.chat([everything(files)], stream=False)
    assert model.support_video_input == ("video_url" in parts)
    content = server.requests[0].messages[-1]["content"]
    kinds = {part["type"] for part in content if isinstance(part, dict)} - {"text"}
    assert kinds == parts
    for kind, name in (("image_url", "a.png"), ("input_audio", "b.wav"), ("video_url", "c.mp4")):
        assert (name in str(content)) == (kind not in parts)
    assert files["image"] not in str(content)


@pytest.mark.anyio
@pytest.mark.parametrize("split", [0, 5])
async def test_speech_is_one_recording_after_the_text(server, opened, split):
    server.add(Reply(text="Good day.", audio=SAMPLES, split=split, usage=(1, 2)))
    model = opened(model_type="qwenomni_oai")
    events = [event async for event in model.stream(ChatRequest((Message(USER, "q"),)))]
    await model.aclose()
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Good day."
    (added,) = [event for event in events if isinstance(event, ItemAdded)]
    assert events[-2:] == [added, events[-1]]
    assert isinstance(events[-1], MessageFinished)
    with wave.open(io.BytesIO(bytes_of(added.item.audio))) as heard:
        assert (heard.getframerate(), heard.getnchannels(), heard.getsampwidth()) == (24_000, 1, 2)
        assert heard.readframes(9999) == SAMPLES
    body = server.requests[0].body
    assert (body["modalities"], body["audio"]) == (["text", "audio"], {"voice": "Cherry", "format": "wav"})


@pytest.mark.parametrize(("raw", "start"), [(WAV, "data:audio/wav;"), (b"ID3" + WAV, "data:audio/mpeg;")])
def test_a_recording_with_a_header_stays_as_it_is(server, opened, raw, start):
    server.add(Reply(text="a", audio=raw))
    said = opened(model_type="qwenomni_oai").chat([{"role": "user", "content": "q"}], stream=False)
    text, spoken = said[0]["content"]
    assert text == {"text": "a"}
    assert spoken["audio"].startswith(start)
    assert bytes_of(spoken["audio"]) == raw


def test_the_reply_may_be_text_alone_and_the_voice_another(server, opened):
    server.add(Reply(text="a"), Reply(text="b"))
    opened(model_type="qwenomni_oai", generate_cfg={"modalities": ["text"]}).quick_chat("q")
    opened(model_type="qwenomni_oai", generate_cfg={"audio": {"voice": "Ethan", "format": "mp3"}}).quick_chat("q")
    silent, spoken = (request.body for request in server.requests)
    assert (silent["modalities"], "audio" in silent) == (["text"], False)
    assert spoken["audio"]["voice"] == "Ethan"


def test_its_service_is_dashscopes_where_none_is_named(opened):
    assert opened(model_type="qwenomni_oai", base_url=None).label == "scripted · dashscope.aliyuncs.com"
    assert opened(model_type="qwenomni_oai").support_multimodal_output


def test_pictures_that_a_model_draws_are_items_of_the_reply(server, opened):
    server.add(Reply(text="Here:", images=[PNG, "https://example.org/b.png"]))
    (said,) = opened().chat([Message(USER, "draw")], stream=False)
    text, first, second = said.items
    assert (text.text, bytes_of(first.image), second.image) == ("Here:", PNG, "https://example.org/b.png")


def test_what_was_spoken_goes_back_as_its_words(server, opened):
    server.add(Reply(text="Good day.", audio=SAMPLES), Reply(text="b"))
    model = opened(model_type="qwenomni_oai")
    history = [Message(USER, "q"), *model.chat([Message(USER, "q")], stream=False), Message(USER, "r")]
    model.chat(history, stream=False)
    assert server.requests[1].messages[1] == {"role": "assistant", "content": "Good day."}


def test_dashscopes_key_goes_to_dashscope_and_openais_never_does(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai-0123")
    monkeypatch.setenv("DASHSCOPE_API_KEY_FILE_PATH", "/nowhere")
    keyless = get_chat_model({"model": "m", "model_type": "qwenomni_oai"})
    with pytest.raises(ModelRefusedError) as caught:
        keyless.quick_chat("q")
    assert caught.value.words_key == "model_key_missing"
    assert "DASHSCOPE_API_KEY" in caught.value.hint
    monkeypatch.setattr("dashscope.api_key", "sk-dashscope-0123")
    cfg = {"model": "m", "model_type": "oai", "model_server": "dashscope"}
    usual, told = get_chat_model(cfg), get_chat_model({**cfg, "api_key": "sk-dashscope-0123"})
    assert run(usual.account()) == run(told.account())
    for model in (usual, told):
        run(model.aclose())
