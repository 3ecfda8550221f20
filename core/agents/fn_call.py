"""An agent with tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.agents.base import Agent
from core.agents.tool_loop import ToolLoop
from core.tools.base import files_of

if TYPE_CHECKING:
    from core.llm.request import Lang, Stream
    from core.messages.message import Message


class FnCallAgent(Agent):
    """Lets the model call tools until it answers: at most 20 model calls for one reply."""

    def _stream_reply(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
        loop = ToolLoop(self._model(), self.function_map, speaker=self.name, generate=self.extra_generate_cfg)
        kwargs.setdefault("files", files_of(messages))
        return loop.reply(messages, lang=lang, **kwargs)
