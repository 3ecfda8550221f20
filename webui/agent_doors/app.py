"""The doors of one agent as one ASGI application, and the server that opens it."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import sys
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.routing import Route

from core.agents.base import Agent
from core.errors import SettingsError, extra_for
from core.settings import NO_TOKEN, SHORTEST_TOKEN, Settings
from core.tools.approval import Policy
from webui.agent_doors.a2a import CARD, PLACE, A2a
from webui.agent_doors.a2a_task import question_of
from webui.agent_doors.answering import AT_ONCE, Host, answered
from webui.agent_doors.openai_form import openai_routes
from webui.doors.refusals import refusal
from webui.server import Server, address_of, bind

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from core.mcp.serving import Heard

_MCP: Final = "/mcp"
_OPENAI: Final = "/v1"
_WHO: Final = {"www-authenticate": 'Bearer realm="Parlour"'}


class AgentDoors:
    """One agent for other programs: an ASGI application, to be served alone or mounted in one of yours.

    Args:
        agent: Who answers. It is asked by several at the same time.
        mcp: Whether it is an MCP server at `/mcp`, with one tool, `ask`.
        openai: Whether it is a model of OpenAI's protocol at `/v1`.
        a2a: Whether it speaks A2A at `/a2a`, with its card at `/.well-known/agent-card.json`.
        token: What every request shows as `Authorization: Bearer …`, but for the card; "off" asks for none, and
            answers only to this machine's own names.
        policy: Decides about the agent's calls; what it would ask about is refused, for nobody is there.
        at_once: How many replies are made at the same time; others wait.

    Raises:
        SettingsError: It is no agent, no door is open, or the token is too short.
        MissingExtraError: `mcp` needs the extra `mcp`.
    """

    def __init__(  # noqa: PLR0913 - an agent, and by name how it is served
        self,
        agent: Agent,
        *,
        mcp: bool = False,
        openai: bool = False,
        a2a: bool = False,
        token: str,
        policy: Policy | None = None,
        at_once: int = AT_ONCE,
    ) -> None:
        _check(agent, token, policy, at_once)
        if not (mcp or openai or a2a):
            raise SettingsError("No door is open.", hint="Pass mcp=True, openai=True or a2a=True.", name="mcp")
        self.host = Host(agent, policy or Policy(), at_once)
        self._token = "" if token == NO_TOKEN else token
        routes = openai_routes(self.host) if openai else []
        self._mcp: Any = None
        if mcp:
            with extra_for("An agent as MCP server"):
                from core.mcp.agent_serving import AgentServing

            host = self.host

            async def ask(question: str, scope: Scope, heard: Heard) -> str:
                del scope
                return await answered(host, [question_of([question])], heard)

            self._mcp = AgentServing(host.name, host.about, ask)
        self._a2a: A2a | None = None
        if a2a:
            self._a2a = A2a(self.host, has_token=bool(self._token))
            routes += [Route(CARD, self._a2a.card), Route(PLACE, self._a2a.call, methods=["POST"])]
        self._app = Starlette(routes=routes)
        self._places = tuple(place for place, is_open in ((_MCP, mcp), (_OPENAI, openai), (PLACE, a2a)) if is_open)

    def serves(self, path: str) -> bool:
        """Whether a request for this path is for the agent."""
        is_card = self._a2a is not None and path == CARD
        return is_card or any(path == place or path.startswith(f"{place}/") for place in self._places)

    @property
    def places(self) -> tuple[str, ...]:
        """The paths that it is asked at."""
        return (*self._places, CARD) if self._a2a is not None else self._places

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        path = str(scope["path"])
        answer = None if self._a2a is not None and path == CARD else self._turned_away(Headers(scope=scope))
        if answer is None and not self.serves(path):
            answer = refusal(404, f"There is nothing at {path[:80]} here.", "unknown_url")
        if answer is not None:
            await answer(scope, receive, send)
        elif self._mcp is not None and (path == _MCP or path.startswith(f"{_MCP}/")):
            await self._mcp(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def aclose(self) -> None:
        """End what is still asked."""
        if self._a2a is not None:
            await self._a2a.tasks.aclose()
        if self._mcp is not None:
            await self._mcp.aclose()

    def _turned_away(self, headers: Headers) -> Any:
        """What a request is refused with; `None` where it may come in."""
        if self._token:
            kind, _, shown = headers.get("authorization", "").partition(" ")
            if kind.lower() == "bearer" and hmac.compare_digest(shown.strip().encode(), self._token.encode()):
                return None
            said = "This needs the token that the agent is served with, as the header Authorization: Bearer ..."
            return refusal(401, said, "invalid_api_key", headers=_WHO)
        if not _is_own_name(headers.get("host", "")) or "origin" in headers:  # a page of another site, by a trick
            return refusal(403, "Without a token, only programs of this machine are answered.", "not_local")
        return None

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            kind = (await receive())["type"]
            if kind == "lifespan.shutdown":
                await self.aclose()
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return


class _Front:
    """The doors of an agent before its page: each request goes to one of both."""

    def __init__(self, doors: AgentDoors, page: ASGIApp) -> None:
        self._doors = doors
        self._page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; when the page ends, so do the doors."""
        if scope["type"] == "lifespan":
            await self._page(scope, self._ending(receive), send)
            return
        mine = scope["type"] == "http" and self._doors.serves(str(scope["path"]))
        await (self._doors if mine else self._page)(scope, receive, send)

    def _ending(self, receive: Receive) -> Receive:
        async def heard() -> Message:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self._doors.aclose()
            return message

        return heard


def serve_agent(  # noqa: PLR0913 - an agent, and by name how it is served
    agent: Agent,
    *,
    page: bool | None = None,
    mcp: bool = False,
    openai: bool = False,
    a2a: bool = False,
    host: str | None = None,
    port: int | None = None,
    token: str | None = None,
    approval: Policy | None = None,
    at_once: int = AT_ONCE,
) -> None:
    """Serve one agent until Ctrl-C; `Agent.serve` says what the arguments are.

    Raises:
        SettingsError: As of `AgentDoors`; or it would be open to others without a token.
        ParlourError: The address or the port cannot be used.
    """
    settings = Settings.load(host=host, port=port)
    has_doors = mcp or openai or a2a
    is_page = not has_doors if page is None else page
    told = settings.token.get_secret_value() if settings.token is not None else ""
    shown = (token if token is not None else told) or secrets.token_urlsafe(24)
    if has_doors and shown == NO_TOKEN and not settings.bound_to_this_machine:
        said = f"Others can reach {settings.host}, so the agent needs a token."
        raise SettingsError(said, hint="Leave token out, or set PARLOUR_TOKEN to a long text.", name="token")
    doors = None
    if has_doors:
        doors = AgentDoors(agent, mcp=mcp, openai=openai, a2a=a2a, token=shown, policy=approval, at_once=at_once)
    if is_page:
        from webui.web_ui import WebUI

        made = WebUI(agent)
        if doors is not None:
            _say(doors, "", shown)
            made.front = lambda app, open_doors=doors: _Front(open_doors, app)
        made.run(server_name=host, server_port=port)
        return
    if doors is None:
        raise SettingsError("Nothing is to be served.", hint="Pass page=True, or one of the doors.", name="page")
    sock = bind(settings.host, settings.port, next_free=settings.may_move_port)
    _say(doors, address_of(settings.host, sock), shown)
    Server(doors, lambda: None).run(sockets=[sock])


def _say(doors: AgentDoors, address: str, token: str) -> None:
    """Tell in the terminal where the agent is, and with what token."""
    where = "at" if address else "to programs, below the address of the page, at"
    lines = [f"{doors.host.name} is served {where}:", *(f"  {address}{place}" for place in doors.places)]
    lines += [] if token == NO_TOKEN else [f"Token{'' if address else ' for programs'}: {token}"]
    sys.stderr.write("\n".join(lines) + "\n")


def _check(agent: object, token: object, policy: object, at_once: object) -> None:
    if not isinstance(agent, Agent):
        said = f"agent must be an Agent, not {type(agent).__name__}."
        raise SettingsError(said, hint="Write AgentDoors(Assistant(...), openai=True, token=...).", name="agent")
    if not isinstance(token, str) or (token != NO_TOKEN and len(token) < SHORTEST_TOKEN):
        said = f"token must be a text of at least {SHORTEST_TOKEN} letters and figures, or {NO_TOKEN!r}."
        raise SettingsError(said, hint="Leave it out: one is made and told.", name="token")
    if policy is not None and not isinstance(policy, Policy):
        said = f"approval must be a Policy, not {type(policy).__name__}: nobody is there to be asked."
        raise SettingsError(said, hint='Write approval=Policy(allow=("save_note",)).', name="approval")
    if isinstance(at_once, bool) or not isinstance(at_once, int) or at_once < 1:
        raise SettingsError(f"at_once must be a whole number from 1, not {at_once!r}.", name="at_once")


def _is_own_name(host: str) -> bool:
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    name = name.strip("[]")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
