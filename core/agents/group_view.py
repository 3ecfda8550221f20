"""A group's conversation as one member reads it: others' messages become user messages with a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.agents.conversation import HEARD, call_id, mark_private, prepend_system, reserve_call_ids
from core.agents.hub import is_pending
from core.llm.request import call_ids
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, USER, Message
from core.tools.taint import Taint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.languages import Lang


SOMEBODY: Mapping[Lang, Mapping[str, str]] = {
    "en": {"user": "User", "assistant": "Assistant"},
    "zh": {"user": "用户", "assistant": "助手"},
}
GO_ON: Mapping[Lang, str] = {"en": "(It is your turn again.)", "zh": "（又轮到你发言了。）"}


_LONGEST = 1000  # letters of one message that whoever picks the next speaker reads
_NEWEST = 40  # messages of that


def speaker_of(message: Message, person: str | None) -> str | None:
    """The speaker; a user message without a name is the person's, if the group has exactly one."""
    return message.name or (person if message.role == USER else None)


def member_view(
    name: str, messages: Sequence[Message], told: str, lang: Lang, person: str | None = None
) -> list[Message]:
    """The conversation as the member `name` reads it.

    Its own messages, calls and results stay as they are. What others say becomes a user message with the name in
    front; how they came by it (thoughts, calls, results) is left out.

    Args:
        messages: The conversation, which ends with what was said last.
        lang: The language of names like "User".
        person: The name of the group's only person.
    """
    own = {call_id(one) for one in messages if one.function_call is not None and one.name == name}
    view: list[Message] = []
    for message in messages:
        if message.role == SYSTEM or (message.role == ASSISTANT and message.name == name):
            view.append(message)
        elif message.role == FUNCTION:
            view += [message] if call_id(message) in own else []
        elif message.role == USER and speaker_of(message, person) is None:
            view.append(message)
        elif (said := _heard(message, speaker_of(message, person), lang)) is not None:
            view.append(said)
    if view and view[-1].role == ASSISTANT and view[-1].function_call is None:
        view.append(Message(USER, GO_ON[lang], extra={"heard": True}))
    view = prepend_system(view, told)
    view = mark_private(view) if Taint.of(messages).private else view
    return reserve_call_ids(view, call_ids(tuple(messages)) - call_ids(tuple(view)))


def as_dialogue(messages: Sequence[Message], lang: Lang, person: str | None = None) -> str:
    """The newest of the conversation, a line for each message that has words."""
    lines: list[str] = []
    for message in messages:
        text = " ".join(message.get_text_content().split())
        if message.role in {USER, ASSISTANT} and text and not is_pending(message):
            name = speaker_of(message, person) or SOMEBODY[lang][message.role]
            lines.append(HEARD[lang].format(name=name, text=text[:_LONGEST]))
    return "\n".join(lines[-_NEWEST:])


def _heard(message: Message, speaker: str | None, lang: Lang) -> Message | None:
    """Another speaker's message; None if it has no content."""
    if is_pending(message) or message.function_call is not None:
        return None
    text = message.get_text_content()
    media = [item for item in message.items if item.type != "text"]
    if not text.strip() and not media:
        return None
    label = HEARD[lang].format(name=speaker or SOMEBODY[lang][message.role], text=text)
    content = [ContentItem(text=label), *media] if media else label
    # Addresses that a person wrote are trusted; those that a model wrote are not.
    extra = {**(message.extra or {}), "heard": True} if message.role == ASSISTANT else message.extra
    return Message(USER, content, extra=extra)
