"""Choosing a model: routes of our own, so that a key travels in one request and stands nowhere on the page."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse
from starlette.routing import Route

from core.errors import ConflictError, ParlourError
from core.llm.local_files import BUILT_IN
from core.models.choices import ModelMenu
from core.models.menu import service_named
from core.models.model_name import Abilities, ModelName
from core.models.own_models import Draft
from webui.context import answered_in_time, json_body, log_text, text_of
from webui.panels.model_menu import choices_data
from webui.panels.model_services import services_data
from webui.panels.models import failure, menu_data
from webui.panels.weight_files import files_data

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from core.models.own_models import OwnerModels
    from core.workspace.workspace import Workspace
    from webui.context import WebContext
    from webui.words import Words

_log = logging.getLogger(__name__)

_LEAST_SAID = 0.1
_PRIVATE = {"cache-control": "no-store"}


class ModelRoutes:
    """The dialog (`GET /models/menu`, and what it does) and the menu (`GET /models/choices` …), for who asks."""

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [
            Route("/models/menu", self._answering(self.opened), methods=["GET"]),
            Route("/models/save", self._answering(self.save), methods=["POST"]),
            Route("/models/save_anyway", self._answering(self.save_anyway), methods=["POST"]),
            Route("/models/use", self._answering(self.use), methods=["POST"]),
            Route("/models/remove", self._answering(self.remove), methods=["POST"]),
            Route("/models/test", self._answering(self.test), methods=["POST"]),
            Route("/models/offered", self._answering(self.offered), methods=["POST"]),
            Route("/models/choices", self._answering(self.choices), methods=["GET"]),
            Route("/models/refresh", self._answering(self.refresh), methods=["POST"]),
            Route("/models/services", self._answering(self.services), methods=["POST"]),
            Route("/models/star", self._answering(self.star), methods=["POST"]),
            Route("/models/unstar", self._answering(self.unstar), methods=["POST"]),
            Route("/models/files", self._answering(self.files), methods=["GET"]),
            Route("/models/fetch", self._answering(self.fetch), methods=["POST"]),
            Route("/models/cancel", self._answering(self.cancel), methods=["POST"]),
            Route("/models/delete", self._answering(self.delete), methods=["POST"]),
        ]

    async def choices(self, models: OwnerModels, draft: Draft, words: Words) -> dict[str, Any]:
        """All models that can be chosen, from what is known: no service is asked."""
        del draft
        if self._engine.program is not None and self._engine.program.brings_model:
            return {"favourites": [], "lately": [], "groups": []}
        services = await ModelMenu(models).services()
        favourites = (await models.notes.all()).favourites
        used = await models.notes.used()
        return choices_data(services, favourites, used, self._engine.default_label, words)

    async def refresh(self, models: OwnerModels, draft: Draft, words: Words) -> dict[str, Any]:
        """The same, after the services whose list is old were asked for their models."""
        await ModelMenu(models).refresh()
        return await self.choices(models, draft, words)

    async def services(self, models: OwnerModels, draft: Draft, words: Words) -> dict[str, Any]:
        """The services of the settings, after those whose list of models is old were asked for it."""
        del draft
        await ModelMenu(models).refresh()
        return await known_services(models, self._engine.default_label, words)

    async def star(self, models: OwnerModels, draft: Draft, words: Words) -> dict[str, Any]:
        """Make a model a favourite."""
        await ModelMenu(models).star(ModelName(draft.service, draft.model), on=True)
        return await self.choices(models, draft, words)

    async def unstar(self, models: OwnerModels, draft: Draft, words: Words) -> dict[str, Any]:
        """A model is no favourite any more."""
        await ModelMenu(models).star(ModelName(draft.service, draft.model), on=False)
        return await self.choices(models, draft, words)

    async def files(self, models: OwnerModels, draft: Draft, words: Words) -> dict[str, Any]:
        """The files of built-in models on this machine, for whom it belongs to."""
        del draft
        _only_here(models)
        return files_data(await asyncio.to_thread(models.weight_files.list), words)

    async def fetch(self, models: OwnerModels, draft: Draft, words: Words) -> dict[str, Any]:
        """Begin to download one, or go on."""
        _only_here(models)
        models.weight_files.start(draft.model)
        return await self.files(models, draft, words)

    async def cancel(self, models: OwnerModels, draft: Draft, words: Words) -> dict[str, Any]:
        """End a download; what has come stays."""
        _only_here(models)
        models.weight_files.cancel(draft.model)
        return await self.files(models, draft, words)

    async def delete(self, models: OwnerModels, draft: Draft, words: Words) -> dict[str, Any]:
        """Delete one that Parlour has downloaded."""
        _only_here(models)
        await asyncio.to_thread(models.weight_files.remove, draft.model)
        return await self.files(models, draft, words)

    async def opened(self, models: OwnerModels, draft: Draft, words: Words) -> dict[str, Any]:
        """The menu, or why there is none: a program's agents may have a model of their own."""
        if self._engine.program is not None and self._engine.program.brings_model:
            return {"fixed": words("agents.own_model")}
        return await self.menu(models, draft, words)

    async def menu(self, models: OwnerModels, draft: Draft, words: Words) -> dict[str, Any]:
        """What can be chosen, what the owner set up, and what answers."""
        del draft
        kept = await models.kept()
        used = next((one.service for one in kept if one.in_use), "")
        said = (await models.notes.all()).said
        return menu_data(kept, self._engine.default_label, used, words, local=models.is_local, said=said)

    async def save(self, models: OwnerModels, draft: Draft, words: Words) -> dict[str, Any]:
        """Keep a choice; where it is what answers, only if it works: else the settings in use stay as they are."""
        if not any(one.in_use and one.service == draft.service for one in await models.kept()):
            return await self.save_anyway(models, draft, words)
        await models.checked(draft)  # what nobody could keep is told as such
        try:
            await models.take(draft)
        except ConflictError:
            raise
        except ParlourError as error:
            return {"failed": _told(draft, error, words, words("models.not_saved")), "anyway": True}
        return await self._saved(models, draft, words)

    async def save_anyway(self, models: OwnerModels, draft: Draft, words: Words) -> dict[str, Any]:
        """Keep a choice untried; which service answers stays as it is."""
        await models.save(draft, use=False)
        return await self._saved(models, draft, words)

    async def _saved(self, models: OwnerModels, draft: Draft, words: Words) -> dict[str, Any]:
        told = await self.menu(models, draft, words)
        return {**told, "said": words("models.saved_in_use" if told["used"] == draft.service else "models.saved")}

    async def use(self, models: OwnerModels, draft: Draft, words: Words) -> dict[str, Any]:
        """Keep a choice that works, and let it answer from the next question on."""
        if draft.service:
            await models.take(draft)
        else:
            await models.use("")
        label = (await models.loader()).label
        return {**await self.menu(models, draft, words), "model": words.model(label)}

    async def remove(self, models: OwnerModels, draft: Draft, words: Words) -> dict[str, Any]:
        """Forget a service that was set up."""
        await models.remove(draft.service)
        return await self.menu(models, draft, words)

    async def test(self, models: OwnerModels, draft: Draft, words: Words) -> dict[str, Any]:
        """Ask one tiny question."""
        label, seconds = await models.test(draft)
        took = words.seconds(max(seconds, _LEAST_SAID))
        return {"said": words("models.works", model=words.model(label), seconds=took)}

    async def offered(self, models: OwnerModels, draft: Draft, words: Words) -> dict[str, Any]:
        """The names of the models that the service offers."""
        del words
        return {"models": await models.offered(draft)}

    async def _of_titles(self, workspace: Workspace, told: dict[str, Any], words: Words) -> dict[str, Any]:
        """Beside the prices of models, and where a key is typed: that a call more is made to name a conversation."""
        where = "note" if told.get("costs") else "titles" if "services" in told else ""
        on = where and self._engine.settings.titles and self._engine.program is None
        return {where: words("models.titles_cost")} if on and (await workspace.preferences.get()).titles else {}

    def _answering(
        self, work: Callable[[OwnerModels, Draft, Words], Awaitable[dict[str, Any]]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Reads the request, does the work, and tells what went wrong in a sentence that holds no key."""

        async def answer(request: Request) -> Response:
            words = self._words(request.headers.get("accept-language", ""))
            owner = request.scope["owner"]
            if owner is None:
                return JSONResponse({}, 401, _PRIVATE)
            draft = await _draft(request)
            if draft is None:
                return JSONResponse({}, 400, _PRIVATE)

            async def done() -> dict[str, Any]:
                try:
                    async with self._engine.workspaces.open(owner) as workspace:
                        told = await work(workspace.models, draft, words)
                        told |= await self._of_titles(workspace, told, words)
                        shares = workspace.models.is_local and bool(await workspace.stores.lending.groups())
                        return {**told, "shares": True} if shares and "services" in told else told
                except ParlourError as error:
                    return {"failed": _told(draft, error, words)}
                except Exception as error:
                    _log.error("Choosing a model failed.\n%s", log_text(error))
                    return {"failed": failure(ParlourError(), words)}

            return await answered_in_time(done(), _PRIVATE)

        return answer


def _only_here(models: OwnerModels) -> None:
    """Raises SettingsError where the machine is not the reader's own."""
    service_named(BUILT_IN, local=models.is_local)


async def known_services(models: OwnerModels, default: str, words: Words) -> dict[str, Any]:
    """The services of the settings, from what is known: no service is asked. Raises StorageError."""
    services, kept = await ModelMenu(models).services(), await models.kept()
    return services_data(services, kept, default, words, local=models.is_local)


async def _draft(request: Request) -> Draft | None:
    """What was typed; `None` where the request is not one of the page's own."""
    if request.method == "GET":
        return Draft("")
    given = await json_body(request)
    if given is None:
        return None
    texts = {name: text_of(given.get(name)) for name in ("service", "address", "model")}
    able = Abilities.read(given["abilities"]) if isinstance(given.get("abilities"), dict) else None
    return Draft(**texts, key=text_of(given["key"]) if isinstance(given.get("key"), str) else None, abilities=able)


def _told(draft: Draft, error: ParlourError, words: Words, more: str = "") -> str:
    """What went wrong, without the key that was typed."""
    said, key = failure(error, words), (draft.key or "").strip()
    return words.line(said.replace(key, "…") if key else said, more)
