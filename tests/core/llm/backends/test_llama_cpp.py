"""The built-in model without its weights: what it is asked, what it is called, and how it fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from core.errors import ModelServiceError, SettingsError, UnknownNameError
from core.llm.backends import llama_cpp
from core.llm.backends.llama_cpp import LlamaCppModel, question_body
from core.llm.backends.llama_server import Chunk, LlamaQuestion
from core.llm.backends.meanings import in_words
from core.llm.ledger import LedgerCall, recorded_by
from core.llm.open_model import get_chat_model
from core.llm.request import ChatRequest, Progress, ReadSoFar
from core.llm.weights_catalog import Weights
from core.messages.content import ContentItem
from core.messages.events import CallDelta, CallStarted, MessageFinished, MessageStarted, ReasoningDelta, TextDelta
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, USER, Message
from core.testing.gguf_file import gguf_file

pytestmark = pytest.mark.anyio


def asked(*messages: Message, **generate: object) -> dict[str, object]:
    return question_body(ChatRequest(messages, generate=generate), "WHO")


def test_the_system_message_says_who_the_model_is_before_what_the_agent_says() -> None:
    body = asked(Message(SYSTEM, "Be kind."), Message(USER, "hi"))
    assert body["messages"] == [{"role": "system", "content": "WHO\n\nBe kind."}, {"role": "user", "content": "hi"}]


def test_turns_alternate_and_empty_ones_go() -> None:
    body = asked(Message(USER, "a"), Message(USER, "b"), Message(ASSISTANT, ""), Message(USER, "c"))
    assert body["messages"] == [{"role": "system", "content": "WHO"}, {"role": "user", "content": "a\n\nb\n\nc"}]


def test_typed_special_tokens_end_no_turn_and_pictures_become_notes() -> None:
    body = asked(Message(USER, [ContentItem(text="<|im_end|> x "), ContentItem(image="sky.png")]))
    text = str(body["messages"])
    assert "<|im_end|>" not in text
    assert "[picture sky.png]" in text


def test_keys_of_our_own_stay_here_and_the_others_go_on() -> None:
    body = asked(Message(USER, "a"), max_input_tokens=5, temperature=0.9, response_format={"type": "json_schema"})
    assert "max_input_tokens" not in body
    assert body["temperature"] == 0.9
    assert body["response_format"] == {"type": "json_schema"}


def test_thinking_is_a_matter_of_the_chat_template() -> None:
    body = asked(Message(USER, "a"), enable_thinking=False, chat_template_kwargs={"b": 1})
    assert body["chat_template_kwargs"] == {"enable_thinking": False, "b": 1}
    assert "enable_thinking" not in body


WEATHER = {"name": "the weather", "description": "Of a city.", "parameters": {"type": "object", "properties": {}}}


def test_tools_that_no_template_took_go_to_the_models_own() -> None:
    messages = (
        Message(SYSTEM, "Be kind."),
        Message(USER, "Rain? <|im_end|>"),
        Message(ASSISTANT, function_call={"name": "the weather", "arguments": "{}"}, extra={"function_id": "a"}),
        Message(FUNCTION, "Rain.", name="the weather", extra={"function_id": "a"}),
    )
    body = question_body(ChatRequest(messages, (WEATHER,), {"use_raw_api": True}), "WHO")
    system, question, call, result = body["messages"]
    assert system == {"role": "system", "content": "WHO\n\nBe kind."}
    assert "<|im_end|>" not in question["content"]
    assert call["tool_calls"][0]["function"]["name"] == body["tools"][0]["function"]["name"] == "the weather"
    assert result == {"role": "tool", "tool_call_id": "a", "content": "Rain."}


async def test_calls_of_the_models_own_are_calls(model: LlamaCppModel, monkeypatch: pytest.MonkeyPatch) -> None:
    call = {"index": 0, "id": "x", "function": {"name": "the weather", "arguments": '{"city": "Oslo"}'}}
    called: Chunk = {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": None}]}
    monkeypatch.setattr(Server, "chunks", (called, chunk(reason="tool_calls")))
    request = ChatRequest((Message(USER, "Rain?"),), (WEATHER,), {"use_raw_api": True})
    events = [event async for event in model.stream(request)]
    assert events[1:3] == [CallStarted("x", "the weather"), CallDelta("x", '{"city": "Oslo"}')]
    assert isinstance(events[-1], MessageFinished)
    assert events[-1].reason == "calls"


def test_it_is_small_and_says_that_it_is_built_in() -> None:
    model = LlamaCppModel({"model": "smollm2-135m"})
    assert model.small
    assert model.label == "SmolLM2 135M, built in"
    assert model.generate_cfg["max_input_tokens"] < 8192 - model.generate_cfg["max_tokens"]


def test_a_wrong_setting_and_an_unknown_name_are_said() -> None:
    with pytest.raises(SettingsError, match="context"):
        LlamaCppModel({"context": "many"})
    with pytest.raises(UnknownNameError, match="smollm2-135m"):
        LlamaCppModel({"model": "smollm2"})


async def test_a_path_of_ones_own_is_taken_and_must_exist(tmp_path: Path) -> None:
    model = get_chat_model(str(tmp_path / "mine.gguf"))
    assert isinstance(model, LlamaCppModel)
    assert model.label == "mine, built in"
    with pytest.raises(SettingsError, match=r"mine\.gguf"):
        await model.prepare()


@pytest.mark.parametrize("content", [b"", b"this is no model", b"GGUF", gguf_file()[:-1], gguf_file(tensors=9)])
async def test_a_file_that_is_no_model_or_not_whole_is_said_with_a_hint(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "mine.gguf").write_bytes(content)
    with pytest.raises(ModelServiceError, match=r"mine\.gguf") as caught:
        await get_chat_model(str(tmp_path / "mine.gguf")).prepare()
    assert caught.value.words_key == "weights_not_loaded"
    assert caught.value.hint


async def test_a_whole_file_that_llama_cpp_cannot_load_is_said_too(tmp_path: Path) -> None:
    (tmp_path / "mine.gguf").write_bytes(gguf_file())
    with pytest.raises(ModelServiceError, match=r"mine\.gguf cannot be loaded") as caught:
        await get_chat_model(str(tmp_path / "mine.gguf")).prepare()
    assert caught.value.words_key == "weights_not_loaded"


def test_a_file_says_how_much_it_reads_at_once(tmp_path: Path) -> None:
    (tmp_path / "mine.gguf").write_bytes(gguf_file(context=2048))
    model = get_chat_model(str(tmp_path / "mine.gguf"))
    assert model.generate_cfg["max_tokens"] == 512
    assert model.generate_cfg["max_input_tokens"] < 2048 - 512


def test_a_large_file_is_told_about_tools_in_words_and_a_small_one_is_held_to_a_form(tmp_path: Path) -> None:
    large = tmp_path / "large.gguf"
    with large.open("wb") as file:
        file.truncate(3_000_000_000)  # a hole: no disk is used
    (tmp_path / "small.gguf").write_bytes(gguf_file())
    assert not get_chat_model(str(large)).small
    assert get_chat_model(str(tmp_path / "small.gguf")).small
    assert get_chat_model({"model": str(large), "small": True}).small


class Store:
    """Has one file; any other is out of reach."""

    has = "smollm2-135m"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fetch(self, weights: Weights, progress: Callable[[Progress], None] | None, *_: object) -> Path:
        if weights.name != self.has:
            raise ModelServiceError(message="Not here.", key="weights_unreachable")
        if progress is not None:
            progress(Progress(weights.label, 1, 2))
        return self.folder / weights.file


class Server:
    """Answers each question with the chunks it is given, in the caller's thread."""

    chunks: tuple[Chunk | Exception, ...] = ()

    def __init__(self, path: Path, shape: object) -> None:
        self.path = path

    def ask(self, question: LlamaQuestion) -> None:
        for chunk in self.chunks:
            question.emit(chunk)
        question.emit(None)

    def close(self) -> None:
        pass


def chunk(text: str = "", reason: str | None = None) -> Chunk:
    return {"choices": [{"delta": {"content": text or None}, "finish_reason": reason}]}


@pytest.fixture
async def model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[LlamaCppModel]:
    monkeypatch.setattr(llama_cpp, "WeightStore", Store)
    monkeypatch.setattr(llama_cpp, "LlamaServer", Server)
    # A folder of its own, and closed after: else the next test that loads the real file is given this server.
    yield (opened := LlamaCppModel({"weights_dir": tmp_path}))
    await opened.aclose()


async def test_where_the_first_choice_cannot_be_had_the_last_resort_answers(model: LlamaCppModel) -> None:
    await model.prepare()
    assert model.label == "SmolLM2 135M, built in"


async def test_while_the_last_resort_is_fetched_the_model_is_called_by_its_name(model: LlamaCppModel) -> None:
    called: list[tuple[str, str]] = []
    await model.prepare(lambda progress: called.append((progress.what, model.label)))
    assert called == [("SmolLM2 135M", "SmolLM2 135M, built in")]


async def test_where_nothing_can_be_had_the_first_reason_is_given(
    model: LlamaCppModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store, "has", "")
    with pytest.raises(ModelServiceError) as caught:
        await model.achat([{"role": "user", "content": "hi"}])
    assert caught.value.words_key == "weights_unreachable"


async def test_a_reply_is_events(model: LlamaCppModel, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}
    monkeypatch.setattr(Server, "chunks", (chunk(), chunk("Good "), chunk("day"), chunk(reason="length"), usage))
    events = [event async for event in model.stream(ChatRequest((Message(USER, "hi"),)))]
    assert events[0] == MessageStarted()
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Good day"
    finished = events[-1]
    assert isinstance(finished, MessageFinished)
    assert finished.reason == "length"
    assert finished.usage
    assert finished.usage.total_tokens == 5


async def test_how_far_the_prompt_is_read_is_told_without_what_was_known(
    model: LlamaCppModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = [{"total": 1200, "cache": 200, "processed": n, "time_ms": ms} for n, ms in ((200, 0), (700, 2000))]
    chunks = [{"choices": [{"delta": {}}], "prompt_progress": one} for one in read]
    monkeypatch.setattr(Server, "chunks", (*chunks, chunk("Good day"), chunk(reason="stop")))
    told: list[ReadSoFar] = []

    class Account:
        def began(self, call: LedgerCall, spoke: object) -> None:
            pass

        def reads(self, call: LedgerCall, so_far: ReadSoFar) -> None:
            told.append(so_far)

        def ended(self, call: LedgerCall) -> None:
            pass

    with recorded_by(Account()):
        await model.achat([Message(USER, "hi")])
    assert told == [ReadSoFar(200, 1200), ReadSoFar(700, 1200, 250)]


async def test_a_thought_that_llama_cpp_tells_apart_is_reasoning(
    model: LlamaCppModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    thought: Chunk = {"choices": [{"delta": {"reasoning_content": "Hm."}, "finish_reason": None}]}
    monkeypatch.setattr(Server, "chunks", (thought, chunk("Yes."), chunk(reason="stop")))
    events = [event async for event in model.stream(ChatRequest((Message(USER, "hi"),)))]
    assert events[1:3] == [ReasoningDelta("Hm."), TextDelta("Yes.")]


@pytest.mark.parametrize(
    ("error", "key"),
    [
        ({"code": 400, "type": "exceed_context_size_error", "message": "too long"}, "context_too_long"),
        ({"code": 400, "type": "invalid_request_error", "message": "bad"}, "built_in_refused"),
        ({"code": 500, "type": "server_error", "message": "oh"}, "model_misbehaved"),
    ],
)
async def test_what_goes_wrong_inside_has_a_name(
    model: LlamaCppModel, monkeypatch: pytest.MonkeyPatch, error: dict[str, object], key: str
) -> None:
    monkeypatch.setattr(Server, "chunks", ({"error": error},))
    with pytest.raises(ModelServiceError) as caught:
        await model.achat([{"role": "user", "content": "hi"}])
    assert caught.value.words_key == key


RAW = "[json.exception.type_error.302] type must be number, but is string"


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (f"Field 'temperature': {RAW}", "temperature of generate_cfg must be a number, not a text."),
        (RAW, "A setting of generate_cfg must be a number, not a text."),
        ("Field 'x': [json.exception.parse_error.101] odd", "x of generate_cfg is wrong: odd"),
        ("failed to parse grammar", "failed to parse grammar"),
    ],
)
def test_what_llama_cpp_says_about_a_setting_is_a_sentence(said: str, sentence: str) -> None:
    assert in_words(said) == sentence


async def test_a_setting_that_llama_cpp_refuses_is_told_in_a_sentence(
    model: LlamaCppModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = {"code": 400, "type": "invalid_request_error", "message": f"Field 'temperature': {RAW}"}
    monkeypatch.setattr(Server, "chunks", ({"error": refused},))
    with pytest.raises(ModelServiceError, match="temperature of generate_cfg must be a number") as caught:
        await model.achat([{"role": "user", "content": "hi"}])
    assert "json.exception" not in str(caught.value)


@pytest.mark.parametrize(("before", "key"), [((), "built_in_refused"), ((chunk("Good "),), "model_misbehaved")])
async def test_what_cannot_begin_was_asked_wrongly_and_what_breaks_off_is_a_failure(
    model: LlamaCppModel, monkeypatch: pytest.MonkeyPatch, before: tuple[Chunk, ...], key: str
) -> None:
    monkeypatch.setattr(Server, "chunks", (*before, RuntimeError("unrecognized type")))
    with pytest.raises(ModelServiceError, match="unrecognized type") as caught:
        await model.achat([{"role": "user", "content": "hi"}])
    assert caught.value.words_key == key
    assert before or caught.value.hint


async def test_an_answer_that_ends_without_an_end_is_said(
    model: LlamaCppModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Server, "chunks", (chunk("Good "),))
    with pytest.raises(ModelServiceError) as caught:
        async with aclosing(model.stream(ChatRequest((Message(USER, "hi"),)))) as events:
            async for _ in events:
                pass
    assert caught.value.words_key == "model_misbehaved"


async def test_models_of_several_agents_have_one_file_in_memory_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loaded: list[Kept] = []

    class Kept(Server):
        def __init__(self, path: Path, shape: object) -> None:
            super().__init__(path, shape)
            self.closed = False
            self.asked: list[LlamaQuestion] = []
            loaded.append(self)

        def ask(self, question: LlamaQuestion) -> None:
            self.asked.append(question)

        def close(self) -> None:
            self.closed = True

    monkeypatch.setattr(llama_cpp, "LlamaServer", Kept)
    file = tmp_path / "a.gguf"
    file.write_bytes(gguf_file())
    first, second, other = (LlamaCppModel({"weights": file, "parallel": n}) for n in (2, 2, 3))
    for model in (first, second, other):
        await model.prepare()
    assert len(loaded) == 2
    words = asyncio.create_task(second.achat([{"role": "user", "content": "hi"}]))
    mine = asyncio.create_task(first.achat([{"role": "user", "content": "hi"}]))
    while len(loaded[0].asked) < 2:
        await asyncio.sleep(0)
    await first.aclose()
    with pytest.raises(ModelServiceError):
        await asyncio.wait_for(mine, 60)
    assert [question.unwanted.is_set() for question in loaded[0].asked] == [False, True]
    assert not loaded[0].closed
    for piece in (chunk("Yes."), chunk(reason="stop"), None):
        loaded[0].asked[0].emit(piece)
    assert (await words)[-1]["content"] == "Yes."
    await second.aclose()
    assert [server.closed for server in loaded] == [True, False]
    await other.aclose()
    await second.prepare()
    assert len(loaded) == 3
    for model in (second, other):
        await model.aclose()
    assert all(server.closed for server in loaded)


class Waiting(Server):
    """Answers nothing until the question is not wanted any more, but for a second one."""

    asked: list[LlamaQuestion] = []

    def ask(self, question: LlamaQuestion) -> None:
        Waiting.asked.append(question)
        if len(Waiting.asked) > 1:
            question.emit(chunk("Hello", "stop"))
            question.emit(None)


async def test_it_reads_ahead_what_questions_begin_with(model: LlamaCppModel, monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = list[dict[str, object]]()
    monkeypatch.setattr(Server, "chunks", (chunk("{", "length"),))
    monkeypatch.setattr(Server, "ask", lambda self, q, ask=Server.ask: (bodies.append(q.body), ask(self, q))[1])
    await model.read_ahead([Message(SYSTEM, "Be kind."), Message(USER, "Hello!")], [WEATHER], "en")
    (body,) = bodies
    assert body["max_tokens"] == 1
    assert "Be kind." in str(body["messages"])
    assert "the weather: Of a city." in str(body["messages"])


async def test_a_question_ends_what_is_read_ahead(model: LlamaCppModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_cpp, "LlamaServer", Waiting)
    monkeypatch.setattr(Waiting, "asked", [])
    ahead = asyncio.create_task(model.read_ahead([Message(USER, "Hello!")]))
    while not Waiting.asked:
        await asyncio.sleep(0)
    (answer,) = await model.achat([Message(USER, "Who are you?")])
    assert answer.content == "Hello"
    await ahead
    assert Waiting.asked[0].unwanted.is_set()
    await model.read_ahead([Message(USER, "Hello!")])  # nobody waits for what is read ahead once questions come
    assert len(Waiting.asked) == 2


async def test_a_question_of_another_loop_ends_what_is_read_ahead_on_the_loop_that_reads_it(
    model: LlamaCppModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama_cpp, "LlamaServer", Waiting)
    monkeypatch.setattr(Waiting, "asked", [])
    loop = asyncio.get_running_loop()
    loop.set_debug(True)  # it then refuses what is done to it from another thread
    ahead = asyncio.create_task(model.read_ahead([Message(USER, "Hello!")]))
    try:
        while not Waiting.asked:
            await asyncio.sleep(0)
        (answer,) = await asyncio.to_thread(lambda: asyncio.run(model.achat([Message(USER, "Who are you?")])))
        async with asyncio.timeout(60):
            await ahead
    finally:
        loop.set_debug(False)
        ahead.cancel()
        await asyncio.wait({ahead})
    assert answer.content == "Hello"


async def test_nothing_is_read_ahead_any_more_where_that_is_cancelled(
    model: LlamaCppModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama_cpp, "LlamaServer", Waiting)
    monkeypatch.setattr(Waiting, "asked", [])
    ahead = asyncio.create_task(model.read_ahead([Message(USER, "Hello!")]))
    while not Waiting.asked:
        await asyncio.sleep(0)
    ahead.cancel()
    await asyncio.wait({ahead})
    async with asyncio.timeout(60):
        while not Waiting.asked[0].unwanted.is_set():
            await asyncio.sleep(0)
