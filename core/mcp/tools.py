"""Tools of an MCP server as Parlour's tools, with two more that list and read its resources."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any, ClassVar, cast

from core.mcp.forms import PATIENCE, Caller
from core.mcp.journal import many_lines, one_line, rule_name
from core.mcp.results import result_of, result_of_reading
from core.mcp.settings import fingerprint
from core.messages.invisible import without_invisible
from core.tools.base import BaseTool, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from mcp_types import Resource, ResourceTemplate, Tool

    from core.languages import Lang
    from core.mcp.forms import AskUser
    from core.mcp.session import Session
    from core.mcp.settings import ServerSettings


_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]+")
_LONGEST_NAME = 64  # what model services accept
_LONGEST_FOR_MODELS = 4000  # characters of a description
_LONGEST_OF_FIELD = 2000
_A_SENTENCE = 32  # characters, from which on a value or a name is shown: it may say what a model should do
_LONGEST_WISH = 1200
_LARGEST_SCHEMA = 64 * 1024  # bytes as JSON
_GRACE = 2.0  # seconds: the session's own deadline, which tells the server, comes first
_LONGEST_FOR_PEOPLE = 4 * _LARGEST_SCHEMA  # characters: more than a model is ever given
_MOST_TOOLS = 256
_USE: Mapping[Lang, str] = {"en": "use “{label}” of the server “{server}”", "zh": "使用服务器“{server}”的“{label}”"}
_MAY_CHANGE: Mapping[Lang, str] = {"en": ", which may change something", "zh": "（可能更改内容）"}
_SAYS_NOW: Mapping[Lang, str] = {
    "en": ". What it says of itself is not what you agreed to; it now says: {text}",
    "zh": "。它对自己的说明与您当初同意的不同，现在的说明是：{text}",
}


class MCPTool(BaseTool):
    """Runs on the server. What it does there is not known, so it counts as writing and reaching out.

    What the server says of it can only make a question stricter; where the user trusts the server, a tool that says it
    only reads is believed.

    Args:
        tool: As the server lists it; an incomplete schema is completed.
        name: The name for models; made of both names if left out.
        trusted: Whether the user believes what the server says of its tools.
        approved: Fingerprints of tools as the user agreed to them, by the server's own names; looked at before each
            call. Left out, the tool is held against what it was when this object was made.
    """

    def __init__(
        self,
        session: Session,
        tool: Tool,
        *,
        name: str = "",
        trusted: bool = False,
        approved: Mapping[str, str] | None = None,
    ) -> None:
        self._session = session
        self._approved = approved
        self.server = session.name
        self.own_name = tool.name
        self.fingerprint = fingerprint(tool)
        self.name = name or model_name(session.name, tool.name)
        self.whole_description = many_lines(_told(tool), _LONGEST_FOR_PEOPLE)
        told = many_lines(without_invisible(tool.description or "").text, _LONGEST_FOR_MODELS)
        self.description = told or one_line(tool.title or tool.name)
        self.parameters = completed(cast("Mapping[str, Any]", tool.input_schema))
        said = "\n".join([tool.description or "", *_told_of_fields(tool.input_schema)])
        self.invisible = without_invisible(said).removed
        self.trusted = trusted
        says = tool.annotations
        self.destructive = bool(says and says.destructive_hint)
        self.writes = not (trusted and says is not None and says.read_only_hint is True and not self.destructive)
        self.reaches_out = not (trusted and says is not None and says.open_world_hint is False)
        self.idempotent = trusted and says is not None and bool(says.read_only_hint or says.idempotent_hint)
        self.deduplicate = trusted and says is not None and bool(says.read_only_hint and says.idempotent_hint)
        seconds = session.settings.timeout + (PATIENCE if session.asks else _GRACE)
        super().__init__({"timeout": seconds, "name_for_human": one_line(tool.title or tool.name)})

    @property
    def settings(self) -> ServerSettings:
        """How its server is reached; not to be shown."""
        return self._session.settings

    @property
    def full_name(self) -> str:
        """`mcp:<server>:<tool>`, by which rules know it."""
        return rule_name(self._session.rules, self.own_name)

    @property
    def changed(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride] - the server may change it any time
        """Whether the server now says something else of it than the user agreed to."""
        agreed = self.fingerprint if self._approved is None else self._approved.get(self.own_name)
        return self._now != agreed

    def wants(self, arguments: Mapping[str, Any], lang: Lang = "en") -> str:
        """What a call is about to do; for a changed tool with what it says of itself now."""
        del arguments
        words = _USE[lang].format(label=self.label(lang), server=one_line(self.server))
        words += _MAY_CHANGE[lang] if self.writes else ""
        if self.changed:
            tool = self._session.tool(self.own_name)
            text = many_lines(_told(tool) if tool is not None else "", _LONGEST_WISH)
            words += _SAYS_NOW[lang].format(text=text)
        return words

    async def call(
        self,
        params: str | dict[str, Any],
        progress: Callable[..., None] | None = None,
        ask_user: AskUser | None = None,
        call_id: str = "",
        **kwargs: Any,
    ) -> ToolResult:
        """Run it.

        Args:
            progress: Told how far it is.
            ask_user: Asks who made the call what the server wants to know, where the server may ask.
            call_id: The call, for `ask_user`.
            kwargs: Not used.

        Raises:
            McpError: The server is gone, too slow, breaks the protocol, or says something else of the tool than it did.
        """
        del kwargs
        arguments = self._verify_json_format_args(params)
        caller = Caller(ask_user, call_id, asyncio.get_running_loop()) if ask_user is not None else None
        answer = await self._session.call(
            self.own_name, arguments, progress=progress, again=self.idempotent, agreed=self._now, caller=caller
        )
        return result_of(answer)

    @property
    def _now(self) -> str:
        """Its fingerprint as the server lists it now."""
        return self._session.print_of(self.own_name) or self.fingerprint


def tools_of(session: Session, *, trusted: bool = False, approved: Mapping[str, str] | None = None) -> list[MCPTool]:
    """All tools of a server that its settings do not leave out, under names that differ."""
    settings = session.settings
    found: list[MCPTool] = []
    taken: set[str] = set()
    for tool in session.tools:
        if (settings.include and tool.name not in settings.include) or tool.name in settings.exclude:
            continue
        if len(json.dumps(tool.input_schema, default=str)) > _LARGEST_SCHEMA:
            session.journal.note(f"The parameters of its tool {tool.name!r} are too large, so it is left out.")
            continue
        name = model_name(session.name, tool.name, taken)
        taken.add(name)
        found.append(MCPTool(session, tool, name=name, trusted=trusted, approved=approved))
        if len(found) == _MOST_TOOLS:
            session.journal.note(f"It has more than {_MOST_TOOLS} tools; the rest is left out.")
            break
    return found


def model_name(server: str, tool: str, taken: Collection[str] = ()) -> str:
    """The name by which models call a tool: letters, figures, `-` and `_`; never one that is taken."""
    name = _NOT_IN_NAMES.sub("_", f"{server}-{tool}"[:1000])[:_LONGEST_NAME]
    plain, number = name, 2
    while name in taken:
        end = f"_{number}"
        name, number = plain[: _LONGEST_NAME - len(end)] + end, number + 1
    return name


def completed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of an object, whatever the server left out; what it says in words is made fit to be shown."""
    given = cast("dict[str, Any]", _readable({key: value for key, value in schema.items() if key != "$schema"}))
    properties = given.get("properties")
    known = cast("dict[str, Any]", properties) if isinstance(properties, dict) else {}
    required = given.get("required")
    needed = [name for name in cast("list[Any]", required) if name in known] if isinstance(required, list) else []
    return {**given, "type": "object", "properties": known, "required": needed}


def _readable(part: Any) -> Any:
    """The same, its descriptions and titles without hidden signs and with an end."""
    match part:
        case dict():
            known = cast("dict[str, Any]", part)
            return {
                key: many_lines(without_invisible(value).text, _LONGEST_OF_FIELD)
                if key in {"description", "title"} and isinstance(value, str)
                else _readable(value)
                for key, value in known.items()
            }
        case list():
            return [_readable(one) for one in cast("list[Any]", part)]
        case _:
            return part


def _told(tool: Tool) -> str:
    """All that a model could read in what a server says of a tool, as text for people."""
    return "\n".join([many_lines(tool.description or ""), *_told_of_fields(tool.input_schema)]).strip()


def _told_of_fields(schema: Any, path: str = "") -> Iterator[str]:
    """What a schema says in words: descriptions, and wherever else there is room for a sentence."""
    match schema:
        case dict():
            known = cast("dict[str, Any]", schema)
            text = known.get("description")
            if path and isinstance(text, str) and text.strip():
                yield f"{path}: {text.strip()}"
            for key, value in known.items():
                inner = path if key in {"properties", "items", "anyOf", "oneOf", "allOf", "$defs"} else f"{path}.{key}"
                inner = inner.strip(".")
                if len(key) >= _A_SENTENCE:
                    yield inner
                if key != "description" or not isinstance(value, str):
                    yield from _told_of_fields(value, inner)
        case list():
            for one in cast("list[Any]", schema):
                yield from _told_of_fields(one, path)
        case str() if len(schema) >= _A_SENTENCE:
            yield f"{path}: {schema.strip()}"
        case _:
            return


_MOST_TOLD = 200
_LONGEST_ADDRESS = 2000
_NONE: Mapping[str, Any] = {"type": "object", "properties": {}, "required": []}
_URI: Mapping[str, Any] = {
    "type": "object",
    "properties": {"uri": {"type": "string", "description": "The resource's address, as the list gives it."}},
    "required": ["uri"],
}


class _OfServer(BaseTool):
    """Reads what a server holds. It changes nothing, as far as the server can be believed.

    Args:
        trusted: Whether the user believes the server.
    """

    own_name: ClassVar[str] = ""
    reaches_out = True

    def __init__(self, session: Session, *, trusted: bool = False) -> None:
        self._session = session
        self.server = session.name
        self.name = model_name(session.name, self.own_name)
        self.trusted = trusted
        super().__init__({"timeout": session.settings.timeout + 2.0})

    @property
    def full_name(self) -> str:
        """`mcp:<server>:<tool>`, by which rules know it."""
        return rule_name(self._session.rules, self.own_name)


class ListResources(_OfServer):
    """Lists what a server offers to read."""

    own_name = "list_resources"
    description = "List what can be read on this server: each with its address."
    parameters = _NONE
    labels: ClassVar[Mapping[str, str]] = {"en": "List resources", "zh": "列出资源"}
    wishes: ClassVar[Mapping[str, str]] = {
        "en": "list what an MCP server offers to read",
        "zh": "列出 MCP 服务器可供读取的内容",
    }

    async def call(self, params: str | dict[str, Any], **kwargs: Any) -> ToolResult:
        """The list. Raises McpError."""
        del params, kwargs
        found = await self._session.resources()
        lines = [_line(resource) for resource in found[:_MOST_TOLD]]
        if len(found) > _MOST_TOLD:
            lines.append(f"({len(found) - _MOST_TOLD} more)")
        return ToolResult("\n".join(lines) or "There is nothing to read on this server.")


class ReadResource(_OfServer):
    """Reads one of it."""

    own_name = "read_resource"
    description = "Read something on this server by its address."
    parameters = _URI
    labels: ClassVar[Mapping[str, str]] = {"en": "Read a resource", "zh": "读取资源"}
    wishes: ClassVar[Mapping[str, str]] = {"en": "read something from an MCP server", "zh": "从 MCP 服务器读取内容"}

    async def call(self, params: str | dict[str, Any], **kwargs: Any) -> ToolResult:
        """What it holds. Raises McpError."""
        del kwargs
        return result_of_reading(await self._session.read(str(self._verify_json_format_args(params)["uri"])))


def resource_tools(session: Session, *, trusted: bool = False) -> list[BaseTool]:
    """Both, for a server that has resources and no tools of these names."""
    if not session.has_resources:
        return []
    settings = session.settings
    return [
        kind(session, trusted=trusted)
        for kind in (ListResources, ReadResource)
        if session.tool(kind.own_name) is None and kind.own_name not in settings.exclude and not settings.include
    ]


def _line(resource: Resource | ResourceTemplate) -> str:
    address = getattr(resource, "uri", None) or getattr(resource, "uri_template", "")
    words = [one_line(str(address), _LONGEST_ADDRESS), one_line(resource.title or resource.name)]
    if resource.mime_type:
        words.append(f"({one_line(resource.mime_type, 80)})")
    if resource.description:
        words.append(one_line(resource.description, 300))
    return " · ".join(words)
