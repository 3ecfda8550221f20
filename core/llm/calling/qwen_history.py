"""A conversation as the first Qwen template has it: calls, results and answer are one text of the assistant's."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from core.llm.calling.neutral import neutral_items, neutral_json
from core.llm.calling.tags import ARGS, FUNCTION, RESULT, RETURN
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, USER, Message
from core.messages.message import FUNCTION as TOOL_ROLE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.messages.message import FunctionCall

CODE_TOOL: Final = "code_interpreter"
_ANSWER: Final = f"\n{RETURN}: "


@dataclass(slots=True)
class QwenHistory:
    """Add the messages; then take what was written."""

    written: list[Message] = field(default_factory=list[Message])
    _answer: list[ContentItem] | None = None  # the items of the assistant's message that is being written
    _thoughts: list[str] = field(default_factory=list[str])

    @classmethod
    def of(cls, messages: Iterable[Message], called: str = "") -> list[Message]:
        """The messages; with `called`, the beginning of a call of that tool stands last."""
        history = cls()
        for message in messages:
            history.add(message)
        if called:
            history.say(f"{FUNCTION}: {called}")
        elif history.awaits_answer():  # a colon would be one token with the word that the model goes on with
            history.replace_last(f"\n{RETURN}")
        history.settle()
        return history.written

    def add(self, message: Message) -> None:
        """One message more."""
        if message.role == TOOL_ROLE:
            self._add_result(message)
        elif message.role == ASSISTANT:
            self._add_answer(message)
        else:
            self.settle()
            items = neutral_items(message.items) if message.role == USER else None
            self.written.append(message if items is None else Message(USER, items, name=message.name))

    def awaits_answer(self) -> bool:
        """Whether a result stands last."""
        return bool(self._answer) and self._answer[-1].text == _ANSWER

    def replace_last(self, text: str) -> None:
        """Write `text` instead of the last item."""
        if self._answer:
            self._answer[-1] = ContentItem(text=text)

    def say(self, text: str) -> None:
        """Write text of ours on a line of its own."""
        before = self._answer[-1].text if self._answer else None
        apart = "\n" if self._answer and not (before or "").endswith("\n") else ""
        self._items().append(ContentItem(text=apart + text))

    def settle(self) -> None:
        """End the assistant's message."""
        if self._answer:
            thought = "\n".join(self._thoughts) or None
            self.written.append(Message(ASSISTANT, self._answer, reasoning_content=thought))
        self._answer, self._thoughts = None, []

    def _items(self) -> list[ContentItem]:
        if self._answer is None:
            self._answer = []
        return self._answer

    def _add_result(self, message: Message) -> None:
        if self.awaits_answer():  # another result of the same turn
            self._items().pop()
        self.say(f"{RESULT}: ")
        self._items().extend([*neutral_items(message.items), ContentItem(text=_ANSWER)])

    def _add_answer(self, message: Message) -> None:
        if isinstance(message.reasoning_content, str) and message.reasoning_content:
            self._thoughts.append(message.reasoning_content)
        if message.items:
            if self._answer and not self.awaits_answer() and not (self._answer[-1].text or "").endswith("\n"):
                self._answer.append(ContentItem(text="\n"))
            self._items().extend(neutral_items(message.items))
        if message.function_call is not None:
            self.say(f"{FUNCTION}: {message.function_call.name}\n{ARGS}: {_arguments(message.function_call)}")


def _arguments(call: FunctionCall) -> str:
    """The arguments as the model is asked to write them: code in a fence, all else as JSON."""
    if call.name == CODE_TOOL:
        arguments: object = json.loads(call.arguments)
        if isinstance(arguments, dict) and list(cast("dict[str, Any]", arguments)) == ["code"]:
            return f"\n```py\n{cast('dict[str, Any]', arguments)['code']}\n```"
    return neutral_json(call.arguments.strip() or "{}")
