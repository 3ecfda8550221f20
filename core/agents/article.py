"""An agent that writes articles from the user's documents."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from core.agents.assistant import Assistant
from core.agents.tool_loop import ToolLoop
from core.agents.write_from_scratch import WriteFromScratch
from core.agents.writing import ContinueWriting
from core.agents.writing_prompts import CITE_IN_TEXT, MOST_CHAPTERS
from core.messages.message import FUNCTION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.agents.base import Agent
    from core.agents.budget import Budget
    from core.llm.base import BaseChatModel
    from core.llm.request import ChatRequest, Lang, Stream
    from core.messages.message import Message
    from core.tools.base import BaseTool

_SEARCHED = 250  # letters of a long text that are searched for, at each of its two ends


class ArticleAgent(Assistant):
    """Goes on with a text, or writes a whole article, with what the documents say to it.

    The documents are searched for the last message, which shows as a call of `ask_documents`; statements that come from
    a passage carry its `[n]`. Then the text goes on from where it ends (`ContinueWriting`), or, as a full article, is
    planned and written chapter by chapter (`WriteFromScratch`). Without documents it is written without. The tools of
    `function_list` are not used. An article that was broken off goes on where it ends, with a search of its own.

    Args:
        arguments: As of `Assistant`; with `max_iteration`, a full article has at most so many chapters, and 12. Where
            there is a budget, it pauses after so many model calls.
        full_article: Whether the last message asks for an article, not is a text to go on with; `run(messages,
            full_article=True)` says so for one reply.
        options: As of `Assistant`.

    Raises:
        SettingsError: As of `Assistant`.
    """

    def __init__(self, *arguments: Any, full_article: bool = False, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._full = full_article
        self._budget: Budget | None = None  # of the one reply that a copy makes

    def _system_message(self, lang: Lang) -> str:
        del lang
        return self.system_message or ""  # each step says what is to be done

    def _how_to_cite(self, lang: Lang) -> str:
        return CITE_IN_TEXT[lang]

    def _stream_reply(
        self,
        messages: list[Message],
        *,
        lang: Lang,
        full_article: bool | None = None,
        budget: Budget | None = None,
        **kwargs: Any,
    ) -> Stream:
        own = copy(self)
        full = self._full if full_article is None else full_article
        own._full, own._budget = full, budget  # noqa: SLF001 - its own copy
        return super(ArticleAgent, own)._stream_reply(messages, lang=lang, **kwargs)

    async def _query(self, messages: list[Message], lang: Lang) -> str:
        asked = await super()._query(messages, lang)
        return asked if len(asked) <= 2 * _SEARCHED else f"{asked[:_SEARCHED]} {asked[-_SEARCHED:]}"

    def _loop(self, tools: Mapping[str, BaseTool], offered: Sequence[str] | None = None) -> ToolLoop:
        del offered
        model = self._model()
        most = min(MOST_CHAPTERS, self.max_iteration)
        writer = (
            WriteFromScratch(llm=model, name=self.name, most_chapters=most)
            if self._full
            else ContinueWriting(llm=model, name=self.name)
        )
        writer.extra_generate_cfg = self.extra_generate_cfg
        means = {"budget": self._budget, "most_calls": self.max_iteration}
        return ToolLoop(WritingModel(model, writer, means), tools, (), self.name)


class WritingModel:
    """A model as the loop knows it, whose turn is what another agent writes from what was found.

    Args:
        model: Whose settings count.
        writer: The agent; it takes `knowledge`.
        context: What it is given besides.
    """

    def __init__(self, model: BaseChatModel, writer: Agent, context: Mapping[str, Any]) -> None:
        self._below, self._writer, self._context = model, writer, context

    @property
    def generate_cfg(self) -> Mapping[str, Any]:
        """Its own settings."""
        return self._below.generate_cfg

    def stream(self, request: ChatRequest) -> Stream:
        """What is written."""
        results = [message for message in request.messages if message.role == FUNCTION]
        found = [one.get_text_content() for one in results if (one.extra or {}).get("passages")]
        said = [one for one in request.messages if one.role != FUNCTION and one.function_call is None]
        return self._writer.stream(said, lang=request.lang, knowledge="\n\n".join(found), **self._context)
