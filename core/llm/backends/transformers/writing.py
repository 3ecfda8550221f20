"""Writing a reply with a loaded model: prompt, tokens as text, stop words, stopping, and what goes wrong."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from core.errors import ContextTooLongError, ModelRefusedError, ModelServiceError, ParlourError
from core.llm.backends.transformers.inputs import PLAIN_STOP, has_template, prompt_text
from core.llm.backends.transformers.load import is_out_of_memory, no_memory
from core.llm.layers.reply import StopScanner
from core.messages.events import MessageFinished, TextDelta
from core.messages.message import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.llm.backends.local import Json
    from core.llm.backends.transformers.inputs import Sampling
    from core.llm.backends.transformers.load import Loaded, Place

REPLY_TOKENS: Final = 2_048
_THOUGHT: Final = "<think>"


@dataclass(frozen=True, slots=True)
class Task:
    """One request to the engine.

    Args:
        pictures: Its opened pictures, in order.
        sampling: How the reply is sampled.
        token: What whom it is for showed to the platform, where that counts by visitor.
    """

    turns: Sequence[Json]
    pictures: Sequence[Any]
    sampling: Sampling
    token: str = field(default="", repr=False)


class StoppedError(Exception):
    """The answer is no longer wanted."""


class Writing:
    """Writes with a loaded model, one reply at a time.

    Args:
        place: Where it was loaded from, for errors.
    """

    def __init__(self, loaded: Loaded, place: Place) -> None:
        self.loaded = loaded
        self._place = place
        self._ends = _ends(loaded)

    def count_tokens(self, text: str) -> int:
        """How many tokens the text takes."""
        fast = getattr(self.loaded.tokenizer, "backend_tokenizer", None)
        if fast is not None:  # the wrapper around it is not thread-safe
            return len(fast.encode(text, add_special_tokens=False).ids)
        return len(self.loaded.tokenizer.encode(text, add_special_tokens=False))

    def prompt(self, task: Task) -> str:
        """The prompt. Raises ModelMisbehavedError."""
        return prompt_text(self.loaded, task.turns, task.sampling.template)

    def write(
        self, task: Task, say: Callable[[TextDelta], None], unwanted: Callable[[], bool], seconds: float | None = None
    ) -> MessageFinished:
        """Write the reply; its text is passed on as it comes. Blocks.

        Args:
            say: Is given each piece of text.
            unwanted: Whether to stop, asked before each layer of the model.
            seconds: After so long the reply ends as one that is too long.

        Raises:
            StoppedError: It became unwanted.
            Exception: `failure` says what it means.
        """
        torch = self.loaded.torch
        text = self.prompt(task)
        inputs = self._inputs(text, task.pictures)
        asked = int(inputs["input_ids"].shape[1])
        longest = self.longest(asked, task.sampling.max_tokens)
        tokenizer = self.loaded.tokenizer
        stop = task.sampling.stop + (() if has_template(self.loaded) else PLAIN_STOP)
        decode = partial(tokenizer.decode, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        writer = _Writer(ReplyText(decode, stop), say, time.monotonic() + seconds if seconds else float("inf"))
        if text.rstrip().endswith(_THOUGHT):  # the template opens the thought: the reply's reader must see the tag
            writer.say(f"{_THOUGHT}\n")
        arguments = {**inputs, **_ends_given(self._ends), **task.sampling.arguments, "max_new_tokens": longest}
        with ExitStack() as around:
            self._watch(around, unwanted)
            around.enter_context(torch.inference_mode())
            if task.sampling.seed is not None:
                device = self.loaded.model.device
                around.enter_context(torch.random.fork_rng(devices=[device] if device.type == "cuda" else []))
                torch.manual_seed(task.sampling.seed)
            stopping = self.loaded.transformers.StoppingCriteriaList([writer.is_over])
            self.loaded.model.generate(**arguments, streamer=writer, stopping_criteria=stopping)
        writer.say(writer.text.close())
        written = writer.text.count
        ended = writer.last in self._ends or writer.text.stopped
        cut = not ended and (written >= longest or writer.is_late)
        usage = Usage(prompt_tokens=asked, completion_tokens=written, total_tokens=asked + written)
        return MessageFinished("length" if cut else "stop", usage)

    def longest(self, asked: int, wanted: int | None) -> int:
        """The longest reply in tokens.

        Args:
            asked: Tokens of the prompt.
            wanted: What the request sets.

        Raises:
            ContextTooLongError: The prompt fills the context.
        """
        if not self.loaded.context:
            return wanted or REPLY_TOKENS
        room = self.loaded.context - asked
        if room < 1:
            message = f"The conversation has {asked} tokens, and the model reads {self.loaded.context} at once."
            raise ContextTooLongError(
                code="400", message=message, hint="Ask less at once, or begin a new conversation.", sent=False
            )
        return min(wanted or REPLY_TOKENS, room)

    def failure(self, error: Exception) -> ParlourError:
        """What an error of `write` means."""
        if isinstance(error, ParlourError):
            return error
        if is_out_of_memory(error):
            return no_memory(self._place, error)
        if isinstance(error, ValueError | TypeError):  # a setting that `generate` does not know, or a wrong value
            return ModelRefusedError(
                error, code="400", message=f"The model cannot do what generate_cfg asks: {error}", sent=False
            )
        return ModelServiceError(error, message=f"The model failed: {error}")

    def _watch(self, around: ExitStack, unwanted: Callable[[], bool]) -> None:
        """Look before each layer of the model, so that a long prompt can be abandoned while it is read."""

        def check(*_: Any) -> None:
            if unwanted():
                raise StoppedError

        for layer in _layers(self.loaded):
            around.callback(layer.register_forward_pre_hook(check).remove)

    def _inputs(self, text: str, pictures: Sequence[Any]) -> dict[str, Any]:
        loaded = self.loaded
        start = loaded.tokenizer.bos_token
        if not pictures:
            made = loaded.tokenizer(text, return_tensors="pt", add_special_tokens=not has_template(loaded))
            return {key: made[key].to(loaded.model.device) for key in ("input_ids", "attention_mask")}
        special = not (start and text.startswith(start))
        made = loaded.processor(text=[text], images=[*pictures], return_tensors="pt", add_special_tokens=special)
        return dict(made.to(loaded.model.device, loaded.model.dtype))


@dataclass(slots=True)
class _Writer:
    """The streamer and stopping criterion that `generate` calls for each token."""

    text: ReplyText
    pass_on: Callable[[TextDelta], None]
    until: float
    last: int = -1
    is_late: bool = False
    _begun: bool = False

    def put(self, tokens: Any) -> None:
        """The prompt first, then token after token."""
        if self._begun:
            self.last = int(tokens.reshape(-1)[-1])
            self.say(self.text.add(self.last))
        self._begun = True

    def end(self) -> None:
        """Required by `generate`; `close` of the text does it."""

    def say(self, more: str) -> None:
        """Pass on more text."""
        if more:
            self.pass_on(TextDelta(more))

    def is_over(self, *_: Any) -> bool:
        """Whether a stop word came, or the time is over."""
        self.is_late = time.monotonic() >= self.until
        return self.text.stopped or self.is_late


def _ends(loaded: Loaded) -> list[int]:
    """The end tokens, of the generation config and of the tokenizer."""
    named = loaded.model.generation_config.eos_token_id
    ends: list[Any] = [*named] if isinstance(named, list) else [named]
    return list(dict.fromkeys(int(end) for end in [*ends, loaded.tokenizer.eos_token_id] if end is not None))


def _ends_given(ends: list[int]) -> dict[str, Any]:
    return {"eos_token_id": ends, "pad_token_id": ends[0]} if ends else {"pad_token_id": 0}


def _layers(loaded: Loaded) -> list[Any]:
    """The layers that run one after another."""
    lists = [part for part in loaded.model.modules() if isinstance(part, loaded.torch.nn.ModuleList)]
    return [layer for part in lists for layer in part]


_HALF: Final = "\ufffd"
_LONGEST_CHARACTER: Final = 8  # tokens: whatever takes more is not an unfinished character


@dataclass(slots=True)
class ReplyText:
    """Decodes the tokens of one reply as they come, never showing half a character or part of a stop word.

    Args:
        stop: Stop words.

    Attributes:
        count: How many tokens came.
    """

    decode: Callable[[Sequence[int]], str]
    stop: tuple[str, ...] = ()
    count: int = 0
    _tokens: list[int] = field(default_factory=list[int])  # the last shown ones, then those not yet shown
    _shown: int = 0  # how many of them are shown
    _stops: StopScanner = field(init=False)

    def __post_init__(self) -> None:
        self._stops = StopScanner(self.stop)

    @property
    def stopped(self) -> bool:
        """Whether a stop word came; further tokens are ignored."""
        return self._stops.stopped

    def add(self, token: int) -> str:
        """Add a token; returns the text that may be shown now."""
        self.count += 1
        self._tokens.append(token)
        return self._stops.feed(self._decoded(whole=False))

    def close(self) -> str:
        """The rest of the text, after the last token."""
        rest = self._stops.feed(self._decoded(whole=True))
        return rest + self._stops.close()

    def _decoded(self, *, whole: bool) -> str:
        """The new text; earlier tokens are decoded with it, as the space between words depends on them."""
        before = self.decode(self._tokens[: self._shown])
        text = self.decode(self._tokens)
        waiting = len(self._tokens) - self._shown
        if not whole and (len(text) <= len(before) or (text.endswith(_HALF) and waiting < _LONGEST_CHARACTER)):
            return ""
        self._tokens = self._tokens[self._shown :]
        self._shown = len(self._tokens)
        return text[len(before) :]
