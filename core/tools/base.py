"""What a tool is: a name, a description, parameters and a `call`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from core.errors import BadArgumentsError, SettingsError, shown
from core.messages.content import ContentItem
from core.tools.arguments import check, read_arguments

if TYPE_CHECKING:
    from core.languages import Lang
    from core.messages.message import Message


Parameters: TypeAlias = Mapping[str, Any] | list[dict[str, Any]]


_NOTHING: Mapping[str, Any] = MappingProxyType({})
_USES: Mapping[Lang, str] = {"en": "use “{label}”", "zh": "使用“{label}”"}
_CHANGES: Mapping[Lang, str] = {"en": "change something with “{label}”", "zh": "用“{label}”更改内容"}
_RUNS: Mapping[Lang, str] = {"en": "run code with “{label}”", "zh": "用“{label}”运行代码"}
_SCHEMA_KEYS = ("name", "required")
_ADDRESS = re.compile(r"(?:https?|wss?|ftp)://[^\s<>\"'`\\]+", re.IGNORECASE)
_BARE = re.compile(r"(?://)?[\w-]++(?:\.[\w-]++)++(?::\d++)?[/?#]\S*")  # "example.org/page"
_NAMES_OF_ADDRESSES = frozenset({"url", "urls", "uri", "uris", "link", "links", "href", "address", "host", "domain"})


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool may return beyond text.

    Args:
        text: What the model reads.
        items: Pictures, files and sounds that belong to the result.
        passages: Evidence with an address, as `Passage.as_dict()` gives it.
        extra: Anything else, kept in `Message.extra` of the result.
        data: For the program alone: `Reply.calls` has it. Where it can be JSON it is kept in `extra["data"]`, too.
    """

    text: str = ""
    items: tuple[ContentItem, ...] = ()
    passages: tuple[dict[str, Any], ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    data: Any = None


Returned: TypeAlias = str | list[ContentItem] | dict[str, Any] | ToolResult | None


class BaseTool:
    """A tool. Subclasses set `name`, `description` and `parameters`, and write `call`.

    `parameters` is a JSON Schema of an object, or the old list of `{"name", "type", "description", "required"}`;
    `timeout` is in seconds. A person who reads `en` or `zh` sees `labels` (the tool's name) and `about` (a sentence on
    what it does) unless the page has words of its own, and `wishes` (completes "Parlour wants to …"). A call:

    - `reads`, `writes`, `runs_code`, `reaches_out`: may do so; rules decide by that whether the user is asked.
    - `destructive`: what it changes may be lost, so no permission is given beyond the one call.
    - `idempotent`: a call that may have run before a crash may run again after it.
    - `takes_key`: a call tells its service a key that is the same where it is made again, so that it is done once: one
      that may have run before a crash is made again after it.
    - `goes_on`: a call that was broken off goes on where it was, as those of an agent do.
    - `deduplicate`: equal calls of one turn are made once (unless they would change something): a clock, a search.
    - `safe_output`: its results hold nothing private, and no words that a stranger may have chosen: a conversation with
      them may still reach any address unasked. It counts for tools of the registry.
    - `of_documents`: its results are words of documents; a conversation that is shared by a link keeps of them what the
      reply cites, and of one without passages nothing.
    - `trusted`: the user believes what a tool of somebody else's says of itself.
    - `changed`: it no longer says what the user agreed to.
    - `needs_consent`: somebody is asked about every call, whatever the rules let run.
    - `longest`: bytes of a result's text that a model is shown; `None` leaves that to whoever runs the tool.

    The same call with the same arguments is refused when a model makes it in a third turn in a row.

    Args:
        cfg: Options; kept in `self.cfg`. `name_for_human`, `args_format`, `timeout` and `credentials` are understood by
            all tools.

    Raises:
        SettingsError: The tool has no name, its parameters are not a schema of an object, or `timeout` is no number of
            seconds above 0.
    """

    name: str = ""
    description: str = ""
    parameters: Parameters = _NOTHING
    labels: ClassVar[Mapping[str, str]] = _NOTHING
    about: ClassVar[Mapping[str, str]] = _NOTHING
    wishes: ClassVar[Mapping[str, str]] = _NOTHING

    reads: bool = True
    writes: bool = False
    runs_code: bool = False
    reaches_out: bool = False
    idempotent: bool = True
    takes_key: bool = False
    goes_on: bool = False
    deduplicate: bool = False
    safe_output: bool = False
    of_documents: bool = False
    destructive: bool = False
    trusted: bool = False
    changed: bool = False
    needs_consent: bool = False
    invisible: int = 0
    longest: int | None = None
    timeout: float = 60.0

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        self.cfg: dict[str, Any] = dict(cfg or {})
        if not self.name.strip():
            raise SettingsError(f"The tool {type(self).__name__} has no name.", hint="Set `name` on the class.")
        self.schema: dict[str, Any] = _as_schema(self.name, self.parameters)
        self.timeout = _seconds(self.cfg.get("timeout"), self.timeout)

    def call(self, params: str | dict[str, Any], **kwargs: Any) -> Returned | Awaitable[Returned]:
        """Do the work; `async def` is fine, a plain `def` runs in a thread of its own.

        Args:
            params: The arguments, as JSON text when a model made the call.
            kwargs: What the agent passes along, such as `lang` and `messages`; take what you need.

        Raises:
            BadArgumentsError: The arguments do not fit.
            ToolError: The work cannot be done; the sentence goes to the model.
        """
        raise NotImplementedError(f"{type(self).__name__} must define `call`.")

    def verify(self, arguments: dict[str, Any]) -> None:
        """Check `arguments`, as they were given to a call, before it.

        Raises:
            BadArgumentsError: One sentence that names the field.
        """
        check(arguments, self.schema)

    async def prepare_call(self, arguments: dict[str, Any]) -> None:
        """Called before anybody decides about a call: what it costs may have to be found out first.

        Args:
            arguments: Checked against the tool's parameters.

        Raises:
            ParlourError: The call cannot be made; the sentence goes to the model.
        """

    def costs_much(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a call costs so much that the user is asked first; no, unless a tool knows.

        Args:
            arguments: Those of the call.
        """
        del arguments
        return False

    def validate_credentials(self, credentials: Mapping[str, Any]) -> Awaitable[None] | None:
        """Check the `credentials` that a tool needs, once before its first use; `async def` is fine.

        A tool that needs none accepts any.

        Raises:
            SettingsError: They are missing or refused.
        """
        del credentials

    @property
    def credentials(self) -> Mapping[str, Any]:
        """What `validate_credentials` is given: `cfg["credentials"]`."""
        return self.cfg.get("credentials") or {}

    @property
    def full_name(self) -> str:
        """The name that rules go by: `name`; for a tool of an MCP server `mcp:<server>:<tool>`."""
        return self.name

    def changes(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a call with these arguments changes something; as `writes` says, unless a tool knows better."""
        del arguments
        return self.writes

    def destroys(self, arguments: Mapping[str, Any]) -> bool:
        """Whether what a call with these arguments changes may be lost; as `destructive` says, unless a tool knows.

        Such a call is asked about each time, also where the tool was let run in the chat.
        """
        del arguments
        return self.destructive

    def wants(self, arguments: Mapping[str, Any], lang: Lang = "en") -> str:
        """What a call with `arguments` is about to do: words of `lang` for "Parlour wants to …" or “Parlour 想…”."""
        if words := self.wishes.get(lang):
            return words
        changes = self.destroys(arguments) or self.changes(arguments)
        return (_RUNS if self.runs_code else _CHANGES if changes else _USES)[lang].format(label=self.label(lang))

    def addresses(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """The web addresses that a call would reach: those in `arguments`, where the tool reaches out at all."""
        return addresses_in(arguments) if self.reaches_out else ()

    def label(self, lang: Lang = "en") -> str:
        """The name that a person who reads `lang` sees."""
        return str(self.cfg.get("name_for_human") or self.labels.get(lang) or self.labels.get("en") or self.name)

    @property
    def name_for_human(self) -> str:
        """Qwen-Agent's name for the English label."""
        return self.label()

    @property
    def args_format(self) -> str:
        """How a model that writes calls as text should format the arguments."""
        return str(self.cfg.get("args_format", "Format the arguments as a JSON object."))

    @property
    def function(self) -> dict[str, Any]:
        """The tool as a model is told of it: `name`, `description`, `parameters` (JSON Schema)."""
        return {"name": self.name, "description": self.description, "parameters": self.schema}

    @property
    def is_async(self) -> bool:
        """Whether `call` is to be awaited on the loop; else it runs in a thread."""
        return inspect.iscoroutinefunction(self.call)

    @property
    def file_access(self) -> bool:
        """Whether the files of the conversation are handed to `call`."""
        return False

    def _verify_json_format_args(self, params: str | dict[str, Any], strict_json: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - Qwen-Agent's signature
        """The arguments as a checked dict.

        Raises:
            ValueError: They are not a JSON object, or do not fit `parameters`.
        """
        arguments = read_arguments(params, strict=strict_json)
        self.verify(arguments)
        return arguments


class BaseToolWithFileAccess(BaseTool):
    """A tool that works on the conversation's files, which it finds in `work_dir`.

    Args:
        cfg: Options; `work_dir` is the folder, by default `workspace/tools/<name>` under the current one.
    """

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        self.work_dir = str(self.cfg.get("work_dir") or Path("workspace") / "tools" / self.name)

    @property
    def file_access(self) -> bool:
        """Always true."""
        return True

    def call(  # pyright: ignore[reportIncompatibleMethodOverride] - `files` is one of the base's keywords
        self, params: str | dict[str, Any], files: list[str] | None = None, **kwargs: Any
    ) -> Returned | Awaitable[Returned]:
        """Bring `files` (paths on this machine) to `work_dir`; a subclass calls this first, then works on `params`.

        Raises:
            BadArgumentsError: A file is not on this machine.
        """
        del params, kwargs
        folder = Path(self.work_dir)
        folder.mkdir(parents=True, exist_ok=True)
        for file in files or []:
            _bring(file, folder)
        return None


def addresses_in(value: object) -> tuple[str, ...]:
    """The web addresses in a JSON value, each once: in its texts, and whatever stands under a name such as `url`."""
    return tuple(dict.fromkeys(_found_in(value, named=False)))


def _found_in(value: object, *, named: bool) -> Iterator[str]:
    match value:
        case str() if value.strip() and (named or _BARE.fullmatch(value.strip())):
            yield value.strip()
        case str():
            yield from _ADDRESS.findall(value)
        case Mapping():
            for key, inner in cast("Mapping[str, object]", value).items():
                yield from _ADDRESS.findall(str(key))
                yield from _found_in(inner, named=named or str(key).casefold() in _NAMES_OF_ADDRESSES)
        case list() | tuple():
            for inner in cast("list[object]", value):
                yield from _found_in(inner, named=named)
        case _:
            return


def files_of(messages: list[Message]) -> list[str]:
    """The addresses of all files, pictures, sounds and videos in the messages, each once."""
    found: dict[str, None] = {}
    for message in messages:
        items = message.content if isinstance(message.content, list) else []
        for item in items:
            if item.type != "text" and isinstance(item.value, str):
                found[item.value] = None
    return list(found)


def _bring(address: str, folder: Path) -> None:
    url = urlsplit(address)
    source = Path(unquote(url.path)) if url.scheme == "file" else Path(address)
    if not source.is_file():
        raise BadArgumentsError(f"The file {source.name!r} is not on this machine.")
    target = folder / source.name
    if target.resolve() != source.resolve():
        target.write_bytes(source.read_bytes())


def _row(name: str, row: object) -> Mapping[str, Any]:
    """One parameter of the old form. Raises SettingsError."""
    if not isinstance(row, Mapping) or not cast("Mapping[str, Any]", row).get("name"):
        hint = 'Write {"name": "city", "type": "string", "description": "Which city", "required": True}.'
        raise SettingsError(f"A parameter of the tool {name!r} has no name: {row!r}.", hint=hint)
    return cast("Mapping[str, Any]", row)


def _as_schema(name: str, parameters: Parameters) -> dict[str, Any]:
    """JSON Schema of an object, from either form."""
    given: Any = parameters
    if isinstance(given, list):
        rows = [_row(name, row) for row in cast("list[object]", given)]
        properties = {str(row["name"]): {k: v for k, v in row.items() if k not in _SCHEMA_KEYS} for row in rows}
        required = [str(row["name"]) for row in rows if row.get("required")]
        return {"type": "object", "properties": properties, "required": required}
    if not isinstance(given, Mapping):
        hint = 'Write {"type": "object", "properties": {…}, "required": […]}, or a list of parameters.'
        kind = "None" if given is None else type(cast("object", given)).__name__
        raise SettingsError(f"The parameters of the tool {name!r} cannot be {kind}.", hint=hint)
    schema = dict(cast("Mapping[str, Any]", given))
    if schema.setdefault("type", "object") != "object":
        raise SettingsError(
            f"The parameters of the tool {name!r} must be a schema of an object, not of {schema['type']!r}."
        )
    properties = schema.setdefault("properties", {})
    required = schema.setdefault("required", [])
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        raise SettingsError(
            f"The parameters of the tool {name!r} need `properties` (an object) and `required` (a list)."
        )
    unknown = [field for field in cast("list[str]", required) if field not in properties]
    if unknown and properties:
        raise SettingsError(f"The tool {name!r} requires {unknown[0]!r}, which is not among its parameters.")
    return schema


def _seconds(given: object, usual: float) -> float:
    """How long a call may take; a number may be written as text, as files of settings have it. Raises SettingsError."""
    if given is None:
        return float(usual)
    try:
        found = 0.0 if isinstance(given, bool) else float(cast("Any", given))
    except (TypeError, ValueError):
        found = 0.0
    if not found > 0:
        said = f"The option 'timeout' must be a number of seconds above 0, not {shown(given)}."
        raise SettingsError(said, hint='Write "timeout": 30.', name="timeout")
    return found


def int_option(cfg: Mapping[str, object], name: str, default: int, minimum: int, maximum: int) -> int:
    """An option that counts something.

    Args:
        cfg: The tool's options.
        name: Of the option.
        default: Where it is left out.
        minimum: The smallest that it may be.
        maximum: The largest that it may be.

    Raises:
        SettingsError: It is no whole number within these bounds.
    """
    given = cfg.get(name)
    if given is None:
        return default
    if isinstance(given, bool) or not isinstance(given, int) or not minimum <= given <= maximum:
        raise SettingsError(f"The option {name!r} must be a whole number from {minimum} to {maximum}, not {given!r}.")
    return given
