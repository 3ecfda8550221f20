"""The operations of an OpenAPI document as tools, each with its own risk.

Assistant(function_list=[{"openapi": "https://petstore.example/openapi.json", "credentials": {"bearer": token}}])
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from copy import copy
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit
from uuid import UUID, uuid4

from core.bridge.sync import run
from core.errors import FetchError, SettingsError, ToolError
from core.llm.ledger import agent_now
from core.net.addresses import Reach, open_internet_and_own_network
from core.observing import run_now
from core.tools.base import BaseTool, ToolResult
from core.tools.given_files import files_in
from core.tools.openapi.credentials import Keys, Tokens, checkable
from core.tools.openapi.document import Document, Source, load, plain
from core.tools.openapi.operations import Operation, names_in, operations, servers_of, unique
from core.tools.openapi.request import called, request_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.languages import Lang
    from core.messages.message import Message
    from core.tools.given_files import GivenFile
    from core.tools.through import Through


_KNOWN: Final = frozenset({"openapi", "credentials", "name", "server", "only", "own_network", "timeout"})
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]+")
_READS: Final = frozenset({"GET", "HEAD"})
_NOT_LET_IN: Final = 401
_WANTS: Final[Mapping[str, Mapping[Lang, str]]] = {
    "reads": {"en": "ask {title}: {label}", "zh": "查询 {title}：{label}"},
    "writes": {"en": "send to {title}: {label}", "zh": "向 {title} 提交：{label}"},
    "deletes": {"en": "delete at {title}: {label}", "zh": "在 {title} 删除：{label}"},
}
_SENDS: Final[Mapping[Lang, str]] = {"en": "{wants}, with {files}", "zh": "{wants}，附上{files}"}
_FILE: Final[Mapping[Lang, str]] = {"en": "{name} ({size})", "zh": "{name}（{size}）"}
_NOT_HERE: Final[Mapping[Lang, str]] = {"en": "not here", "zh": "不存在"}
_MB: Final = 1_000_000


class ApiTool(BaseTool):
    """One operation of a service.

    Args:
        title: What the service is called.
        reach: How far the service may be.
        cfg: Options as of every tool; `name` is put before the operation's own.
    """

    reaches_out = True

    def __init__(
        self,
        operation: Operation,
        title: str,
        keys: Keys,
        reach: Reach,
        cfg: Mapping[str, Any] | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        options = dict(cfg or {})
        service = _NOT_IN_NAMES.sub("_", str(options.pop("name", "") or "")).strip("_")
        self.operation = operation
        self.title = title
        self._keys = keys
        self._reach = reach
        self._tokens = tokens or Tokens()
        self._files: Mapping[str, GivenFile] | None = None
        self._through: Through | None = None
        self._full_name = f"api:{service or _NOT_IN_NAMES.sub('_', title).strip('_') or 'service'}:{operation.name}"
        self.name = f"{service}-{operation.name}"[:64] if service else operation.name
        self.description = operation.description
        self.invisible = operation.invisible
        self.parameters = operation.schema
        self.reads = operation.method in _READS and not operation.files  # what takes a file away is asked about
        self.writes = not self.reads
        self.destructive = operation.method == "DELETE"
        self.idempotent = operation.method not in {"POST", "PATCH"}
        self.takes_key = bool(operation.once)
        super().__init__({"name_for_human": operation.summary, **options})

    @property
    def full_name(self) -> str:
        """`api:<service>:<operation>`."""
        return self._full_name

    @property
    def credentials(self) -> Mapping[str, Any]:
        """What was given; it stands nowhere else."""
        return self._keys.given

    def validate_credentials(self, credentials: Mapping[str, Any]) -> None:
        """Look whether the operation has what it needs.

        Raises:
            SettingsError: Something is missing, or cannot be sent.
        """
        checkable(Keys(self._keys.document, credentials), self.operation.server).check(self.operation)

    def wants(self, arguments: Mapping[str, Any], lang: Lang = "en") -> str:
        """What a call is about to do, and where."""
        risk = "reads" if self.reads else "deletes" if self.destructive else "writes"
        words = _WANTS[risk][lang].format(title=self.title, label=self.label(lang))
        names = names_in(arguments.get(self.operation.body), self.operation.files)
        if not names:
            return words
        told = [
            _FILE[lang].format(name=plain(name, 80), size=size) if (size := self._size(name, lang)) else plain(name, 80)
            for name in names
        ]
        return _SENDS[lang].format(wants=words, files=("、" if lang == "zh" else ", ").join(told))

    def with_files(self, files: Mapping[str, GivenFile]) -> ApiTool:
        """The same tool for a conversation that has these files, and may send no other."""
        other = copy(self)
        other._files = files  # noqa: SLF001 - its own
        return other

    def lent(self, title: str, through: Through) -> ApiTool:
        """The same tool for whom its owner shares it with.

        Args:
            title: What they call the service.
            through: What each call passes; rules know the tool by what this stands for.
        """
        other = copy(self)
        other.title = title
        other._through = through  # noqa: SLF001 - its own
        other._full_name = f"api:{through.rules}:{self.operation.name}"  # noqa: SLF001
        return other

    async def call(
        self, params: str | dict[str, Any], *, messages: Sequence[Message] = (), **kwargs: Any
    ) -> ToolResult:
        """Ask the service.

        Args:
            params: The arguments; files by their names.
            messages: The conversation, whose files may be named; `with_files` outranks it.
            kwargs: Of `call_id`, and of the reply that it belongs to, the key is made that a service may take.

        Raises:
            BadArgumentsError: The arguments do not fit, or there is no such file.
            FetchError: The service may not be called, or does not answer.
            ToolError: The service refuses.
        """
        once = _key_of(str(kwargs.get("call_id") or ""), params) if self.takes_key else ""
        if self._through is not None:
            return await self._through(lambda: self._called(params, messages, once))
        return await self._called(params, messages, once)

    async def _called(self, params: str | dict[str, Any], messages: Sequence[Message], once: str) -> ToolResult:
        arguments = self._verify_json_format_args(params)
        files: Mapping[str, GivenFile] = {}
        if self.operation.files:
            files = self._files if self._files is not None else await asyncio.to_thread(files_in, messages)
        with _saying_how_to_allow():
            keys = await self._keys_now()
            try:
                return await self._asked(arguments, keys, files, once)
            except ToolError as error:
                if error.details.get("status") != _NOT_LET_IN or keys is self._keys:
                    raise
            self._tokens.forget(keys)  # nothing was done: the token had ended before its time
            return await self._asked(arguments, await self._keys_now(), files, once)

    async def signed_in(self) -> bool:
        """Whether its credentials are for getting a token, which is then there.

        Raises:
            FetchError: Who gives tokens may not be called, or does not answer.
            SettingsError: Something is missing, or cannot be sent.
            ToolError: It gives none.
        """
        self.validate_credentials(self._keys.given)
        with _saying_how_to_allow():
            return await self._keys_now() is not self._keys

    async def _keys_now(self) -> Keys:
        return await self._tokens.filled_in(self._keys, self.operation.server, self._reach)

    async def _asked(
        self, arguments: Mapping[str, Any], keys: Keys, files: Mapping[str, GivenFile], once: str
    ) -> ToolResult:
        placed = keys.placed(self.operation)
        named = names_in(arguments.get(self.operation.body), self.operation.files) if files else ()
        async with AsyncExitStack() as held:
            here = {name: await files[name].brought(held) for name in named if name in files}
            request = await asyncio.to_thread(request_of, self.operation, arguments, placed, {**files, **here}, once)
        return await called(request, keys, self._reach)

    def _size(self, name: str, lang: Lang) -> str:
        """How large a file is, where that is known before the call."""
        if self._files is None:
            return ""
        file = self._files.get(name)
        if file is None:
            return _NOT_HERE[lang]
        return f"{file.size / _MB:.1f} MB" if file.size >= _MB else f"{max(1, round(file.size / 1000))} kB"


def _key_of(call_id: str, params: str | dict[str, Any]) -> str:
    """What stands for one call of a reply, whichever process makes it; another one each time outside of replies."""
    if not call_id or (run_id := run_now()) is None:
        return str(uuid4())
    said = params if isinstance(params, str) else json.dumps(params, sort_keys=True, ensure_ascii=True)
    _, outer = agent_now()  # an agent that is asked twice may name its calls the same each time
    text = "\n".join((run_id, *outer, call_id, said)).encode(errors="surrogatepass")
    return str(UUID(bytes=hashlib.sha256(text).digest()[:16], version=4))


def tools_of(  # noqa: PLR0913 - a document, and by name what may be said about it
    document: Document,
    *,
    credentials: Mapping[str, Any] | None = None,
    name: str = "",
    server: str = "",
    only: Sequence[str] = (),
    reach: Reach | None = None,
    timeout: float = 60.0,
) -> list[ApiTool]:
    """The tools of a document.

    Args:
        credentials: As `Keys` takes them. They go to the document's own servers (or `server`), and to no other.
        name: What the service is called in the tools' names; left out, they have the operations' names alone.
        server: Sent there instead of where the document says.
        only: Patterns of the operations wanted; all if left out.
        reach: How far the service may be; the open internet by default.
        timeout: Seconds for each call.

    Raises:
        SettingsError: No operation is left, or there are too many.
    """
    given = {server} if server else set(servers_of(document, document.root))
    homes = {_origin(url) for url in given}
    keys, none = Keys(document, dict(credentials or {})), Keys(document, {})
    tokens = Tokens()
    made: list[ApiTool] = []
    names: set[str] = set()
    for operation in operations(document, server=server, only=only):
        own = keys if _origin(operation.server or "") in homes else none
        cfg = {"name": name, "timeout": timeout}
        tool = ApiTool(operation, document.title, own, reach or Reach(), cfg, tokens)
        tool.name = unique(tool.name, names)  # cut short, two may have become one
        names.add(tool.name)
        made.append(tool)
    if not made:
        raise SettingsError(f"{document.title} has no operations to offer.", key="openapi_empty")
    return made


async def from_settings(item: Mapping[str, Any]) -> list[ApiTool]:
    """The tools of `{"openapi": url | path | text | dict, "credentials": {…}, "name", "server", "only", …}`.

    `own_network` lets the service be on this machine or its network; without it, it is on the open internet.

    Raises:
        SettingsError: A setting is wrong, or it is no OpenAPI 3 document.
        FetchError: The document cannot be fetched.
    """
    if unknown := sorted(set(item) - _KNOWN):
        raise SettingsError(f"There is no setting {unknown[0]!r} for an OpenAPI document.", hint=f"Known: {_known()}.")
    source: Source = item["openapi"]
    credentials: Any = item.get("credentials") or {}
    if not isinstance(credentials, Mapping):
        raise SettingsError("The credentials of an OpenAPI document are a dict.")
    reach = Reach(allows=open_internet_and_own_network) if item.get("own_network") else Reach()
    with _saying_how_to_allow():
        document = await load(source, reach)
    return tools_of(
        document,
        credentials=cast("Mapping[str, Any]", credentials),
        name=str(item.get("name") or ""),
        server=str(item.get("server") or ""),
        only=tuple(item.get("only") or ()),
        reach=reach,
        timeout=float(item.get("timeout") or 60.0),
    )


def from_given(item: Mapping[str, Any]) -> list[ApiTool]:
    """`from_settings`, from synchronous code."""
    return run(from_settings(item))


@contextmanager
def _saying_how_to_allow() -> Generator[None, None, None]:
    """An address inside is refused in words that say how it is allowed. Raises FetchError."""
    try:
        yield
    except FetchError as error:
        if error.words_key != "fetch_private":
            raise
        hint = 'Whoever owns the machine can allow it: {"openapi": …, "own_network": True}.'
        raise FetchError(str(error.args[0]), hint=hint, key="fetch_private", **error.details) from error


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme.lower(), parts.netloc.lower()


def _known() -> str:
    return ", ".join(sorted(_KNOWN))


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it.

    Args:
        asked: The operation that was asked, for people; "" where none can be asked without arguments.
        has_token: Whether the service gave a token.
        seconds: How long it all took.
    """

    asked: str
    has_token: bool
    seconds: float


async def tried(tools: Sequence[ApiTool]) -> Trial:
    """Get a token, where one is needed, and ask the first operation that looks something up and needs no arguments.

    Raises:
        FetchError: The service, or who gives tokens, may not be called or does not answer.
        SettingsError: The key is not whole, or cannot be sent.
        ToolError: The service refuses.
    """
    start = monotonic()
    asking = _harmless(tools)
    has_token = await (asking or tools[0]).signed_in()
    if asking is not None:
        await asking.call({})
    return Trial(asking.operation.summary if asking is not None else "", has_token, monotonic() - start)


def _harmless(tools: Sequence[ApiTool]) -> ApiTool | None:
    """An operation that only looks something up; rather one for which the service must know who asks."""
    plain = [tool for tool in tools if tool.operation.method == "GET" and not tool.operation.schema["required"]]
    return max(plain, key=lambda tool: (bool(tool.credentials), bool(tool.operation.security)), default=None)
