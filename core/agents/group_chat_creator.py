"""Lets a model propose a group: its topic and its members."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from core.agents.base import Agent, with_system
from core.agents.group_chat import GroupChat
from core.agents.group_proposal import WrongProposalError, proposal
from core.agents.hub import said
from core.agents.leading_prompts import (
    NOT_PROPOSED,
    PROPOSE,
    PROPOSE_AGAIN,
    PROPOSE_TOOLS,
    WRONG_PROPOSAL,
    in_a_row,
)
from core.bridge.snapshots import as_messages
from core.errors import SettingsError
from core.llm.request import ChatRequest
from core.messages.events import MessageFinished, MessageStarted, ReasoningDelta
from core.messages.message import ASSISTANT, USER, Message
from core.messages.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.agents.base import Given
    from core.agents.group_chat import Method
    from core.llm.request import Lang, Stream

_MOST_TRIES = 3


class GroupChatCreator(Agent):
    """Answers with a group, as JSON in a code fence; `group` makes a `GroupChat` of that.

    What the model writes is held back until it can be used, but for its thoughts. What is nearly right is mended, what
    is not is told the model, twice at most; then the answer is a sentence that says what is wrong. Members have no
    files, and only such tools as are in `function_list`.

    >>> creator = GroupChatCreator(llm=model)
    >>> reply = creator.run_nonstream([{"role": "user", "content": "Three cooks quarrel about soup."}])
    >>> creator.group(reply).run(...)
    """

    async def _stream_reply(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
        del kwargs
        tools = PROPOSE_TOOLS[lang].format(names=in_a_row(list(self.function_map), lang)) if self.function_map else ""
        told = with_system(messages, PROPOSE[lang].format(tools=tools))
        why = ""
        for _ in range(_MOST_TRIES):
            turn = Transcript()
            async with aclosing(self._tried(told, lang, turn)) as events:
                async for event in events:
                    yield event
            text = "\n".join(message.get_text_content() for message in turn.messages())
            try:
                found = proposal(text, self.function_map)
            except WrongProposalError as error:
                why = WRONG_PROPOSAL[lang][error.why]
                again = Message(USER, PROPOSE_AGAIN[lang].format(why=why))
                told = [*told, Message(ASSISTANT, text or "…"), again]
            else:
                for event in said(self.name, f"```json\n{json.dumps(found, ensure_ascii=False, indent=2)}\n```"):
                    yield event
                return
        for event in said(self.name, NOT_PROPOSED[lang].format(why=why)):
            yield event

    def group(
        self, reply: Sequence[Given], agent_selection_method: Method = "auto", name: str | None = None
    ) -> GroupChat:
        """The group that a reply proposes; its members and whoever picks the next speaker have the creator's model.

        Args:
            reply: What `run_nonstream` gave, or a conversation with it; the last proposal counts.
            agent_selection_method: How the next speaker is found.
            name: The group's.

        Raises:
            SettingsError: There is no proposal in it.
        """
        spoken, _ = as_messages(reply)
        for message in reversed(spoken):
            if message.role != ASSISTANT:
                continue
            try:
                found = proposal(message.get_text_content(), self.function_map)
            except WrongProposalError:
                continue
            for member in found["agents"]:
                member["selected_tools"] = [self.function_map[one] for one in member.get("selected_tools", ())]
            return GroupChat(found, agent_selection_method, llm=self._model(), name=name)
        raise SettingsError("Nothing in this reply proposes a group.", hint="Ask the creator again.")

    async def _tried(self, told: Sequence[Message], lang: Lang, turn: Transcript) -> Stream:
        """One answer of the model, into `turn`; of its events those that a reader may see at once."""
        yield MessageStarted(self.name)
        async with aclosing(
            self._model().stream(ChatRequest(tuple(told), (), self.extra_generate_cfg, lang))
        ) as events:
            async for event in events:
                turn.apply(event)
                if isinstance(event, ReasoningDelta):
                    yield event
        yield MessageFinished("stop", turn.usage)
