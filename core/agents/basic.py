"""The two plain agents: the model alone, and the model with tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.agents.base import Agent
from core.agents.question_files import check_kinds
from core.agents.tool_loop import MOST_MODEL_CALLS, ToolLoop, checked_model_calls
from core.tools.base import files_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.agents.tool_loop import LoopModel
    from core.agents.tools import GivenTool
    from core.languages import Lang
    from core.llm.open_model import GivenModel
    from core.llm.request import Stream
    from core.messages.message import Message


class BasicAgent(Agent):
    """Passes the conversation to the model and its answer on; the tools it was given are not used."""

    calls_tools = False

    def _stream_reply(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
        check_kinds(kwargs, self._model(), ())
        loop = ToolLoop(self._model(), {}, speaker=self.name, generate=self.extra_generate_cfg)
        state = {"run_state": kwargs["run_state"]} if "run_state" in kwargs else {}
        return loop.reply(messages, lang=lang, **state)


class FnCallAgent(Agent):
    """Lets the model call tools until it answers.

    Args:
        function_list: Tools, as of every agent.
        llm: The model.
        system_message: What it is told first.
        name: Who speaks.
        description: What it is good at.
        max_iteration: The most model calls of one reply, 1 to 99.

    Raises:
        SettingsError: A tool or a model cannot be made of what was given, or the limit makes no sense.
    """

    def __init__(
        self,
        function_list: Sequence[GivenTool] | None = None,
        llm: GivenModel | None = None,
        system_message: str | None = None,
        name: str | None = None,
        description: str | None = None,
        *,
        max_iteration: int = MOST_MODEL_CALLS,
    ) -> None:
        super().__init__(function_list, llm, system_message, name, description)
        self.max_iteration = checked_model_calls(max_iteration)

    def _stream_reply(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
        check_kinds(kwargs, self._model(), self.function_map.values())
        loop = ToolLoop(
            self._asked_model(),
            self.function_map,
            speaker=self.name,
            generate=self.extra_generate_cfg,
            most_calls=self.max_iteration,
        )
        kwargs.setdefault("files", files_of(messages))
        return loop.reply(messages, lang=lang, **self._with_guard(kwargs))

    def _asked_model(self) -> LoopModel:
        """The model as the loop asks it."""
        return self._model()
