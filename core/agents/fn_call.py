"""An agent with tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.agents.base import Agent
from core.agents.tool_loop import MOST_MODEL_CALLS, ToolLoop, most_model_calls
from core.tools.base import files_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.agents.given_tools import GivenTool
    from core.agents.tool_loop import Asked
    from core.llm.base import BaseChatModel
    from core.llm.request import Lang, Stream
    from core.messages.message import Message


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
        llm: BaseChatModel | Mapping[str, Any] | str | None = None,
        system_message: str | None = None,
        name: str | None = None,
        description: str | None = None,
        *,
        max_iteration: int = MOST_MODEL_CALLS,
    ) -> None:
        super().__init__(function_list, llm, system_message, name, description)
        self.max_iteration = most_model_calls(max_iteration)

    def _stream_reply(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
        loop = ToolLoop(
            self._asked_model(),
            self.function_map,
            speaker=self.name,
            generate=self.extra_generate_cfg,
            most_calls=self.max_iteration,
        )
        kwargs.setdefault("files", files_of(messages))
        return loop.reply(messages, lang=lang, **self._asking(kwargs))

    def _asked_model(self) -> Asked:
        """The model as the loop asks it."""
        return self._model()
