"""What a program asks for, read out of the JSON of OpenAI's protocol and bounded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from core.doors.namespaces import clash, flat
from core.errors import ParlourError, shown
from core.llm.validation import RANGES
from core.messages.message import SYSTEM, Message
from core.messages.openai_form import FormError, OpenAIReader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_TOOLS: Final = 128
MOST_MESSAGES: Final = 5_000
LONGEST_BODY: Final = 10 * 1024 * 1024
"""Bytes of JSON in one request."""
_LONGEST_NAME: Final = 64
_PASSED: Final = (
    *("temperature", "top_p", "seed", "stop", "presence_penalty", "frequency_penalty", "response_format"),
    *("reasoning_effort", "verbosity", "logit_bias", "top_k", "min_p", "enable_thinking", "chat_template_kwargs"),
)
"""What goes on to the model as it is; a service that does not take one of these answers without it."""
_LIMITS: Final = ("max_completion_tokens", "max_tokens", "max_output_tokens")


class BadRequestError(ParlourError, ValueError):
    """What a program asked for cannot be read.

    Args:
        message: What is wrong, in a sentence.
        param: The field that is wrong.
        code: As programs tell such errors apart.
        hint: What to do next.
    """

    def __init__(self, message: str, *, param: str = "", code: str = "invalid_value", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.param = param
        self.code = code


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a program.

    Args:
        model: The id of a model or an agent.
        messages: The conversation, at most one system message first.
        tools: What the program has tools for: `{"name", "description", "parameters"}`.
        choice: `auto`, `none`, or the name of a tool that must be called.
        generate: How the model writes.
        stream: Whether it comes piece by piece.
        with_usage: Whether a stream ends with what it took.
        store: Whether it becomes a conversation that the page shows.
        as_json: Whether the answer is to be JSON, to which no sentence may be added.
        may_shorten: Whether a conversation that is too long for the model loses its oldest turns; else it is refused.
    """

    model: str
    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]] = ()
    choice: str = "auto"
    generate: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stream: bool = False
    with_usage: bool = False
    store: bool = False
    as_json: bool = False
    may_shorten: bool = False


def chat_asked(given: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> Asked:
    """A request for a chat completion; what is not known is ignored.

    Args:
        given: The request.
        messages: Its messages, with all pictures and files in them.

    Raises:
        BadRequestError: A field that is known cannot be read.
    """
    options = given.get("stream_options")
    with_usage = isinstance(options, dict) and cast("dict[str, Any]", options).get("include_usage") is True
    tools = functions_of(given.get("tools"), nested=True)
    return Asked(
        model_of(given),
        read_messages(messages),
        tools,
        choice_of(given.get("tool_choice"), tools),
        generate_of(given),
        stream=switched(given, "stream"),
        with_usage=with_usage,
        store=switched(given, "store"),
        as_json=_wants_json(given.get("response_format")),
    )


def response_asked(
    chat: Mapping[str, Any],
    given: Mapping[str, Any],
    earlier: Sequence[Message],
    messages: Sequence[Mapping[str, Any]],
) -> Asked:
    """A request for a response.

    Args:
        chat: Its fields by the names of a chat completion.
        given: Its fields as they came.
        earlier: What was said before.
        messages: What is said now, with all pictures and files in it.

    Raises:
        BadRequestError: A field that is known cannot be read.
    """
    instructions = given.get("instructions")
    told = [Message(SYSTEM, instructions)] if isinstance(instructions, str) and instructions.strip() else []
    if twice := clash(given.get("tools")):
        hint = "Call one of them, or its namespace, otherwise."
        raise BadRequestError(f"{twice!r} is the name of two tools.", param="tools", hint=hint)
    tools = functions_of(flat(given.get("tools")), nested=False)
    return Asked(
        model_of(given),
        told_first([*told, *earlier, *read_messages(messages)]),
        tools,
        choice_of(given.get("tool_choice"), tools),
        generate_of(chat),
        stream=switched(given, "stream"),
        store=switched(given, "store"),
        as_json=_wants_json(chat.get("response_format")),
        may_shorten=given.get("truncation") == "auto",
    )


def model_of(given: Mapping[str, Any]) -> str:
    """The id of the model. Raises BadRequestError."""
    model = given.get("model")
    if not isinstance(model, str) or not model.strip():
        hint = "Name one of those that /v1/models lists."
        raise BadRequestError("The request names no model.", param="model", code="missing", hint=hint)
    return model.strip()


def switched(given: Mapping[str, Any], name: str) -> bool:
    """Whether a request asks for it. Raises BadRequestError."""
    value = given.get(name)
    if value is not None and not isinstance(value, bool):
        raise BadRequestError(f"{name} must be true or false, not {shown(value)}.", param=name)
    return value is True


def listed(given: Mapping[str, Any], name: str, most: int) -> list[dict[str, Any]]:
    """A list of objects in a request. Raises BadRequestError."""
    value: Any = given.get(name)
    if not isinstance(value, list) or not value:
        raise BadRequestError(f"{name} must be a list with something in it.", param=name)
    items = cast("list[Any]", value)
    if len(items) > most:
        raise BadRequestError(f"{name} has {len(items):,} items; {most:,} are allowed.", param=name, code="too_many")
    if not all(isinstance(one, dict) for one in items):
        raise BadRequestError(f"{name} must be a list of objects.", param=name)
    return cast("list[dict[str, Any]]", items)


def read_messages(given: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Messages as ours; all that the model is told first becomes one message. Raises BadRequestError."""
    reader, ours = OpenAIReader(), list[Message]()
    for at, one in enumerate(given):
        try:
            ours += reader.read(one)
        except FormError as error:
            raise BadRequestError(str(error), param=f"messages[{at}]", hint=error.hint) from error
        except ValueError as error:
            said = f"Message {at} cannot be read: its role or a part of it is none that is known."
            raise BadRequestError(said, param=f"messages[{at}]") from error
    return told_first(ours)


def told_first(messages: Sequence[Message]) -> list[Message]:
    """The messages, all that the model is told first as one message before the others."""
    told = [one.get_text_content() for one in messages if one.role == SYSTEM]
    others = [one for one in messages if one.role != SYSTEM]
    first = "\n\n".join(text for text in told if text.strip())
    return [Message(SYSTEM, first), *others] if first else others


def functions_of(given: object, *, nested: bool) -> list[dict[str, Any]]:
    """The tools that a program has.

    Args:
        nested: Each stands under `function`, as in chat completions.

    Raises:
        BadRequestError: There are too many, or one cannot be read.
    """
    if given is None:
        return []
    if not isinstance(given, list):
        raise BadRequestError("tools must be a list.", param="tools")
    tools = cast("list[Any]", given)
    if len(tools) > MOST_TOOLS:
        said = f"The request has {len(tools):,} tools; {MOST_TOOLS} are allowed."
        raise BadRequestError(said, param="tools", code="too_many", hint="Send those that this question may need.")
    found: dict[str, dict[str, Any]] = {}
    for at, one in enumerate(tools):
        whole = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
        if whole.get("type", "function") != "function":
            continue  # tools of another service's own, which nobody here has
        told: Any = whole.get("function") if nested else whole
        function = _function(told, at)
        found[function["name"]] = function
    return list(found.values())


def _function(given: object, at: int) -> dict[str, Any]:
    told = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    name, parameters = told.get("name"), told.get("parameters")
    if not isinstance(name, str) or not 0 < len(name.strip()) <= _LONGEST_NAME:
        said = f"Tool {at} has no name of at most {_LONGEST_NAME} characters."
        raise BadRequestError(said, param=f"tools[{at}].function.name")
    if parameters is not None and not isinstance(parameters, dict):
        raise BadRequestError(f"The parameters of the tool {name!r} are no schema.", param=f"tools[{at}]")
    schema = cast("dict[str, Any]", parameters or {})
    kind = schema.get("type", "object")
    if kind != "object":
        raise BadRequestError(f"The parameters of the tool {name!r} must be an object.", param=f"tools[{at}]")
    about = told.get("description")
    whole: dict[str, Any] = {"type": "object", "properties": dict[str, Any](), **schema}
    return {"name": name.strip(), "description": about if isinstance(about, str) else "", "parameters": whole}


def choice_of(given: object, tools: Sequence[Mapping[str, Any]]) -> str:
    """Which tool must be called, as our models are told: `auto`, `none`, or a name. Raises BadRequestError."""
    if given is None or given == "auto" or not tools:
        return "none" if given == "none" else "auto"
    if given == "none":
        return "none"
    if given == "required":  # with one tool it is that one; of several, models of every kind choose by themselves
        return str(tools[0]["name"]) if len(tools) == 1 else "auto"
    whole = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    inner: Any = whole.get("function") or whole
    name = cast("dict[str, Any]", inner).get("name") if isinstance(inner, dict) else None
    if not any(one["name"] == name for one in tools):
        raise BadRequestError("tool_choice names no tool of this request.", param="tool_choice")
    return str(name)


def generate_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """How the model writes: what it is told, and may leave aside where it does not know it. Raises BadRequestError."""
    told = {name: given[name] for name in _PASSED if given.get(name) is not None}
    for name, (least, most) in RANGES.items():
        number: Any = told.get(name, least)
        if isinstance(number, bool) or not isinstance(number, int | float) or not least <= number <= most:
            said = f"{name} must be a number from {least:g} to {most:g}, not {shown(number)}."
            raise BadRequestError(said, param=name)
    stop = told.get("stop")
    if stop is not None and not (isinstance(stop, str) or _are_texts(stop)):
        raise BadRequestError("stop must be a text, or a list of texts.", param="stop")
    for name in _LIMITS:
        limit = given.get(name)
        if limit is None:
            continue
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise BadRequestError(f"{name} must be a whole number from 1, not {shown(limit)}.", param=name)
        told["max_tokens"] = limit
        break
    if isinstance(given.get("parallel_tool_calls"), bool):
        told["parallel_function_calls"] = given["parallel_tool_calls"]
    kept = {"response_format", "max_tokens", "parallel_function_calls", "stop"}  # not to be left aside in silence
    loose = sorted(set(told) - kept)
    return {**told, "if_taken": loose} if loose else told


def _are_texts(given: object) -> bool:
    return isinstance(given, list) and all(isinstance(one, str) for one in cast("list[Any]", given))


def _wants_json(given: object) -> bool:
    kind = cast("dict[str, Any]", given).get("type") if isinstance(given, dict) else None
    return kind in {"json_object", "json_schema"}
