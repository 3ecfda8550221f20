"""A Transformers model at work: one thread that answers questions in turn, each of which can be given up."""

from __future__ import annotations

import atexit
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from core.errors import ContextTooLongError, ModelRefusedError, ModelServiceError, ParlourError
from core.llm.backends.questions import Question, Waiting
from core.llm.backends.reply_text import ReplyText
from core.llm.backends.transformers_load import Loaded, Place, is_out_of_memory, no_memory
from core.llm.backends.transformers_prompt import PLAIN_STOP, has_template, prompt_text
from core.messages.events import Event, MessageFinished, TextDelta
from core.messages.message import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.llm.backends.local_turns import Json
    from core.llm.backends.transformers_sampling import Sampling


_REPLY_TOKENS: Final = 2_048
_THOUGHT: Final = "<think>"


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked.

    Args:
        turns: The conversation.
        pictures: The opened pictures of it, in order.
        sampling: How the reply is drawn.
    """

    turns: Sequence[Json]
    pictures: Sequence[Any]
    sampling: Sampling


TaskQuestion: TypeAlias = Question[Task, Event]


class TransformersEngine:
    """Answers with a loaded model, first come, first served.

    Args:
        loaded: The model.
        place: Where it came from, for messages.
    """

    def __init__(self, loaded: Loaded, place: Place) -> None:
        self.loaded = loaded
        self._place = place
        self._waiting: Waiting[Task, Event] = Waiting()
        self._answered: TaskQuestion | None = None
        self._ends = _ends(loaded)
        self._hooks = [layer.register_forward_pre_hook(self._look_up) for layer in _layers(loaded)]
        self._thread = threading.Thread(target=self._work, name="parlour-transformers", daemon=True)
        self._thread.start()
        # A thread inside torch while the interpreter goes away may end the process badly.
        atexit.register(self.close)

    def ask(self, question: TaskQuestion) -> None:
        """Answer it when its turn comes. Set `question.unwanted` to stop within a layer of the model."""
        self._waiting.put(question)

    def count_tokens(self, text: str) -> int:
        """How many tokens the text takes."""
        fast = getattr(self.loaded.tokenizer, "backend_tokenizer", None)
        if fast is not None:  # the wrapper around it is not for several threads at once
            return len(fast.encode(text, add_special_tokens=False).ids)
        return len(self.loaded.tokenizer.encode(text, add_special_tokens=False))

    def close(self) -> None:
        """Stop all answers. Blocks for a layer at most; calling it again does nothing."""
        if not self._waiting.close():
            return
        atexit.unregister(self.close)
        if self._thread is not threading.current_thread():
            self._thread.join()
        for hook in self._hooks:  # they would keep the model and this object in each other's hands
            hook.remove()

    def _work(self) -> None:
        for question in self._waiting:
            self._answered = question
            if not self._is_unwanted():
                self._answer(question)
            question.heard(None)
            self._answered = None
            del question  # nothing of it is kept while nobody asks

    def _is_unwanted(self) -> bool:
        return self._waiting.closed or (self._answered is not None and self._answered.unwanted.is_set())

    def _look_up(self, *_: Any) -> None:
        """Asked before each layer of the model, so that a long prompt can be given up while it is read."""
        if self._is_unwanted():
            raise _GivenUpError

    def _answer(self, question: TaskQuestion) -> None:
        try:
            question.heard(self._written(question))
        except _GivenUpError:
            return
        except ParlourError as error:
            question.heard(error)
        except Exception as error:  # noqa: BLE001 - handed to whoever asked, under a name
            question.heard(self._told(error))

    def _written(self, question: TaskQuestion) -> MessageFinished:
        """Write the reply; its text is heard while it comes."""
        torch, task = self.loaded.torch, question.body
        text = prompt_text(self.loaded, task.turns, task.sampling.template)
        inputs = self._inputs(text, task.pictures)
        asked = int(inputs["input_ids"].shape[1])
        longest = self._longest(asked, task.sampling.max_tokens)
        tokenizer = self.loaded.tokenizer
        stop = task.sampling.stop + (() if has_template(self.loaded) else PLAIN_STOP)
        decode = partial(tokenizer.decode, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        writer = _Writer(ReplyText(decode, stop), question)
        if text.rstrip().endswith(_THOUGHT):  # the template begins the thought; who reads the reply must know
            writer.say(f"{_THOUGHT}\n")
        arguments = {**inputs, **_ends_given(self._ends), **task.sampling.arguments, "max_new_tokens": longest}
        with ExitStack() as around:
            around.enter_context(torch.inference_mode())
            if task.sampling.seed is not None:
                device = self.loaded.model.device
                around.enter_context(torch.random.fork_rng(devices=[device] if device.type == "cuda" else []))
                torch.manual_seed(task.sampling.seed)
            stopping = self.loaded.transformers.StoppingCriteriaList([writer.is_over])
            self.loaded.model.generate(**arguments, streamer=writer, stopping_criteria=stopping)
        writer.say(writer.text.close())
        cut = writer.text.count >= longest and writer.last not in self._ends and not writer.text.stopped
        written = writer.text.count
        usage = Usage(prompt_tokens=asked, completion_tokens=written, total_tokens=asked + written)
        return MessageFinished("length" if cut else "stop", usage)

    def _inputs(self, text: str, pictures: Sequence[Any]) -> dict[str, Any]:
        loaded = self.loaded
        start = loaded.tokenizer.bos_token
        if not pictures:
            made = loaded.tokenizer(text, return_tensors="pt", add_special_tokens=not has_template(loaded))
            return {key: made[key].to(loaded.model.device) for key in ("input_ids", "attention_mask")}
        special = not (start and text.startswith(start))
        made = loaded.processor(text=[text], images=[*pictures], return_tensors="pt", add_special_tokens=special)
        return dict(made.to(loaded.model.device, loaded.model.dtype))

    def _longest(self, asked: int, wanted: int | None) -> int:
        """How many tokens the reply may have.

        Raises:
            ContextTooLongError: The prompt fills the context.
        """
        if not self.loaded.context:
            return wanted or _REPLY_TOKENS
        room = self.loaded.context - asked
        if room < 1:
            message = f"The conversation has {asked} tokens, and the model reads {self.loaded.context} at once."
            raise ContextTooLongError(
                code="400", message=message, hint="Ask less at once, or begin a new conversation.", sent=False
            )
        return min(wanted or _REPLY_TOKENS, room)

    def _told(self, error: Exception) -> ModelServiceError:
        if is_out_of_memory(error):
            return no_memory(self._place, error)
        if isinstance(error, ValueError | TypeError):  # a setting that `generate` does not know, or a wrong value
            return ModelRefusedError(
                error, code="400", message=f"The model cannot do what generate_cfg asks: {error}", sent=False
            )
        return ModelServiceError(error, message=f"The model failed: {error}")


class _GivenUpError(Exception):
    """Nobody wants the answer any more."""


@dataclass(slots=True)
class _Writer:
    """What `generate` tells of each token, in the form that it wants."""

    text: ReplyText
    question: TaskQuestion
    last: int = -1
    _begun: bool = False

    def put(self, tokens: Any) -> None:
        """The prompt first, then token after token."""
        if self._begun:
            self.last = int(tokens.reshape(-1)[-1])
            self.say(self.text.add(self.last))
        self._begun = True

    def end(self) -> None:
        """No more tokens come."""

    def say(self, more: str) -> None:
        """Let the asker hear more text."""
        if more and not self.question.unwanted.is_set():
            self.question.heard(TextDelta(more))

    def is_over(self, *_: Any) -> bool:
        """Whether a word to stop at came."""
        return self.text.stopped


def _ends(loaded: Loaded) -> list[int]:
    """The tokens that end a reply: what the model's makers name, and what the vocabulary does."""
    named = loaded.model.generation_config.eos_token_id
    ends: list[Any] = [*named] if isinstance(named, list) else [named]
    return list(dict.fromkeys(int(end) for end in [*ends, loaded.tokenizer.eos_token_id] if end is not None))


def _ends_given(ends: list[int]) -> dict[str, Any]:
    return {"eos_token_id": ends, "pad_token_id": ends[0]} if ends else {"pad_token_id": 0}


def _layers(loaded: Loaded) -> list[Any]:
    """The parts that are run through one after another."""
    lists = [part for part in loaded.model.modules() if isinstance(part, loaded.torch.nn.ModuleList)]
    return [layer for part in lists for layer in part]
