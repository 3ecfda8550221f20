"""Trying models: whether one is there, and how long it takes to begin an answer."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from typing import TYPE_CHECKING

from core.errors import ModelMisbehavedError, ModelUnavailableError, SettingsError
from core.llm.local_files import check_local_model
from core.messages.events import CallStarted, ReasoningDelta, TextDelta
from core.messages.message import USER, Message

if TYPE_CHECKING:
    from core.llm.base import BaseChatModel
    from core.models.model_name import ModelName
    from core.models.pool import Choice, ModelLoader

_QUESTION = "Reply with the word yes."


async def look_for(choice: Choice) -> None:
    """See whether a model of this process can be there at all. Raises as `check_local_model`."""
    if choice.service.inside:
        await asyncio.to_thread(check_local_model, choice.service.model_type, choice.model)


async def loaded_tried(loader: ModelLoader) -> tuple[str, float]:
    """What a model that is loaded is called, and the seconds until it began to answer. Raises ParlourError."""
    with loader.in_use():
        model = await loader.ready()
        seconds = await first_answer(model)
        loader.answered()
        return model.label, seconds


async def first_answer(model: BaseChatModel) -> float:
    """Seconds until the model began to answer; the rest of what it would say is not waited for."""
    from core.llm.request import ChatRequest

    began = time.monotonic()
    async with aclosing(model.stream(ChatRequest((Message(USER, _QUESTION),), purpose="test"))) as events:
        async for event in events:
            if isinstance(event, TextDelta | ReasoningDelta | CallStarted):
                return time.monotonic() - began
    raise ModelMisbehavedError(message="The model answered with nothing.", hint="Try another.", key="model_silent")


def not_there(name: ModelName) -> SettingsError:
    """What is said of a model that cannot be had any more."""
    hint = "Choose another under its name, or set its service up again."
    said = f"The model {name.model or name.service} is not there any more."
    return SettingsError(said, hint=hint, key="model_gone", model=name.model or name.service)


def too_slow(host: str) -> ModelUnavailableError:
    """What is said of a service that began no answer in time."""
    error = ModelUnavailableError(message=f"{host} took too long to answer.", hint="Try again.", key="model_slow")
    error.details["host"] = host
    return error
