"""The template for small models: a choice constrained by a JSON schema, then plain questions about results.

A model of half a billion parameters writes no reliable tags, but fills in a schema: it chooses a tool or `respond`.
Once a tool has answered, the tools leave the prompt and the model is asked about the facts alone.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from core.llm.calling.call_text import CallText, call_events, read_calls
from core.llm.calling.json_schema_prompts import CODE, EXAMPLES, ROUTER, asked_about, example_lines, needed, with_need
from core.llm.calling.neutral import Restored, neutral, restored
from core.llm.calling.nous import with_system
from core.llm.request import call_ids, named_choice
from core.messages.events import Event, TextDelta
from core.messages.json_text import compact
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, USER, Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from core.languages import Lang
    from core.llm.request import ChatRequest

RESPOND = "respond"
_KEPT = ("type", "properties", "required", "enum", "items", "description")


class JsonSchemaTemplate:
    """Tools as a choice that the back end's `response_format` constrains."""

    def prepare(self, request: ChatRequest) -> ChatRequest:
        """The request with tools as a schema; after results, a plain question about them."""
        if not _routes(request):
            return replace(request, messages=tuple(facts_messages(request.messages, request.lang)), functions=())
        functions = _offered(request)
        names = {str(function["name"]) for function in functions}
        messages = with_need(_without_calls(request.messages), names, request.lang)
        messages = with_system(messages, router_text(functions, request.lang))
        only = named_choice(request) or (CODE if names == {CODE} and len(request.functions) > 1 else "")
        generate = {**request.generate, "response_format": response_format(functions, only)}
        return replace(request, messages=tuple(messages), functions=(), generate=generate)

    def reader(self, request: ChatRequest) -> RouterReader | PlainReader:
        """Parses the choice; a reply about facts is plain text."""
        if not _routes(request):
            return PlainReader()
        return RouterReader(request)


class PlainReader:
    """Passes text through, without calls."""

    calls = 0

    def __init__(self) -> None:
        self._restored = Restored()

    def feed(self, text: str) -> list[Event]:
        """The text itself."""
        text = self._restored.feed(text)
        return [TextDelta(text)] if text else []

    def close(self, *, cut: bool = False) -> list[Event]:
        """Nothing remains."""
        del cut
        return []


class RouterReader:
    """Parses the constrained JSON: the answer's text as it streams, or the call once it is complete.

    Args:
        request: As it was before the template prepared it.
    """

    def __init__(self, request: ChatRequest) -> None:
        self.calls = 0
        self._request = request
        taken = call_ids(request.messages)
        self._ids = (str(number) for number in count(1) if str(number) not in taken)
        self._respond = RespondReader()
        self._restored = Restored()

    def feed(self, text: str) -> list[Event]:
        """More of the answer's text."""
        said = self._restored.feed(self._respond.feed(text))
        return [TextDelta(said)] if said else []

    def close(self, *, cut: bool = False) -> list[Event]:
        """The call, if it is one; invalid JSON is shown as text."""
        if self._respond.found:
            return []
        whole = self._respond.seen
        calls = [call for call in read_calls(_unfenced(whole), mend=not cut) if call.name]
        if not calls:
            return [TextDelta(restored(whole))] if whole.strip() else []
        if calls[0].name == RESPOND:
            return [TextDelta(restored(_response(calls[0]) or whole))]
        if not (calls[0].readable or self._request.answers_calls):
            return [TextDelta(restored(whole))]
        self.calls += 1
        return call_events([CallText(calls[0].name, restored(calls[0].arguments), calls[0].readable)], self._ids)


def _unfenced(text: str) -> str:
    found = re.fullmatch(r"\s*```\w*\s*\n(.*?)(?:```)?\s*", text, re.DOTALL)
    return found.group(1) if found else text


def _response(call: CallText) -> str:
    """The text of a `respond` choice that was not streamed."""
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        return ""
    return str(cast("dict[str, Any]", arguments).get("text") or "") if isinstance(arguments, dict) else ""


def response_format(functions: Sequence[Mapping[str, Any]], only: str = "") -> dict[str, Any]:
    """The schema of the choice, as OpenAI's `response_format`.

    Args:
        functions: The tools on offer.
        only: The one tool that must be called; empty if the model may choose or answer.
    """
    chosen = [f for f in functions if not only or f.get("name") == only]
    options = [_option(str(f["name"]), _simple(f.get("parameters") or {})) for f in chosen]
    if not only:
        text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        options.insert(0, _option(RESPOND, text))
    schema = options[0] if len(options) == 1 else {"anyOf": options}
    return {"type": "json_schema", "json_schema": {"name": "choice", "strict": True, "schema": schema}}


def router_text(functions: Sequence[Mapping[str, Any]], lang: Lang) -> str:
    """The block of the system message that explains the choice, with a few examples."""
    lines = [
        neutral(f"- {f['name']}: {f.get('description', '')} {_fields(f.get('parameters') or {})}").rstrip()
        for f in functions
    ]
    names = {str(f["name"]) for f in functions}
    return ROUTER[lang].format(tools="\n".join(lines), examples=example_lines(EXAMPLES[lang], names))


def facts_messages(messages: Sequence[Message], lang: Lang) -> list[Message]:
    """The conversation, with its last question asked about the tools' results."""
    last = max((index for index, message in enumerate(messages) if message.role == USER), default=0)
    results = [neutral(message.get_text_content()).strip() for message in messages[last:] if message.role == FUNCTION]
    if not results or messages[last].role != USER:  # no results since the question, or no question
        return _without_calls(messages)
    said = [m for m in messages[last + 1 :] if m.role == ASSISTANT and not m.function_call and m.get_text_content()]
    question = neutral(messages[last].get_text_content())
    asked = asked_about("\n".join(filter(None, results)), question, lang)
    return [*_without_calls(messages[:last]), *asked, *said]


def _offered(request: ChatRequest) -> Sequence[Mapping[str, Any]]:
    """The tools of the choice; the code interpreter only if code is plainly needed, and then alone.

    A small model would run code for "What is Python?", and plot with the calculator.
    """
    others = [function for function in request.functions if function["name"] != CODE]
    if named_choice(request) or not others or len(others) == len(request.functions):
        return request.functions
    last = request.messages[-1] if request.messages else None
    asked = last.get_text_content() if last is not None and last.role == USER else ""
    if needed(asked, {CODE}):
        return [function for function in request.functions if function["name"] == CODE]
    return others


def _routes(request: ChatRequest) -> bool:
    """Whether the model chooses a tool: not once there are results after the last question."""
    after: list[Message] = []
    for message in reversed(request.messages):
        if message.role == USER:
            break
        after.append(message)
    return bool(request.functions) and not any(message.role == FUNCTION for message in after)


def _without_calls(messages: Iterable[Message]) -> list[Message]:
    """The messages without calls and results of earlier turns, which would confuse a small model."""
    spoken: list[Message] = []
    for message in messages:
        if message.role == SYSTEM:
            spoken.append(message)
        elif message.role in {USER, ASSISTANT} and not message.function_call and message.items:
            text = neutral(message.get_text_content())
            spoken.append(Message(message.role, text) if not message.is_multimodal() else message)
    return spoken


def _option(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    properties = {"name": {"const": name}, "arguments": arguments}
    return {"type": "object", "properties": properties, "required": ["name", "arguments"]}


def _simple(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of a schema that every grammar compiler supports."""
    kept: dict[str, Any] = {key: schema[key] for key in _KEPT if key in schema and key != "description"}
    if "properties" in kept:
        kept["properties"] = {name: _simple(field) for name, field in kept["properties"].items()}
    if isinstance(kept.get("items"), dict):
        kept["items"] = _simple(kept["items"])
    return kept or {"type": "object"}


def _fields(schema: Mapping[str, Any]) -> str:
    fields: Mapping[str, Any] = schema.get("properties") or {}
    return compact({name: field.get("description") or field.get("type", "") for name, field in fields.items()})


_BEFORE = ("{", '"name"', ":", '"respond"', ",", '"arguments"', ":", "{", '"text"', ":", '"')
"""The tokens before the text, with any white space between."""
_SPACE = re.compile(r"\s*+")
_SPECIAL = re.compile(r'["\\]')
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^u])")
_LONGEST_ESCAPE = 12


@dataclass(slots=True)
class RespondReader:
    """Streams the text of `{"name": "respond", "arguments": {"text": "…"}}` while the JSON is being written."""

    found: bool = False
    _kept: list[str] = field(default_factory=list[str])
    _rest: str = ""  # an unfinished token or escape
    _part: int = 0  # index of the next of `_BEFORE`
    _ended: bool = False

    @property
    def seen(self) -> str:
        """All JSON so far, until the string begins."""
        return "".join(self._kept)

    def feed(self, text: str) -> str:
        """The string's new characters, unescaped."""
        if not self.found:
            self._kept.append(text)
        if self._ended:
            return ""
        text, at = self._rest + text, 0
        if not self.found:
            at = self._begin(text)
            if not self.found:
                return ""
        return self._unescape(text, at)

    def _begin(self, text: str) -> int:
        """Consume the tokens before the string; returns where they end."""
        at = 0
        while self._part < len(_BEFORE):
            space = _SPACE.match(text, at)
            at = space.end() if space else at
            part = _BEFORE[self._part]
            if not text.startswith(part, at):
                self._rest = text[at : at + len(part)]
                self._ended = not part.startswith(self._rest)  # other JSON
                return at
            at += len(part)
            self._part += 1
        self.found, self._kept = True, []
        return at

    def _unescape(self, text: str, at: int) -> str:
        """Unescape what is complete; an unfinished escape waits."""
        pieces: list[str] = []
        while at < len(text):
            special = _SPECIAL.search(text, at)
            stop = special.start() if special else len(text)
            pieces.append(text[at:stop])
            at = stop
            if special is None:
                break
            if text[at] == '"':
                self._ended = True
                break
            escape = _ESCAPE.match(text, at)
            if escape is None or _may_be_half_a_pair(escape.group(), len(text) - escape.end()):
                self._ended = escape is None and len(text) - at >= _LONGEST_ESCAPE  # not an escape
                break
            pieces.append(_resolved(escape.group()))
            at = escape.end()
        self._rest = text[at:] if not self._ended else ""
        return "".join(pieces)


def _may_be_half_a_pair(escape: str, following: int) -> bool:
    return len(escape) == 6 and escape[2:4].lower() in {"d8", "d9", "da", "db"} and following < 6


def _resolved(escape: str) -> str:
    try:
        text: str = json.loads(f'"{escape}"')
    except ValueError:
        return escape[1:]
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
