"""Parlour as an MCP server: searching an owner's libraries and asking the assistant, over streamable HTTP.

Every request shows a token of the owner's, or of a program that the owner let in; nothing is kept between two requests,
so that none can be taken over. The package speaks the revision of 2026-07-28, in which each request says all by itself,
and the earlier ones, which begin with a handshake.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations

from core.errors import BadArgumentsError, ParlourError
from core.mcp.app_addresses import APP_SCOPES, NEEDED, base_of, challenge, needed_for
from core.mcp.journal import one_line
from core.mcp.progress import Telling
from core.tools.arguments import check

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from core.messages.events import Event


_VERSION = "0.1.0"  # the project's: where it runs from a checkout, nothing else tells it
_MOST_PASSAGES = 20
_LONGEST_QUESTION = 20_000
_MOST_NAMED = 30
_BODY = 256 * 1024
_SERVED = "parlour.served"
_FRESH = CacheHint(ttl_ms=60_000, scope="private")  # a library's name may change
_REFUSED = b"This needs the owner's token, as the header Authorization: Bearer ..."
_NOT_NOW = b"Nobody can look up now whose this token is. Ask again in a moment."
_NOT_FOR_THAT = b"This token is not for that: let the program in anew."


_ABOUT: Final = "Searches the user's documents, and asks the user's assistant about them."


class Served(Protocol):
    """What is offered to the other programs of one owner.

    Attributes:
        may: What for: `search`, `ask`, or both.
    """

    may: frozenset[str]

    async def libraries(self) -> Sequence[str]:
        """The names of the owner's libraries."""
        ...

    async def search(self, question: str, library: str | None, k: int) -> Sequence[dict[str, Any]]:
        """Passages as dicts; of all libraries where none is named."""
        ...

    async def ask(self, question: str, heard: Heard | None = None) -> str:
        """The assistant's answer; `heard` is given each event on the way to it."""
        ...


Heard: TypeAlias = "Callable[[Event], Awaitable[None]]"
LetIn: TypeAlias = Callable[[str, bool, str], Awaitable[Served | None]]


class Serving:
    """An ASGI application at one address.

    Args:
        let_in: `await let_in(token, visitor, base)` gives what is offered to whoever shows a token, `None` where it is
            nobody's; `visitor` where the request may not be the local owner's, `base` the address that was asked at.
        root: The path that Parlour is shown under; "" for the root of its site.
        lets_in: Whether programs can be let in here by somebody who agrees to it, so that they are told how.
        about: What is served, for models that choose among servers.
    """

    def __init__(self, let_in: LetIn, root: str = "", *, lets_in: bool = False, about: str = _ABOUT) -> None:
        self._let_in = let_in
        self._root = root
        self._lets_in = lets_in
        self._running: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()
        server: Server[Any] = Server(
            "parlour",
            version=_VERSION,
            title="Parlour",
            instructions=about,
            cache_hints={"tools/list": _FRESH, "server/discover": _FRESH},
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        # An answer may take minutes. As a stream it has a sign of life every fifteen seconds, before which proxies do
        # not give up; a client that takes no streams gets it whole.
        self._streaming, self._whole = (
            StreamableHTTPSessionManager(server, stateless=True, json_response=whole, max_request_body_size=_BODY)
            for whole in (False, True)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; 401 without a token that is somebody's, 403 where it is not for what is asked.

        503 where nobody knows now whose it is.
        """
        token, base = _token(scope), base_of(scope, self._root)
        try:
            served = await self._let_in(token, bool(scope.get("visitor")), base)
        except ParlourError:
            await _answer(send, 503, _NOT_NOW, (b"retry-after", b"5"))
            return
        if served is None:
            await _refuse(send, 401, self._how(base, "invalid_token" if token else ""))
            return
        if scope["method"] != "POST":  # there are no sessions to end, and no news that nobody asked for
            await _answer(send, 405, b"Ask by POST.", (b"allow", b"POST"))
            return
        if len(served.may) < len(APP_SCOPES):
            body, receive = await _looked_at(receive)
            needed = needed_for(body)
            if needed and needed not in served.may:
                await _refuse(send, 403, self._how(base, "insufficient_scope", needed))
                return
        await self._ready()
        handle: ASGIApp = (self._streaming if _takes_streams(scope) else self._whole).handle_request
        headers = [(name, value.strip(b" \t")) for name, value in scope["headers"]]  # blanks there are nobody's words
        await handle({**scope, "headers": headers, _SERVED: served}, receive, send)

    async def aclose(self) -> None:
        """End what is still asked."""
        self._leave.set()
        if self._running is not None:
            await asyncio.wait({self._running}, timeout=5.0)

    # -- inside

    def _how(self, base: str, error: str, *scopes: str) -> str:
        """What is said of how to be let in."""
        if self._lets_in:
            return challenge(base, error=error, scopes=scopes or APP_SCOPES)
        return 'Bearer realm="parlour"'

    async def _ready(self) -> None:
        """The SDK's manager is opened and closed by one task, whichever request comes first."""
        if self._running is None:
            ready = asyncio.Event()

            async def run() -> None:
                async with self._streaming.run(), self._whole.run():
                    ready.set()
                    await self._leave.wait()

            self._running = asyncio.create_task(run(), name="serving MCP")
            self._opened = ready
        await self._opened.wait()

    async def _list(self, context: Any, params: Any) -> ListToolsResult:
        del params
        served = _served(context)
        names = [one_line(name, 60) for name in await served.libraries()] if "search" in served.may else []
        tools = {"search": _search_tool(names), "ask": _ASK}
        return ListToolsResult(tools=[tool for scope, tool in tools.items() if scope in served.may])

    async def _call(self, context: Any, params: Any) -> CallToolResult:
        served, arguments = _served(context), dict(params.arguments or {})
        try:
            if params.name in NEEDED and NEEDED[params.name] not in served.may:
                return _said("This program was not let in for that.", failed=True)
            if params.name == _ASK.name:
                check(arguments, dict(_ASK.input_schema))
                telling = Telling(context.session.report_progress)  # which does nothing for who wants no word of it
                return _said(await served.ask(arguments["question"], telling.heard))
            if params.name == "search_library":
                check(arguments, _search_schema([]))
                return await _searched(served, arguments)
            return _said(f"There is no tool named {one_line(str(params.name))!r}.", failed=True)
        except ParlourError as error:
            return _said(str(error), failed=True)


async def _searched(served: Served, arguments: Mapping[str, Any]) -> CallToolResult:
    question, library = arguments["question"], arguments.get("library")
    if library is not None:
        known = {name.casefold(): name for name in await served.libraries()}
        if library.casefold() not in known:
            raise BadArgumentsError(
                f"There is no library named {one_line(library)!r}.",
                hint=f"Known: {', '.join(known.values()) or 'none'}.",
            )
        library = known[library.casefold()]
    passages = list(await served.search(question, library, int(arguments.get("k", 5))))
    text = "\n\n".join(f"[{number}] {_where(passage)}\n{passage['text']}" for number, passage in enumerate(passages, 1))
    return CallToolResult(
        content=[TextContent(type="text", text=text or "Nothing was found.")],
        structured_content={"passages": passages},
    )


def _search_schema(names: list[str]) -> dict[str, Any]:
    among = f" One of: {', '.join(names[:_MOST_NAMED])}." if names else ""
    return {
        "type": "object",
        "properties": {
            "question": {
                "type": "string",
                "minLength": 1,
                "maxLength": _LONGEST_QUESTION,
                "description": "What to look for, as a question or in words of the documents.",
            },
            "library": {"type": "string", "description": f"The library's name; all of them if left out.{among}"},
            "k": {
                "type": "integer",
                "minimum": 1,
                "maximum": _MOST_PASSAGES,
                "default": 5,
                "description": "How many passages.",
            },
        },
        "required": ["question"],
    }


_FOUND: dict[str, Any] = {
    "type": "object",
    "properties": {
        "passages": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "document": {"type": "string", "description": "The document's name."},
                    "text": {"type": "string"},
                },
                "required": ["document", "text"],
            },
        }
    },
    "required": ["passages"],
}


def _search_tool(names: list[str]) -> Tool:
    return Tool(
        name="search_library",
        title="Search the user's documents",
        description="Find the passages of the user's own documents that answer a question, with document and page.",
        input_schema=_search_schema(names),
        output_schema=_FOUND,
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )


_ASK = Tool(
    name="ask",
    title="Ask the user's assistant",
    description=(
        "Ask the user's own assistant, which has the user's documents and tools. It remembers nothing between two "
        "questions, and does nothing that the user would have to agree to."
    ),
    input_schema={
        "type": "object",
        "properties": {"question": {"type": "string", "minLength": 1, "maxLength": _LONGEST_QUESTION}},
        "required": ["question"],
    },
)


def _where(passage: Mapping[str, Any]) -> str:
    page = f", page {passage['page']}" if passage.get("page") else ""
    heading = f" ({passage['heading']})" if passage.get("heading") else ""
    return f"{passage['document']}{page}{heading}"


def _said(text: str, *, failed: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)


def _served(context: Any) -> Served:
    """What is offered to whoever asks, as the door found out."""
    return context.request.scope[_SERVED]


def _token(scope: Scope) -> str:
    """The token in `Authorization: Bearer …`; "" where there is none, or more than one."""
    values = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
    kind, _, token = values[0].decode("latin-1").partition(" ") if len(values) == 1 else ("", "", "")
    return token.strip() if kind.lower() == "bearer" else ""


def _takes_streams(scope: Scope) -> bool:
    return any(name.lower() == b"accept" and b"text/event-stream" in value.lower() for name, value in scope["headers"])


async def _looked_at(receive: Receive) -> tuple[bytes, Receive]:
    """The body as far as it may go, and a `receive` that gives it once more."""
    read: list[Message] = []
    size = 0
    while True:
        message = await receive()
        read.append(message)
        size += len(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body", False) or size > _BODY:
            break
    body = b"".join(message.get("body", b"") for message in read)

    async def again() -> Message:
        return read.pop(0) if read else await receive()

    return body, again


async def _refuse(send: Send, status: int, how: str) -> None:
    said = _REFUSED if status == 401 else _NOT_FOR_THAT
    await _answer(send, status, said, (b"www-authenticate", how.encode("latin-1")))


async def _answer(send: Send, status: int, said: bytes, header: tuple[bytes, bytes]) -> None:
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(said)).encode()),
        header,
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": said})
