"""The settings page: what it shows, and what is changed in it, each as a request of its own."""

from __future__ import annotations

import asyncio
import logging
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse
from starlette.routing import Route

from core.agents.follow_ups import usual_usage
from core.agents.title import usual_title_usage
from core.backup.writing import last_backup
from core.errors import ParlourError, SettingsError
from core.llm.usage import cost_of
from core.runs.judgement import usual_judgement
from core.workspace.clearing import delete_everything
from webui.context import answered_in_time, json_body, log_text, text_of
from webui.handlers.models import known_services
from webui.handlers.sharing import links_data
from webui.panels.api_keys import keys_data
from webui.panels.settings import ShownSettings, settings_html
from webui.panels.tools import notes_data
from webui.words import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from core.llm.base import BaseChatModel
    from core.messages.message import Usage
    from core.storage.people import Person
    from core.workspace.workspace import Workspace
    from webui.context import WebContext
    from webui.words import Words

_log = logging.getLogger(__name__)

_PRIVATE: Final = {"cache-control": "no-store"}


class PreferenceRoutes:
    """`/preferences/…`, for the owner of the request."""

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._settings = context.settings
        self._words = context.words

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [
            Route("/preferences/page", self.page, methods=["GET"]),
            Route("/preferences/language", self.language, methods=["POST"]),
            Route("/preferences/change", self.change, methods=["POST"]),
            Route("/preferences/delete", self.delete, methods=["POST"]),
        ]

    async def page(self, request: Request) -> Response:
        """The markup of the page, and the notes, services and links that it lists."""
        language = request.scope.get("language", "")

        async def drawn(workspace: Workspace, words: Words) -> dict[str, Any]:
            shown = await self._shown(workspace, language)
            services = None
            if shown.may_own and not shown.brings_model:  # else the page has no place for them, and asks for none
                services = await known_services(workspace.models, self._engine.default_label, words)
            links = await links_data(workspace, words) if self._settings.share else []
            told = {"notes": notes_data(shown.notes), "services": services, "links": links}
            return {"markup": settings_html(shown, words), "keys": await keys_data(workspace, words), **told}

        return await self._told(request, drawn)

    async def language(self, request: Request) -> Response:
        """Another language for this browser: the answer sets a cookie, and the next page speaks it."""
        asked = await json_body(request)
        chosen = text_of((asked or {}).get("value"))
        remember: Callable[[str], str] | None = request.scope.get("remember_language")
        if asked is None or remember is None or request.scope["owner"] is None or chosen not in {"", *LANGUAGES}:
            return JSONResponse({}, 400, _PRIVATE)
        return JSONResponse({"language": chosen}, headers={**_PRIVATE, "set-cookie": remember(chosen)})

    async def change(self, request: Request) -> Response:
        """Set one preference."""
        asked = await json_body(request)
        if asked is None:
            return JSONResponse({}, 400, _PRIVATE)

        async def changed(workspace: Workspace, words: Words) -> dict[str, Any]:
            await workspace.preferences.change(text_of(asked.get("name")), asked.get("value"))
            return {"said": words("settings.kept")}

        return await self._told(request, changed)

    async def delete(self, request: Request) -> Response:
        """Delete everything, for whoever typed the word."""
        asked = await json_body(request)
        if asked is None:
            return JSONResponse({}, 400, _PRIVATE)

        async def deleted(workspace: Workspace, words: Words) -> dict[str, Any]:
            if text_of(asked.get("word")).strip().casefold() != words("settings.delete_word").casefold():
                raise SettingsError("The word was not typed.", key="delete_word", word=words("settings.delete_word"))
            count = await delete_everything(workspace, notes=asked.get("notes") is True)
            return {"said": words("settings.deleted_one" if count == 1 else "settings.deleted", n=count)}

        return await self._told(request, deleted)

    # ---- inside

    async def _shown(self, workspace: Workspace, language: str) -> ShownSettings:
        program = self._engine.program
        libraries = await workspace.libraries.list()
        tools = await workspace.tools.listed()
        chosen = await workspace.models.chosen()
        model = chosen.loader.model
        return ShownSettings(
            preferences=await workspace.preferences.get(),
            language=language,
            readiness=chosen.readiness,
            brings_model=program is not None and program.brings_model,
            may_title=self._settings.titles and program is None,
            may_propose=program is None,
            title_cost=await _cost(model, usual_title_usage()),
            follow_up_cost=await _cost(model, usual_usage()),
            here=model is not None and model.service.here,
            dictation_services=await workspace.dictation.services(),
            dictation_here=workspace.dictation.may_be_here,
            dictated=await workspace.dictation.waiting(),
            may_check=self._settings.check_claims,
            may_judge=program is None,
            judge_cost=await _cost(model, usual_judgement()),
            tools=len(program.own_tools()) if program is not None else sum(one.on for one in tools),
            servers=len(await workspace.tools.servers.list()),
            trouble=workspace.tools.servers.trouble,
            libraries=len(libraries),
            documents=sum(one.documents for one in libraries),
            space=await workspace.stores.space.used(),
            notes=await workspace.tools.notes.list(),
            backed_up=await asyncio.to_thread(last_backup, self._settings.home),
            may_back_up=workspace.owner in self._engine.stores.people.keepers,
            version=_version(),
            may_share=self._settings.share,
            person=await self._person(workspace),
            keeps_house=self._settings.has_accounts and self._engine.people.may(workspace.owner, "house"),
            is_guest=not self._settings.has_local_owner and workspace.role is None,
            has_accounts=self._settings.has_accounts,
            may_own=self._engine.people.may(workspace.owner, "own"),
        )

    async def _person(self, workspace: Workspace) -> Person | None:
        """Whose account it is; `None` without one."""
        return await self._engine.people.store.get(workspace.owner) if workspace.role is not None else None

    async def _told(self, request: Request, work: Callable[[Workspace, Words], Awaitable[dict[str, Any]]]) -> Response:
        """Does the work, and tells what went wrong in a sentence."""
        words = self._words(request.headers.get("accept-language", ""))
        owner = request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)

        async def done() -> dict[str, Any]:
            try:
                async with self._engine.workspaces.open(owner) as workspace:
                    return await work(workspace, words)
            except ParlourError as error:
                return {"failed": words.error(error)}
            except Exception as error:  # the door of the page: it says so, and goes on
                _log.error("The settings asked for something, and it failed.\n%s", log_text(error))
                return {"failed": words.error({"key": "unexpected"})}

        return await answered_in_time(done(), _PRIVATE)


async def _cost(model: BaseChatModel | None, usage: Usage) -> float | None:
    """What one call costs in US dollars; `None` where no price is known, or no model is there yet."""
    return await cost_of(usage, model.model, model.service) if model is not None else None


def _version() -> str:
    """Which Parlour this is; "" where it was not installed as a package."""
    try:
        return version("parlour")
    except PackageNotFoundError:
        return ""
