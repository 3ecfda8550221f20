"""ZeroGPU without torch and without the platform: what a GPU is asked for, what comes back, and what is told of it.

`tests/real/test_zerogpu.py` holds the same to the platform's own package.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from core.errors import ContextTooLongError, MissingExtraError, ModelRefusedError, ModelServiceError, SettingsError
from core.llm.backends.local import Question
from core.llm.backends.transformers.inputs import Sampling
from core.llm.backends.transformers.writing import StoppedError, Task, Writing
from core.llm.backends.zerogpu import model as zerogpu
from core.llm.backends.zerogpu.hardware import Piece, refusal
from core.llm.backends.zerogpu.model import Borrowing, Hold, ZeroGpuEngine, pieces
from core.llm.open_model import get_chat_model
from core.messages.events import Event, MessageFinished, TextDelta
from webui.words import Words

TASK = Task((), (), Sampling(max_tokens=100), "the visitor's")
END = MessageFinished("stop")


class Written(Writing):
    """Writes what it is told to, word after word; its prompt has as many tokens as the context has left out."""

    def __init__(self, *words: str, asked: int = 10, waits: threading.Event | None = None) -> None:
        self.words, self.asked, self.waits, self.stopped = words, asked, waits, threading.Event()

    def prompt(self, task: Task) -> str:
        return "x" * self.asked

    def count_tokens(self, text: str) -> int:
        return len(text)

    def longest(self, asked: int, wanted: int | None) -> int:
        if asked > 1000:
            raise ContextTooLongError(code="400", message="Too long.", sent=False)
        return wanted or 2048

    def write(
        self, task: Task, say: Callable[[TextDelta], None], unwanted: Callable[[], bool], seconds: float | None = None
    ) -> MessageFinished:
        for word in self.words:
            if word == "fails":
                raise RuntimeError(word)
            say(TextDelta(word))
        while self.waits is not None and not self.waits.wait(0.01):
            if unwanted():
                self.stopped.set()
                raise StoppedError
        return END


class HubError(Exception):
    """As the package raises it: Gradio's own error, with a title and a sentence for its page."""

    def __init__(self, title: str, message: str) -> None:
        super().__init__(message)
        self.title, self.message = title, message


# -- settings ---------------------------------------------------------------------------------------------------------


def test_elsewhere_the_package_is_not_wanted_and_on_zerogpu_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"torch", "transformers"}
    monkeypatch.setattr("core.errors.find_spec", lambda name: object() if name in there else None)
    cfg = {"model_type": "zerogpu", "model": "a/b"}
    assert get_chat_model(cfg).label == "b, Transformers"
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    with pytest.raises(MissingExtraError, match=r"'zerogpu' needs the extra 'zerogpu', which brings .* 'spaces'"):
        get_chat_model(cfg)


@pytest.mark.parametrize(
    ("key", "value"), [("gpu_seconds", 5), ("tokens_per_second", 0), ("gpu_size", "huge"), ("at_once", 0)]
)
def test_a_wrong_setting_is_named(key: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.llm.backends.transformers.model.need_packages", lambda *_: None)
    with pytest.raises(SettingsError, match=key):
        get_chat_model({"model_type": "zerogpu", "model": "a/b", key: value})


# -- what is asked for ------------------------------------------------------------------------------------------------


def test_no_more_seconds_are_asked_for_than_the_reply_may_need() -> None:
    borrowing = Borrowing(60, 30.0)
    assert [borrowing.seconds(*tokens) for tokens in ((0, 1), (4_000, 300), (0, 9_000))] == [6, 17, 60]


# -- in the process that has the GPU ----------------------------------------------------------------------------------


def test_a_reply_comes_piece_by_piece_and_its_error_last() -> None:
    assert [*pieces(Written("Hel", "lo"), TASK, 9.0)] == [TextDelta("Hel"), TextDelta("lo"), END]
    first, second = pieces(Written("Hel", "fails"), TASK, 9.0)
    assert first == TextDelta("Hel")
    assert isinstance(second, ModelServiceError)
    assert (str(second), second.exception, second.__traceback__) == ("The model failed: fails", None, None)


def test_while_nothing_comes_there_are_signs_of_life_and_who_leaves_ends_the_writing() -> None:
    writing = Written(waits=threading.Event())
    stream = pieces(writing, TASK, 9.0)
    assert next(stream) is None
    stream.close()
    assert writing.stopped.is_set()


# -- in the process of the page ---------------------------------------------------------------------------------------


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tokens that the package was shown, in whose place nobody is asked here."""
    seen: list[str] = []

    @contextmanager
    def asking_for(token: str, _: object) -> Iterator[None]:
        seen.append(token)
        yield

    monkeypatch.setattr(zerogpu, "asking_for", asking_for)
    return seen


class Heard:
    """What an engine answers to one question."""

    def __init__(self, engine: ZeroGpuEngine) -> None:
        self.pieces: list[Event | Exception] = []
        self.some, self.over = threading.Event(), threading.Event()
        self.question = Question[Task, Event](TASK, self.hear)
        engine.ask(self.question)

    def hear(self, piece: Event | Exception | None) -> None:
        if piece is None:
            self.over.set()
        else:
            self.pieces.append(piece)
        self.some.set()


@contextmanager
def engine_of(
    writing: Writing, write: Callable[[Task, float], Generator[Piece]] | None = None, at_once: int = 1
) -> Iterator[ZeroGpuEngine]:
    hold = Hold(writing)
    engine = ZeroGpuEngine(hold, write or hold.write, Borrowing(60, 30.0), at_once=at_once)
    yield engine
    engine.close()
    assert hold.writing is None


def test_a_question_is_asked_with_the_visitors_token_which_goes_no_further(shown: list[str]) -> None:
    given: list[tuple[str, float]] = []

    def write(task: Task, seconds: float) -> Generator[Piece]:
        given.append((task.token, seconds))
        yield from (None, TextDelta("Hello"), END)

    with engine_of(Written(), write) as engine:
        heard = Heard(engine)
        assert heard.over.wait(10)
    assert heard.pieces == [TextDelta("Hello"), END]
    assert (shown, given) == (["the visitor's"], [("", 9.0)])


def test_a_prompt_that_is_too_long_takes_nobodys_time(shown: list[str]) -> None:
    with engine_of(Written(asked=2000)) as engine:
        heard = Heard(engine)
        assert heard.over.wait(10)
    assert [type(piece) for piece in heard.pieces] == [ContextTooLongError]
    assert shown == []


def test_only_so_many_are_asked_for_at_once(shown: list[str]) -> None:
    go_on = threading.Event()
    with engine_of(Written("Hello", waits=go_on), at_once=2) as engine:
        first, second, third = Heard(engine), Heard(engine), Heard(engine)
        assert first.some.wait(10)
        assert second.some.wait(10)
        assert (len(shown), third.pieces) == (2, [])
        go_on.set()
        assert third.over.wait(10)
    assert third.pieces == [TextDelta("Hello"), END]


@pytest.mark.usefixtures("shown")
def test_who_leaves_ends_the_writing_and_the_next_is_answered() -> None:
    writing = Written("Hello", waits=threading.Event())
    with engine_of(writing) as engine:
        heard = Heard(engine)
        assert heard.some.wait(10)
        heard.question.unwanted.set()
        assert heard.over.wait(10)
        assert writing.stopped.is_set()
        assert heard.pieces == [TextDelta("Hello")]


# -- refusals ---------------------------------------------------------------------------------------------------------

QUOTA = "ZeroGPU quota exceeded"
OVER = "You have exceeded your free ZeroGPU quota (60s requested vs. 12s left). Try again in 3:20:00. "
NONE = "No GPU was available after 60s. Try re-running outside of examples if it happened after clicking one"
REFUSALS = [
    (QUOTA, OVER, True, "gpu_quota", "60 s were asked for, 12 s are left. Try again in 3:20:00."),
    (QUOTA, OVER.replace("12s", "-3s"), True, "gpu_quota", "0 s are left"),
    (QUOTA, "You have exceeded your ZeroGPU runs limit. ", True, "gpu_runs", "tomorrow"),
    (QUOTA, "Space app has reached its GPU limit. Try re-running …", False, "gpu_unknown", "Sign in to Hugging Face"),
    (QUOTA, NONE, False, "gpu_busy", "All GPUs"),
    ("ZeroGPU queue timeout", "No GPU was available after 60s [Subscribe]", True, "gpu_busy", "All GPUs"),
    ("ZeroGPU client error", "No GPU was available", True, "gpu_busy", "All GPUs"),
    ("ZeroGPU illegal duration", "The requested GPU duration …", True, "gpu_too_long", "Set gpu_seconds lower."),
    ("ZeroGPU pending credits exceeded", "You have too many …", True, "gpu_busy", "All GPUs"),
    ("ZeroGPU client error", "Expired ZeroGPU proxy token", True, "gpu_expired", "too old"),
    ("ZeroGPU worker error", "GPU task aborted", True, "gpu_gone", "took the GPU away"),
    ("ZeroGPU worker error", "OutOfMemoryError", True, "model_failed", "ZeroGPU failed: OutOfMemoryError"),
]


@pytest.mark.parametrize(("title", "said", "known", "key", "told"), REFUSALS)
def test_each_refusal_is_one_sentence_in_each_language(title: str, said: str, known: bool, key: str, told: str) -> None:
    error = refusal(HubError(title, said), 60.0, known=known)
    assert (error.words_key, told in str(error)) == (key, True), str(error)
    for language in ("en", "zh"):
        sentence, remedy = Words(language).error_parts(error)
        assert sentence, language
        assert "{" not in sentence + remedy


@pytest.mark.usefixtures("shown")
def test_a_refusal_reaches_who_asked() -> None:
    def write(task: Task, seconds: float) -> Generator[Piece]:
        raise HubError(QUOTA, OVER)
        yield

    with engine_of(Written(), cast("Any", write)) as engine:
        heard = Heard(engine)
        assert heard.over.wait(10)
    (error,) = heard.pieces
    assert isinstance(error, ModelRefusedError)
    assert error.details["wait"] == "3:20:00"
