"""The smallest agent: the model alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.agents.base import Agent
from core.agents.tool_loop import ToolLoop

if TYPE_CHECKING:
    from core.llm.request import Lang, Stream
    from core.messages.message import Message


class BasicAgent(Agent):
    """Passes the conversation to the model and its answer on; the tools it was given are not used."""

    def _stream_reply(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
        del kwargs
        loop = ToolLoop(self._model(), {}, speaker=self.name, generate=self.extra_generate_cfg)
        return loop.reply(messages, lang=lang)
