"""The dialog about tools: routes of our own, so that secrets travel in one request and stand nowhere on the page."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route

from core.errors import NotFoundError, ParlourError
from core.mcp_endpoint import PATH
from core.toolbox.choices import SEARCH, TOOL_SERVICES, search_services
from core.toolbox.server_form import pasted
from core.toolbox.toolbox import ListedTool
from webui.context import json_body, log_text, text_of
from webui.panels.servers import answered_page, lent_data, server_data, server_row
from webui.panels.tools import (
    account_data,
    allowed_data,
    approval_data,
    notes_data,
    rule_hints,
    search_data,
    small_note,
    tools_data,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from core.toolbox.toolbox import OwnerTools
    from core.workspace.conversation import Conversation
    from core.workspace.workspace import Workspace
    from webui.context import WebContext
    from webui.words import Words


_log = logging.getLogger(__name__)

SIGNED_IN = f"{PATH}/signed-in"
_FOR_NOBODY_ELSE = {"cache-control": "no-store", "referrer-policy": "no-referrer"}


class ServerRoutes:
    """`GET /mcp/signed-in`, for the owner of the request."""

    def __init__(self, context: WebContext) -> None:
        self._workspaces = context.engine.workspaces
        self._words = context.words

    def table(self) -> list[BaseRoute]:
        """The one."""
        return [Route(SIGNED_IN, self.signed_in, methods=["GET"])]

    async def signed_in(self, request: Request) -> Response:
        """Take the answer, and say in the reader's language what came of it; nothing of the answer is shown."""
        words = self._words(request.headers.get("accept-language", ""))
        owner, status, error = request.scope["owner"], 200, None
        try:
            if owner is None:
                raise NotFoundError("This browser is no owner's.", key="sign_in_unknown")
            async with self._workspaces.open(owner) as workspace:
                server = await workspace.tools.servers.signed_in(request.url.query)
            error = server.error
            title = words("servers.signed_in", name=server.kept.name)
        except NotFoundError as unknown:
            error, status, title = unknown, 404, ""
        except ParlourError as failed:
            error, title = failed, ""
        except Exception as failed:  # the door of the page: the tab says so
            _log.error("An answer to a sign-in came, and taking it failed.\n%s", log_text(failed))
            error, status, title = ParlourError(""), 500, ""
        said = words("servers.close_tab")
        if error is not None:
            title, remedy = words.error_parts(error)
            said = words.line(remedy.rstrip(".。"), said) if remedy else said
        return HTMLResponse(answered_page(title, said, words), status, _FOR_NOBODY_ELSE)


def sign_in_address(request: Request) -> str:
    """The whole address of that route, as the reader's browser knows this page: so it works behind a proxy, too."""
    url = request.url
    origin = request.headers.get("origin") or f"{url.scheme}://{request.headers.get('host', url.netloc)}"
    return f"{origin}{request.scope.get('root_path', '')}{SIGNED_IN}"


_PRIVATE = {"cache-control": "no-store"}
_LONGEST = 128 * 1024  # bytes of a request
_LONGEST_PASTED = 1024 * 1024
_LEAST_SAID = 0.1

Asked = dict[str, Any]


class ToolRoutes:
    """`GET /tools/state`, `POST /tools/switch` and so on, each for the owner of the request."""

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words

    def table(self) -> list[BaseRoute]:
        """All of them."""
        works = {
            "mode": self.mode,
            "patterns": self.patterns,
            "take_back": self.take_back,
            "switch": self.switch,
            "lent": self.lent,
            "account": self.account,
            "forget": self.forget,
            "change_note": self.change_note,
            "delete_note": self.delete_note,
            "paste": self.paste,
            "save": self.save,
            "confirm": self.confirm,
            "connect": self.connect,
            "check": self.check,
            "enable": self.enable,
            "trust": self.trust,
            "let_ask": self.let_ask,
            "tool": self.tool,
            "approve": self.approve,
            "sign_in": self.sign_in,
            "sign_out": self.sign_out,
            "remove": self.remove,
            "token": self.token,
            "revoke": self.revoke,
        }
        return [
            Route("/tools/state", self.state, methods=["GET"]),
            *(Route(f"/tools/{name}", self._answering(work), methods=["POST"]) for name, work in works.items()),
        ]

    async def state(self, request: Request) -> Response:
        """All that the dialog shows."""
        opened, talk = (request.query_params.get(name, "") for name in ("server", "conversation"))
        return await self._told(request, lambda workspace, words: self._shown(workspace, opened, talk, words))

    # ---- asking, and Parlour's own tools

    async def mode(self, workspace: Workspace, asked: Asked, words: Words) -> None:
        """When to ask."""
        del words
        await workspace.rules.change(mode=text_of(asked.get("mode")) or "?")

    async def patterns(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """Rules for single tools."""
        lists = {name: _texts(asked.get(name)) for name in ("allow", "ask", "deny")}
        await workspace.rules.change(lists=lists)
        return {"said": words("tools.saved")}

    async def take_back(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """Ask again for a tool that was always allowed in a conversation."""
        tool = text_of(asked.get("tool"))
        await workspace.conversation(text_of(asked.get("conversation"))).revoke_allowance(tool)
        return {"said": words("rules.asked_again")}

    async def switch(self, workspace: Workspace, asked: Asked, words: Words) -> None:
        """Offer a tool, or no more."""
        del words
        await workspace.tools.switch(text_of(asked.get("tool")), on=asked.get("on") is True)

    async def lent(self, workspace: Workspace, asked: Asked, words: Words) -> None:
        """Use something that others share, or no more."""
        del words
        await workspace.tools.lent.use(text_of(asked.get("lent")), on=asked.get("on") is True)

    async def account(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """Which service a tool asks, and with which key."""
        tool = text_of(asked.get("tool"))
        service, address, model = (text_of(asked.get(name)) for name in ("provider", "address", "model"))
        key = text_of(asked["key"]) if isinstance(asked.get("key"), str) else None
        if tool == SEARCH:
            await workspace.tools.choices.choose_engine(service, address, key)
        else:
            await workspace.tools.accounts.choose(tool, service, address=address, model=model, key=key)
        return {"said": words("tools.saved")}

    async def forget(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """Forget the key of a tool's service."""
        tool = text_of(asked.get("tool"))
        if tool == SEARCH:
            await workspace.tools.choices.forget_engine()
        elif tool in TOOL_SERVICES:
            await workspace.tools.accounts.forget(tool)
        return {"said": words("tools.saved")}

    async def change_note(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """Let a note say something else."""
        await workspace.tools.notes.change(text_of(asked.get("key")), text_of(asked.get("text")))
        return {"said": words("tools.saved")}

    async def delete_note(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """Delete a note."""
        await workspace.tools.notes.delete(text_of(asked.get("key")))
        return {"said": words("tools.note_deleted")}

    # ---- servers

    async def paste(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """Add the servers of pasted JSON."""
        text = text_of(asked.get("text"))
        added = await workspace.tools.servers.paste(text)
        said = words("tools.added_one" if len(added) == 1 else "tools.added", n=len(added))
        if any(draft.wishes for draft in pasted(text)):
            said = words.line(said, words("tools.wishes_ignored"))
        return {"added": [one.id for one in added], "said": said}

    async def save(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """Add a server, or change one."""
        server, name = text_of(asked.get("server")), text_of(asked.get("name"))
        entry = _object(asked.get("settings"))
        if server:
            await workspace.tools.servers.change(server, name, entry)
            return {"said": words("tools.saved")}
        added = await workspace.tools.servers.add(name, entry)
        return {"added": [added.id], "said": words("tools.added_one")}

    async def confirm(self, workspace: Workspace, asked: Asked, words: Words) -> None:
        """Allow a command that was seen."""
        del words
        await workspace.tools.servers.confirm(text_of(asked.get("server")), text_of(asked.get("print")))

    async def connect(self, workspace: Workspace, asked: Asked, words: Words) -> None:
        """Try a server again."""
        del words
        await workspace.tools.servers.connect(text_of(asked.get("server")))

    async def check(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """Ask a server whether it is well."""
        seconds, count = await workspace.tools.servers.check(text_of(asked.get("server")))
        key = "tools.answered_one" if count == 1 else "tools.answered"
        return {"said": words(key, seconds=words.seconds(max(seconds, _LEAST_SAID)), n=count)}

    async def enable(self, workspace: Workspace, asked: Asked, words: Words) -> None:
        """Use a server, or no more."""
        del words
        await workspace.tools.servers.enable(text_of(asked.get("server")), on=asked.get("on") is True)

    async def trust(self, workspace: Workspace, asked: Asked, words: Words) -> None:
        """Believe a server, or no more."""
        del words
        await workspace.tools.servers.trust(text_of(asked.get("server")), on=asked.get("on") is True)

    async def let_ask(self, workspace: Workspace, asked: Asked, words: Words) -> None:
        """Let a server ask things during a call, or no more."""
        del words
        await workspace.tools.servers.let_ask(text_of(asked.get("server")), on=asked.get("on") is True)

    async def tool(self, workspace: Workspace, asked: Asked, words: Words) -> None:
        """Offer a tool of a server, or no more."""
        del words
        server, tool = text_of(asked.get("server")), text_of(asked.get("tool"))
        await workspace.tools.servers.switch(server, tool, on=asked.get("on") is True)

    async def approve(self, workspace: Workspace, asked: Asked, words: Words) -> None:
        """Agree to tools of a server as they were seen."""
        del words
        seen = {name: text_of(value) for name, value in _object(asked.get("prints")).items()}
        await workspace.tools.servers.approve(text_of(asked.get("server")), seen)

    async def sign_in(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """Begin to sign in to a server: `page` is where; empty where it is there without."""
        del words
        back = text_of(asked.get("back"))
        return {"page": await workspace.tools.servers.sign_in(text_of(asked.get("server")), back)}

    async def sign_out(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """Sign out of a server."""
        await workspace.tools.servers.sign_out(text_of(asked.get("server")))
        return {"said": words("servers.signed_out")}

    async def remove(self, workspace: Workspace, asked: Asked, words: Words) -> None:
        """Remove a server."""
        del words
        await workspace.tools.servers.remove(text_of(asked.get("server")))

    # ---- other programs

    async def token(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """A new token for other programs, told this once."""
        del asked, words
        return {"token": await self._engine.outward.of(workspace.owner).renew_token()}

    async def revoke(self, workspace: Workspace, asked: Asked, words: Words) -> None:
        """Let no other program in any more."""
        del asked, words
        await self._engine.outward.of(workspace.owner).revoke_token()

    # ---- inside

    async def _shown(self, workspace: Workspace, opened: str, talk: str, words: Words) -> dict[str, Any]:
        tools = workspace.tools
        local = tools.servers.may_start_programs
        servers = await tools.servers.list()
        one = next((server for server in servers if server.kept.id == opened), None)
        model = (await workspace.models.chosen()).loader.model
        allowed = await self._allowed(workspace.conversation(talk))
        token = await self._engine.outward.of(workspace.owner).token()
        accounts = await self._accounts(tools, words)
        lacking = [tool for tool in TOOL_SERVICES if not (await tools.accounts.of(tool)).usable]
        own = self._engine.program.own_tools() if self._engine.program is not None else None
        listed = await tools.listed() if own is None else [ListedTool(one, one.full_name, on=True) for one in own]
        policy = await workspace.rules.policy()
        services, lent = await tools.openapi.list(), await tools.lent.list()
        allowed = allowed_data(allowed, listed, servers, services, words, lent)
        hints = rule_hints(policy, listed, servers, services, words, lent)
        return {
            "local": local,
            "only_local": words("tools.only_local"),
            "small": small_note(words, small=model is not None and model.small),
            "approval": {**approval_data(policy), "hints": hints, "allowed": allowed},
            "tools": tools_data(listed, tools.interpreter(), words, lacking) if own is None else [],
            "own": words("agents.own_tools") if own is not None else "",
            "accounts": accounts,
            "notes": notes_data(await tools.notes.list()),
            "servers": [server_row(server, words) for server in servers],
            "lent": [lent_data(one, words) for one in lent],
            "shares": bool(await workspace.stores.lending.groups()),
            "opened": server_data(one, words, local=local) if one is not None else None,
            "access": {"path": PATH, "made": token.made if token is not None else 0},
        }

    @staticmethod
    async def _allowed(conversation: Conversation) -> list[str]:
        """What runs unasked in the conversation that the page shows; it may be gone, or not have begun."""
        try:
            return await conversation.allowed()
        except NotFoundError:
            return []

    @staticmethod
    async def _accounts(tools: OwnerTools, words: Words) -> dict[str, Any]:
        """Of the tools that ask a service: which, and the end of its key."""
        engine = await tools.choices.shown_engine()
        found = {SEARCH: search_data(engine, search_services(), words)}
        for tool in TOOL_SERVICES:
            found[tool] = account_data(tool, await tools.accounts.of(tool), words)
        return found

    def _answering(
        self, work: Callable[[Workspace, Asked, Words], Awaitable[dict[str, Any] | None]]
    ) -> Callable[[Request], Awaitable[Response]]:
        longest = _LONGEST_PASTED if work == self.paste else _LONGEST

        async def answer(request: Request) -> Response:
            wanted = await json_body(request, longest)
            if wanted is None:
                return JSONResponse({}, 400, _PRIVATE)
            wanted["back"] = sign_in_address(request)  # whatever was asked

            async def done(workspace: Workspace, words: Words) -> dict[str, Any]:
                said = await work(workspace, wanted, words)
                opened, talk = (text_of(wanted.get(name)) for name in ("opened", "conversation"))
                return {**await self._shown(workspace, opened, talk, words), **(said or {})}

            return await self._told(request, done)

        return answer

    async def _told(self, request: Request, work: Callable[[Workspace, Words], Awaitable[dict[str, Any]]]) -> Response:
        """Does the work, and tells what went wrong in a sentence that holds no secret."""
        words = self._words(request.headers.get("accept-language", ""))
        owner = request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        try:
            async with self._engine.workspaces.open(owner) as workspace:
                return JSONResponse(await work(workspace, words), headers=_PRIVATE)
        except ParlourError as error:
            at = {name: error.details.get(name) for name in ("line", "column")}
            told = {"failed": words.error(error), "at": at, "key": error.words_key}
            return JSONResponse(told, headers=_PRIVATE)
        except Exception as error:  # the door of the page: the dialog says so, and goes on
            _log.error("The dialog about tools asked for something, and it failed.\n%s", log_text(error))
            return JSONResponse({"failed": words.error({"key": "unexpected"})}, headers=_PRIVATE)


def _texts(value: object) -> list[str]:
    return [text_of(one) for one in cast("list[object]", value)] if isinstance(value, list) else []


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
