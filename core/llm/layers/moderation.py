"""Moderation of what goes in and out of a model, by a function or a service; off by default."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from core.bridge.cancellation import contained
from core.errors import ContentRefusedError, ModelServiceError, SettingsError
from core.messages.events import CallDelta, MessageFinished, MessageStarted, ReasoningDelta, TextDelta
from core.messages.message import FUNCTION, USER
from core.registry import Entry, Registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.llm.request import ChatRequest, Layer, Source, Stream
    from core.llm.service import Served
    from core.messages.events import Event
    from core.messages.message import Message

Side: TypeAlias = Literal["in", "out"]
Verdict: TypeAlias = "str | bool | None"
Look: TypeAlias = Callable[[str, Side], "Verdict | Awaitable[Verdict]"]
"""Given a text and its side, returns the reason to refuse it; `None`, false or an empty reason lets it pass."""

_STEP: Final = 400  # characters of a reply that are held back for one check
_SEEN_AT_ONCE: Final = 4000
_REMEMBERED: Final = 4096
_SIDES: Final[Mapping[str, tuple[Side, ...]]] = {"both": ("in", "out"), "in": ("in",), "out": ("out",)}
_SERVICES: Final[Registry[Any]] = Registry(  # by name: back ends stand on the layers
    "moderation service", {"openai": Entry("core.llm.backends.moderation:ModerationService")}
)
_HINT: Final = "Give a function of a text and its side, or base_url, api_key, model and sides (in, out, both)."


def moderation(model: Served) -> Layer:
    """The layer for one model; without `moderation` in its settings it adds nothing.

    `moderation` is a function (sync or async; see `Look`), or a dict for a moderation service of the OpenAI protocol:
    `base_url`, `api_key` (both the model's own by default), `model`, and `sides`: `in`, `out` or `both`. Going in, the
    texts of users and tools are checked, each once; coming out, the reply's text, reasoning and arguments, which are
    held back until then. Pictures and sounds are not checked. If the service fails, nothing passes.

    Raises:
        ContentRefusedError: A text was refused; the message is the reason.
        SettingsError: `moderation` is neither a function nor such a dict.
    """
    guards: list[_Guard] = []

    def layer(request: ChatRequest, below: Source) -> Stream:
        given = model.cfg.get("moderation")
        if given is None or given is False:
            return below(request)
        if not guards:
            guards.append(_guard(given, model))
        return _moderated(guards[0], request, below)

    return layer


async def _moderated(guard: _Guard, request: ChatRequest, below: Source) -> Stream:
    if "in" in guard.sides:
        await guard.look_at(request.messages)
    async with aclosing(below(request)) as events:
        if "out" not in guard.sides:
            async for event in events:
                yield event
            return
        reply = _Reply()
        try:
            async for event in events:
                if reply.take(event):
                    for passed in await guard.passed(reply):
                        yield passed
        except ContentRefusedError:
            raise
        except ModelServiceError:
            for passed in await guard.passed(reply):  # what had come is kept
                yield passed
            raise


@dataclass(slots=True)
class _Reply:
    """The text of a reply so far, and the events held back; `new` counts the characters not checked yet."""

    text: str = ""
    new: int = 0
    _held: list[Event] = field(default_factory=list["Event"])

    def take(self, event: Event) -> bool:
        """Hold back an event; true if it is time for a check."""
        self._held.append(event)
        if isinstance(event, MessageStarted | MessageFinished):
            return True
        if isinstance(event, TextDelta | ReasoningDelta):
            self._add(event.text)
        elif isinstance(event, CallDelta):
            self._add(event.arguments)
        return self.new >= _STEP

    def released(self) -> list[Event]:
        """The events held back, after their check."""
        passed, self._held, self.new = self._held, [], 0
        return passed

    def _add(self, text: str) -> None:
        self.text += text
        self.new += len(text)


@dataclass(slots=True)
class _Guard:
    """Runs the checks, and remembers the texts that passed."""

    look: Look
    sides: tuple[Side, ...]
    service: str
    _passed: dict[bytes, None] = field(default_factory=dict[bytes, None])

    async def look_at(self, messages: Sequence[Message]) -> None:
        """Check the texts of users and tools that were not checked before."""
        for message in messages:
            text = message.get_text_content()
            if message.role not in {USER, FUNCTION} or not text.strip():
                continue
            mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
            if mark not in self._passed:
                await self.check(text, "in")
                self._passed[mark] = None
                if len(self._passed) > _REMEMBERED:
                    del self._passed[next(iter(self._passed))]

    async def passed(self, reply: _Reply) -> list[Event]:
        """Check the text held back; returns its events.

        Raises:
            ContentRefusedError: The text was refused.
        """
        if reply.new:
            await self.check(reply.text[-_SEEN_AT_ONCE:], "out")
        return reply.released()

    async def check(self, text: str, side: Side) -> None:
        """Check a text.

        Raises:
            ContentRefusedError: It was refused.
        """
        reason = await self._verdict(text, side) if text.strip() else None
        if reason:
            said = "flagged" if reason is True else str(reason)
            error = ContentRefusedError(None, "moderation", said, {"side": side}, hint="Put it in other words.")
            error.details |= {"reason": said, "side": side, "host": self.service}
            raise error

    async def _verdict(self, text: str, side: Side) -> Verdict:
        look: Any = self.look
        with contained():
            return await self._looked(look, text, side)

    @staticmethod
    async def _looked(look: Any, text: str, side: Side) -> Verdict:
        if inspect.iscoroutinefunction(look) or inspect.iscoroutinefunction(getattr(look, "__call__", None)):  # noqa: B004 - also an object with an async __call__
            return await look(text, side)
        verdict = await asyncio.to_thread(look, text, side)
        return await cast("Awaitable[Verdict]", verdict) if inspect.isawaitable(verdict) else verdict


def _guard(given: object, model: Served) -> _Guard:
    if given is True:
        given = {}
    if callable(given):
        return _Guard(cast("Look", given), _SIDES["both"], model.service.name)
    if not isinstance(given, Mapping):
        raise SettingsError("The model's 'moderation' is wrong.", hint=_HINT)
    cfg = dict(cast("Mapping[str, Any]", given))
    sides = _SIDES.get(str(cfg.pop("sides", "both")))
    if sides is None:
        raise SettingsError("The 'sides' of the model's 'moderation' are wrong.", hint=_HINT)
    own = {"base_url": model.service.address or None, "api_key": model.cfg.get("api_key")}
    service = _SERVICES["openai"]({**own, **cfg} if "base_url" not in cfg else cfg)
    return _Guard(service.look, sides, service.host)
