"""A request for a response, read: items become messages, and what was kept of an earlier response comes before them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from core.agents.conversation import call_id
from core.doors.asked import BadRequestError, listed
from core.doors.guard import Answered, Settled
from core.doors.namespaces import joined
from core.errors import NotFoundError
from core.messages.message import Message
from core.runs.rows import logged_of
from core.storage.base import EventRow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.runs.log import LoggedEvent

_NUMBER: Final = (int, float)
_TOLD: Final[Mapping[str, tuple[Any, type | tuple[type, ...]]]] = {
    **dict.fromkeys(("instructions", "previous_response_id", "safety_identifier", "prompt_cache_key"), (None, str)),
    **dict.fromkeys(("max_output_tokens", "max_tool_calls"), (None, int)),
    **dict.fromkeys(("temperature", "top_p"), (1.0, _NUMBER)),
    **dict.fromkeys(("presence_penalty", "frequency_penalty"), (0.0, _NUMBER)),
    "top_logprobs": (0, int),
    "truncation": ("disabled", str),
    "metadata": ({}, dict),
}
"""What is told again of a request: what holds where it says nothing, and of which kind that is."""
MOST_ITEMS: Final = 5_000
RESPONSE: Final = "resp_"
APPROVAL: Final = "mcpr_"


class KeptResponses(Protocol):
    """Responses that a program may go on from."""

    async def get(self, response_id: str) -> dict[str, Any]:
        """What was kept. Raises NotFoundError."""
        ...

    async def spend(self, response_id: str, question: str) -> bool:
        """Note that a question of a response was answered; whether it was open until now. Raises StorageError."""
        ...


@dataclass(frozen=True, slots=True)
class Earlier:
    """What a response goes on from.

    Args:
        messages: All that was said, calls without a result among it where the program is asked about them.
        decided: What the program answers to questions about calls; `None` where it answers none.
        settled: What it has answered in earlier responses.
        inside: What agents that are tools had done for the calls that it was asked about.
    """

    messages: tuple[Message, ...] = ()
    decided: Sequence[Answered] | None = None
    settled: Sequence[Settled] = ()
    inside: Sequence[LoggedEvent] = ()


def items_of(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The items of a request; a text is what the user says. Raises BadRequestError."""
    told: Any = given.get("input")
    if isinstance(told, str):
        return [{"role": "user", "content": told}]
    return listed(given, "input", MOST_ITEMS)


def messages_of(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Items as messages of a chat; thoughts and questions about calls are none. Raises BadRequestError."""
    found: list[dict[str, Any]] = []
    for at, item in enumerate(items):
        match item.get("type", "message"):
            case "message":
                found.append({"role": item.get("role"), "content": item.get("content")})
            case "function_call":
                name = joined(item.get("namespace"), item.get("name"))
                function = {"name": name, "arguments": item.get("arguments")}
                call = {"id": item.get("call_id"), "type": "function", "function": function}
                found.append({"role": "assistant", "content": None, "tool_calls": [call]})
            case "function_call_output":
                said = _output(item.get("output"))
                found.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": said})
            case "reasoning" | "mcp_approval_request" | "mcp_approval_response" | "mcp_call" | "item_reference":
                continue
            case other:
                raise BadRequestError(f"There is no item of the type {other!r} here.", param=f"input[{at}].type")
    return found


def begun_by_user(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages of which the first is the user's: where the assistant spoke first, a sign stands for what was before."""
    first = next((at for at, one in enumerate(messages) if one.get("role") not in {"system", "developer"}), 0)
    if not messages or messages[first].get("role") != "assistant":
        return list(messages)
    return [*messages[:first], {"role": "user", "content": "…"}, *messages[first:]]


def answers_in(items: Sequence[Mapping[str, Any]]) -> dict[str, bool]:
    """What the program says to questions about calls, by the ids of the questions."""
    answers = [one for one in items if one.get("type") == "mcp_approval_response"]
    return {str(one.get("approval_request_id")): one.get("approve") is True for one in answers}


def check_results(items: Sequence[Mapping[str, Any]], earlier: Sequence[Message]) -> None:
    """Whether the results in a request that goes on are those of calls that were made. Raises BadRequestError."""
    if not earlier:
        return
    made = {call_id(one) for one in earlier if one.function_call is not None}
    made |= {str(one.get("call_id")) for one in items if one.get("type") == "function_call"}
    for at, item in enumerate(items):
        if item.get("type") == "function_call_output" and str(item.get("call_id")) not in made:
            said = f"No call {str(item.get('call_id'))[:80]!r} was made in the response that this goes on from."
            raise BadRequestError(said, param=f"input[{at}].call_id", hint="Give the call_id of its function_call.")


async def earlier_of(given: Mapping[str, Any], answers: Mapping[str, bool], kept: KeptResponses) -> Earlier:
    """What a request goes on from: the response that it names, or the one that asked what it answers.

    Raises:
        BadRequestError: What it names cannot be gone on from.
        StorageError: It cannot be read.
    """
    named = given.get("previous_response_id")
    asking = next(iter(answers), "")
    if not isinstance(named, str) or not named:
        named = RESPONSE + asking.removeprefix(APPROVAL).rpartition("_")[0] if asking else ""
    if not named:
        return Earlier()
    try:
        state = await kept.get(named)
    except NotFoundError as error:
        said = f"There is no response {named!r} to go on from."
        hint, code = "Responses are kept for thirty days, unless store is false.", "previous_response_not_found"
        raise BadRequestError(said, param="previous_response_id", code=code, hint=hint) from error
    messages = tuple(Message(**one) for one in cast("list[dict[str, Any]]", state.get("messages") or []))
    asked = cast("dict[str, Any]", state.get("asked") or {})
    decided: list[Answered] = []
    for question, yes in answers.items():
        about: Any = asked.get(question)
        if not isinstance(about, dict):
            said = f"Nobody asked {question!r}, or it was answered already."
            raise BadRequestError(said, param="input", code="approval_not_found")
        decided.append(Answered(**cast("dict[str, Any]", about), yes=yes, spend=partial(kept.spend, named, question)))
    settled = [Settled(**one) for one in cast("list[dict[str, Any]]", state.get("settled") or [])]
    inside = cast("list[list[Any]]", state.get("inside") or [])
    rows = [EventRow(seq, at, kind, payload) for seq, (at, kind, payload) in enumerate(inside, start=1)]
    return Earlier(messages, decided, settled, logged_of(rows)) if answers else Earlier(messages)


def as_chat(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request by the names that a chat completion has for them."""
    text, reasoning = given.get("text"), given.get("reasoning")
    form = cast("dict[str, Any]", text).get("format") if isinstance(text, dict) else None
    effort = cast("dict[str, Any]", reasoning).get("effort") if isinstance(reasoning, dict) else None
    told = {name: value for name, value in given.items() if name not in {"input", "text", "reasoning", "tools"}}
    if isinstance(form, dict) and cast("dict[str, Any]", form).get("type") == "json_schema":
        inner = cast("dict[str, Any]", form)
        schema = {name: inner[name] for name in ("name", "schema", "strict", "description") if name in inner}
        told["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif isinstance(form, dict) and cast("dict[str, Any]", form).get("type") == "json_object":
        told["response_format"] = {"type": "json_object"}
    return {**told, "reasoning_effort": effort} if isinstance(effort, str) else told


def told_again(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a response says of its request, in full, as the schema of Open Responses wants it."""
    told = {
        name: value if isinstance(value := given.get(name), kind) else usual for name, (usual, kind) in _TOLD.items()
    }
    reasoning = given.get("reasoning")
    about = cast("dict[str, Any]", reasoning) if isinstance(reasoning, dict) else {}
    told["reasoning"] = {"effort": about.get("effort"), "summary": about.get("summary")}
    tools = cast("list[Any]", given.get("tools")) if isinstance(given.get("tools"), list) else []
    told["tools"] = [_tool(cast("dict[str, Any]", one)) for one in tools if isinstance(one, dict)]
    told["tool_choice"] = given.get("tool_choice") or "auto"
    told["text"] = _text(given.get("text"))
    return {**told, "parallel_tool_calls": True, "background": False, "service_tier": "default"}


def _tool(given: dict[str, Any]) -> dict[str, Any]:
    usual = dict.fromkeys(("description", "parameters", "strict"))
    return {**usual, **given} if given.get("type") == "function" else given


def _text(given: object) -> dict[str, Any]:
    text = dict(cast("dict[str, Any]", given)) if isinstance(given, dict) else {}
    form: object = text.get("format")
    told = cast("dict[str, Any]", form) if isinstance(form, dict) else {"type": "text"}
    if told.get("type") == "json_schema":
        told = {"description": None, "strict": False, **told}
    return {**text, "format": told}


def _output(given: object) -> str:
    if isinstance(given, str):
        return given
    parts = cast("list[Any]", given) if isinstance(given, list) else []
    texts = [cast("dict[str, Any]", one).get("text") for one in parts if isinstance(one, dict)]
    return "\n".join(one for one in texts if isinstance(one, str)) or json.dumps(given)
