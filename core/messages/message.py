"""The messages that people, models and tools exchange."""

from __future__ import annotations

import json
from typing import Any, cast

from pydantic import Field, field_validator, model_validator

from core.messages.content import BaseModelCompatibleDict, ContentItem

SYSTEM = "system"
"""The role of what a model is told first."""
USER = "user"
"""The role of who asks."""
ASSISTANT = "assistant"
"""The role of who answers."""
FUNCTION = "function"
"""The role of what a tool gave."""

ROLE = "role"
"""The field of a message that says whose it is."""
CONTENT = "content"
"""The field with the text, or with content items."""
NAME = "name"
"""The field with the speaker; of a result, the tool."""
REASONING_CONTENT = "reasoning_content"
"""The field with what the model thought."""
FUNCTION_CALL = "function_call"
"""The field with a call: `name` and `arguments`."""
EXTRA = "extra"
"""The field with what goes along: a dict, for programs."""

PASSAGES = "passages"
"""In the `extra` of a result what was found; in that of an answer what the model's service cites by itself."""

PROOF = "proof"
"""In the `extra` of a thought, a call or an answer: what the model's service wants back with it, as text."""

_ROLES = (SYSTEM, USER, ASSISTANT, FUNCTION)


class FunctionCall(BaseModelCompatibleDict):
    """A finished call.

    Args:
        name: The tool; not empty.
        arguments: JSON text.

    Raises:
        ValidationError: The name is empty, or the arguments are not JSON text.
    """

    name: str
    arguments: str

    def __init__(self, name: str, arguments: str, **_: Any) -> None:
        super().__init__(name=name, arguments=arguments)

    @field_validator("name")
    @classmethod
    def _strip_name(cls, name: str) -> str:
        if not name.strip():
            raise ValueError("The name of a function call cannot be empty.")
        return name.strip()

    @field_validator("arguments", mode="before")
    @classmethod
    def _check_arguments(cls, arguments: object) -> object:
        if not isinstance(arguments, str):
            kind = type(arguments).__name__
            raise ValueError(f"The arguments of a function call must be JSON text, not {kind}.")  # noqa: TRY004 - pydantic's
        try:
            json.loads(arguments)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"The arguments of a function call must be JSON text: {error}.") from error
        return arguments

    def get_parsed_arguments(self) -> Any:
        """The arguments as Python values, usually a dict."""
        return json.loads(self.arguments)

    def add_argument(self, key: str, value: Any) -> FunctionCall:
        """A new call with the argument `key` set to `value`; this one stays as it is."""
        arguments = {**cast("dict[str, Any]", self.get_parsed_arguments()), key: value}
        return FunctionCall(self.name, json.dumps(arguments, ensure_ascii=False))


class Message(BaseModelCompatibleDict):
    """One message of a conversation.

    Args:
        role: `system`, `user`, `assistant` or `function` (a tool's result, which needs a `name`).
        content: Text, or content items; `None` becomes `''`.
        name: The speaker, or the tool whose result it is.
        function_call: The call that the assistant makes.
        reasoning_content: What the model thought first.
        extra: Anything else; `function_id` ties a call to its result.

    Raises:
        ValidationError: Unknown role, or a function message without a name.
    """

    role: str
    content: str | list[ContentItem] = ""
    name: str | None = None
    function_call: FunctionCall | None = None
    reasoning_content: str | list[ContentItem] | None = None
    extra: dict[str, Any] | None = None

    def __init__(
        self,
        role: str,
        content: str | list[ContentItem] | list[dict[str, Any]] | None = "",
        name: str | None = None,
        function_call: FunctionCall | dict[str, Any] | None = None,
        reasoning_content: str | list[ContentItem] | None = None,
        extra: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        fields: dict[str, Any] = {
            "role": role,
            "content": "" if content is None else content,
            "name": name,
            "function_call": function_call,
            "reasoning_content": reasoning_content,
            "extra": extra,
        }
        if type(self) is Message and _is_valid(fields):
            _hold(self, fields)
        else:
            super().__init__(**fields)

    @field_validator("role")
    @classmethod
    def _check_role(cls, role: str) -> str:
        if role not in _ROLES:
            raise ValueError(f"The role must be one of {', '.join(_ROLES)}, not {role!r}.")
        return role

    @model_validator(mode="after")
    def _check_function_message(self) -> Message:
        if self.role == FUNCTION and not self.name:
            raise ValueError("A function message must have the name of its tool.")
        return self

    @property
    def items(self) -> list[ContentItem]:
        """The content as items, whichever form it has; empty text gives none."""
        if isinstance(self.content, str):
            return [ContentItem(text=self.content)] if self.content else []
        return self.content

    def is_multimodal(self) -> bool:
        """Whether any item is more than text."""
        return isinstance(self.content, list) and any(item.type != "text" for item in self.content)

    def get_text_content(self) -> str:
        """The text alone, items joined by line breaks."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(item.text for item in self.content if item.text)


def _is_valid(fields: dict[str, Any]) -> bool:
    """Whether validation would change nothing: conversations are made anew for every call, and most of them is this."""
    role, name, content, call = fields["role"], fields["name"], fields["content"], fields["function_call"]
    thought, extra = fields["reasoning_content"], fields["extra"]
    return (
        type(role) is str
        and role in _ROLES
        and (type(content) is str or _all_of(ContentItem, content, list))
        and (type(name) is str or name is None)
        and (bool(name) or role != FUNCTION)
        and (call is None or type(call) is FunctionCall)
        and (thought is None or type(thought) is str)
        and (extra is None or _all_of(str, extra, dict))
    )


def _all_of(kind: type, value: Any, container: type) -> bool:
    return type(value) is container and all(type(item) is kind for item in value)


def _hold(message: Message, fields: dict[str, Any]) -> None:
    """What validation would leave: lists and dicts are the message's own."""
    put = object.__setattr__
    if type(fields["content"]) is list:
        fields["content"] = fields["content"].copy()
    if fields["extra"] is not None:
        fields["extra"] = fields["extra"].copy()
    put(message, "__pydantic_fields_set__", set(fields))
    put(message, "__pydantic_extra__", None)
    put(message, "__pydantic_private__", None)
    put(message, "__dict__", fields)


class Usage(BaseModelCompatibleDict):
    """Tokens of one or more model calls; `cost` in the currency of the price list that made it.

    `cached_tokens` are those of the prompt that the service had at hand, `reasoning_tokens` those of the completion
    that went into thinking: both are part of the numbers above them, never added to them. `kept_tokens` are those of
    the prompt that the service put into its cache, which some ask more for: only a price is made of them.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    kept_tokens: int = Field(default=0, exclude=True)
    cost: float | None = None
    estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            total_tokens=self.total_tokens + other.total_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            kept_tokens=self.kept_tokens + other.kept_tokens,
            cost=sum(costs) if costs else None,
            estimated=self.estimated or other.estimated,
        )


class ModelResponse(BaseModelCompatibleDict):
    """A whole reply, with what the service said about it; `created` in Unix seconds."""

    messages: list[Message]
    usage: Usage | None = None
    model: str | None = None
    finish_reason: str | None = None
    response_id: str | None = None
    created: int | None = None

    def get_content(self) -> str:
        """The text of the last message."""
        return self.messages[-1].get_text_content() if self.messages else ""

    def get_function_calls(self) -> list[FunctionCall]:
        """The calls, in order."""
        return [message.function_call for message in self.messages if message.function_call]
