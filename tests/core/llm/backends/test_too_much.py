"""However much a service sends and whatever it says it is, only so much is read, and a sentence says so."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import ModelMisbehavedError
from core.llm.backends import http_clients
from core.llm.backends.openai.transcription import ServiceTranscriber
from core.llm.open_model import get_chat_model
from core.llm.transcription import recording_of
from core.messages.message import USER, Message
from core.testing.model_server import ModelServer
from core.testing.script import Reply
from tests.transcription_server import TranscriptionServer

pytestmark = pytest.mark.anyio

MORE = 2 << 20
KINDS = ["application/json", "text/event-stream", "text/plain"]
PROTOCOLS = ["openai", "anthropic", "gemini", "openai_responses", "mistral", "bedrock_converse", "qwen_dashscope"]


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_clients, "_LONGEST_STREAM", 1 << 20)
    monkeypatch.setattr(http_clients, "_LONGEST_WHOLE", 1 << 20)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_model_that_sends_too_much_is_told_in_a_sentence_and_not_asked_again(protocol: str, kind: str) -> None:
    with ModelServer(Reply(body=b": \n" * (MORE // 3), content_type=kind)) as server:
        place = server.dashscope_url if protocol == "qwen_dashscope" else f"http://{server.host}:{server.port}/v1"
        cfg: dict[str, Any] = {
            "model": "qwen-plus",
            "model_type": protocol,
            "base_url": place,
            "api_key": "sk-test-0123",
        }
        model = get_chat_model({**cfg, "generate_cfg": {"max_retries": 2}})
        with pytest.raises(ModelMisbehavedError) as caught:
            await model.achat([Message(USER, "Hello?")])
        await model.aclose()
    assert f"{server.host}:{server.port} answered with more than 1 MB." in str(caught.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_a_transcript_that_is_too_long_for_one_is_told_likewise(kind: str) -> None:
    recording = recording_of(b"ID3" + b"\0" * 100, 1)
    with TranscriptionServer(answer=b" " * MORE, content_type=kind) as server:
        transcriber = ServiceTranscriber(server.base_url, server.key, "whisper-1")
        with pytest.raises(ModelMisbehavedError, match="answered with more than 1 MB"):
            await transcriber.transcribe(recording)
    assert len(server.sent) == 1
