"""A person among agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.agents.base import Agent
from core.messages.events import MessageFinished, MessageStarted, TextDelta

if TYPE_CHECKING:
    from core.llm.request import Lang, Stream
    from core.messages.message import Message

PENDING_USER_INPUT = "<!-- parlour: waiting for a person to speak -->"
"""What a `UserAgent` says: it is that person's turn. As Markdown it shows as nothing."""


class UserAgent(Agent):
    """Stands for a person in a group: when it is its turn the group stops, so that the person can speak.

    It has no model and never fails: its whole reply is `PENDING_USER_INPUT`. The person's answer is the next user
    message, with the member's name or, where there is one person alone, without any.
    """

    async def _stream_reply(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
        del messages, lang, kwargs
        yield MessageStarted(self.name)
        yield TextDelta(PENDING_USER_INPUT)
        yield MessageFinished("stop")


def is_pending(message: Message) -> bool:
    """Whether the message only says that a person is to speak."""
    return message.get_text_content().strip() == PENDING_USER_INPUT
