"""A conversation fits what the model can read, and keeps what matters most."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import ContextTooLongError
from core.llm.base import BaseChatModel
from core.llm.layers.fit_context import HEAVY, fitted
from core.llm.request import ChatRequest
from core.llm.tokens import shortened
from core.messages.content import ContentItem
from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, USER, Message
from tests.tries import tries


class WordModel(BaseChatModel):
    """Counts a token for each word, and four for each message."""

    tokens_per_message = 4

    def count_tokens(self, text: str) -> int:
        return len(text.split())


MODEL = WordModel()


def words(count: int) -> str:
    return " ".join(f"w{n}" for n in range(count))


def call(number: str, arguments: str = "{}") -> Message:
    return Message(ASSISTANT, "", function_call={"name": "f", "arguments": arguments}, extra={"function_id": number})


def result(number: str, text: str) -> Message:
    return Message(FUNCTION, text, name="f", extra={"function_id": number})


def fit(messages: list[Message], room: int) -> list[Message]:
    return list(fitted(ChatRequest(tuple(messages)), room, MODEL).messages)


def size(messages: list[Message]) -> int:
    """As the budget sees it: what stands for an omitted text is free."""
    return sum(4 + len(m.get_text_content().split()) for m in messages) - sum(m.content == "omit" for m in messages)


def test_what_fits_is_the_same_request() -> None:
    request = ChatRequest((Message(USER, "hi"), Message(ASSISTANT, "yo"), Message(USER, "again")))
    assert fitted(request, 1000, MODEL) is request


def test_the_oldest_turns_go_first_and_the_system_message_stays() -> None:
    history = [Message(SYSTEM, "sys")]
    for turn in range(4):
        history += [Message(USER, f"question{turn} {words(20)}"), Message(ASSISTANT, words(20))]
    kept = fit([*history, Message(USER, "last")], 120)
    firsts = [m.get_text_content().split()[0] for m in kept]
    assert firsts == ["sys", "omit", "w0", "question2", "w0", "question3", "w0", "last"]


def test_long_results_of_old_turns_get_shorter_before_any_turn_goes() -> None:
    history = [Message(USER, "first"), call("1"), result("1", words(2000)), Message(ASSISTANT, "done")]
    kept = fit([*history, Message(USER, "second")], 500)
    assert [m.role for m in kept] == [USER, ASSISTANT, FUNCTION, ASSISTANT, USER]
    assert kept[2].name == "f"
    assert kept[2].extra == {"function_id": "1"}
    assert size(kept) <= 500


def test_the_question_is_cut_in_the_middle_when_it_alone_is_too_long() -> None:
    (kept,) = fit([Message(USER, words(200))], 54)
    text = kept.get_text_content()
    assert text.startswith("w0 w1 ")
    assert text.endswith(" w198 w199")
    assert "..." in text
    assert len(text.split()) <= 50


def test_in_the_newest_turn_the_first_steps_go_and_the_last_stays_whole() -> None:
    steps = [m for n in range(6) for m in (call(str(n)), result(str(n), words(30)))]
    kept = fit([Message(USER, "q"), *steps], 120)
    assert kept[0].get_text_content() == "q"
    assert kept[-1].get_text_content() == words(30)
    calls = [m.extra["function_id"] for m in kept if m.function_call and m.extra]
    results = [m.extra["function_id"] for m in kept if m.role == FUNCTION and m.extra]
    assert calls == results
    assert calls[-1] == "5"


def test_the_newest_result_is_shortened_when_nothing_else_is_left() -> None:
    kept = fit([Message(USER, "q"), call("1"), result("1", words(5000))], 300)
    assert size(kept) <= 300
    assert "..." in kept[-1].get_text_content()
    assert kept[0].get_text_content() == "q"


def test_a_system_message_that_leaves_no_room_is_refused() -> None:
    with pytest.raises(ContextTooLongError):
        fit([Message(SYSTEM, words(200)), Message(USER, "hi")], 50)


def test_tools_count() -> None:
    functions = ({"name": "f", "description": words(400), "parameters": {}},)
    request = ChatRequest((Message(USER, words(100)),), functions)
    kept = fitted(request, 510, MODEL).messages[0].get_text_content()
    assert len(kept.split()) < 50


def test_a_picture_beside_a_text_that_is_cut_stays() -> None:
    message = Message(USER, [ContentItem(text=words(200)), ContentItem(image="a.png")])
    (kept,) = fit([message], 60)
    assert [item.type for item in kept.items] == ["text", "image"]


def test_the_caller_keeps_his_messages_as_they_were() -> None:
    messages = [Message(USER, words(200))]
    fit(messages, 54)
    assert messages[0].content == words(200)


def test_a_negative_or_missing_limit_leaves_room_for_long_conversations() -> None:
    request = ChatRequest((Message(USER, words(3000)),))
    assert fitted(request, 58_000, MODEL) is request


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    messages: list[Message] = []
    if draw(st.booleans()):
        messages.append(Message(SYSTEM, words(draw(st.integers(0, 10)))))
    for turn in range(draw(st.integers(1, 4))):
        messages.append(Message(USER, words(draw(st.integers(1, 80)))))
        for step in range(draw(st.integers(0, 3))):
            number = f"{turn}.{step}"
            messages += [call(number), result(number, words(draw(st.integers(0, 300))))]
        if draw(st.booleans()):
            messages.append(Message(ASSISTANT, words(draw(st.integers(1, 80)))))
    return messages


@settings(max_examples=tries(150), deadline=None)
@given(conversations(), st.integers(60, 600))
def test_the_result_never_exceeds_the_room_and_never_parts_a_call_from_its_result(
    messages: list[Message], room: int
) -> None:
    try:
        kept = fit(messages, room)
    except ContextTooLongError:
        return
    assert size(kept) <= room
    calls = [m.extra["function_id"] for m in kept if m.function_call and m.extra]
    results = [m.extra["function_id"] for m in kept if m.role == FUNCTION and m.extra]
    assert calls == results
    assert [m for m in kept if m.role == SYSTEM] == [m for m in messages if m.role == SYSTEM]


@settings(max_examples=tries(200), deadline=None)
@given(st.text(alphabet="ab é👩‍👩‍👧👍🏽🇩🇪e\u0301क्षि你", max_size=60), st.integers(4, 40))
def test_a_cut_tears_no_character_that_a_reader_sees(text: str, limit: int) -> None:
    cut = shortened(text, limit, len)
    if cut == text:
        return
    front, _, back = cut.partition("...")
    whole = regex.findall(r"\X", text)
    fronts = {"".join(whole[:n]) for n in range(len(whole) + 1)}
    backs = {"".join(whole[n:]) for n in range(len(whole) + 1)}
    assert front in fronts
    assert back in backs
    assert len(cut) <= limit


class Slow(BaseChatModel):
    """Counts a token for each word, but not before the loop went on; repeats what reached it."""

    model_type = "slow"

    def __init__(self, turned: threading.Event) -> None:
        super().__init__()
        self.turned, self.stalled, self.counted = turned, False, set[tuple[bool, bool]]()
        self.reached: tuple[Message, ...] = ()

    def count_tokens(self, text: str) -> int:
        self.counted.add((threading.current_thread() is threading.main_thread(), len(text) > HEAVY))
        self.stalled = self.stalled or not self.turned.wait(timeout=20)
        return len(text.split())

    async def _stream(self, request):
        self.reached = request.messages
        yield MessageStarted()
        yield TextDelta("fine")
        yield MessageFinished("stop")


@pytest.mark.anyio
@pytest.mark.parametrize("fits", [True, False])
async def test_a_history_of_megabytes_is_counted_beside_the_loop(fits: bool) -> None:
    turned = threading.Event()
    model = Slow(turned)

    async def tick() -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        turned.set()

    ticking = asyncio.create_task(tick())
    history = [Message(USER, words(300_000)), Message(ASSISTANT, "ok"), Message(USER, "and now?")]
    request = ChatRequest(tuple(history), generate={"max_input_tokens": 100 if fits else 0})
    async with aclosing(model.stream(request)) as events:
        assert [event async for event in events if isinstance(event, TextDelta)] == [TextDelta("fine")]
    await ticking
    assert not model.stalled
    assert (True, True) not in model.counted, "nothing large is counted on the loop"
    assert (False, True) in model.counted
    assert (size(list(model.reached)) < 200) is fits


@pytest.mark.anyio
async def test_a_small_request_is_counted_where_it_is() -> None:
    turned = threading.Event()
    turned.set()
    model = Slow(turned)
    await model.achat([Message(USER, "hi")], extra_generate_cfg={"max_input_tokens": 100})
    assert model.counted == {(True, False)}
