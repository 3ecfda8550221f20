"""Steering: what the panel at the right and the chips of the composer choose, for a conversation, folder or persona."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from core.errors import NotFoundError, ParlourError
from core.export.exporting import attachment, file_name
from core.llm.tokens import counter_for
from core.models.model_name import MODEL, ModelName
from core.workspace.levels import Level, changed
from core.workspace.personas import Persona, first_sign
from core.workspace.prompts import Prompt
from core.workspace.usable import WEB, usable
from webui.context import json_body, text_of
from webui.handlers.desk import toast
from webui.panels.steering import Shown, folder_html, steering_html

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from core.storage.base import NamedLibrary
    from core.workspace.persona_files import AtHome
    from core.workspace.steering import Steering
    from core.workspace.workspace import Workspace
    from webui.context import WebContext
    from webui.handlers.desk import Desk
    from webui.views import View

Asked = dict[str, Any]
_PRIVATE = {"cache-control": "no-store"}
HERE = "steering"
FOLDER = "folder:"
_MOST_NAMED = 10  # of what an imported file has and a persona has not
_LONGEST_NAMED = 60


async def opened(desk: Desk, view: View, asked: Asked) -> None:
    """Show the steering of the conversation, or of a folder that is named, over whatever stands there."""
    folder = text_of(asked.get("folder"))
    over, under = view.panel, view.under
    view.close_evidence()
    view.under, view.side = under, f"{FOLDER}{folder}" if folder else HERE
    view.cover(over, view.side)
    await draw(desk, view)


async def draw(desk: Desk, view: View) -> None:
    """Draw the panel anew, if it is open; one whose folder is gone is closed."""
    if not view.side or desk.engine.program is not None:
        return
    look = view.looks
    async with desk.workspace(view) as workspace:
        if view.side == HERE:
            markup = steering_html(await _shown(workspace, view), view.words, turn=_turn(view))
        else:
            markup = await _folder(workspace, view)
    if view.looks == look:
        view.evidence = markup
        view.looks += 1


async def steer(desk: Desk, view: View, asked: Asked) -> None:
    """Change what holds for the conversation, or for a folder; a new conversation remembers it until it is there."""
    change, folder = _object(asked.get("change")), text_of(asked.get("folder"))
    async with desk.workspace(view) as workspace:
        if folder:
            await workspace.steering.change_folder(folder, change)
        elif view.conversation_id:
            await workspace.steering.change(view.conversation_id, change)
        else:
            view.draft = changed(view.draft, change)
    _changed(desk, view, everywhere=bool(folder))
    if asked.get("quiet") is not True:
        await draw(desk, view)


async def switch(desk: Desk, view: View, asked: Asked) -> None:
    """Press a chip: use the web or the code interpreter here, or no more."""
    what = text_of(asked.get("what"))
    names = {"web": WEB, "code": ("code_interpreter",)}.get(what)
    if names is None:
        raise NotFoundError("There is no such switch.")
    on = asked.get("on") is True
    await steer(desk, view, {"change": {"tools": dict.fromkeys(names, on)}})


async def choose(desk: Desk, view: View, asked: Asked) -> None:
    """Let the conversation use a persona, or none."""
    wanted = text_of(asked.get("id"))
    async with desk.workspace(view) as workspace:
        if view.conversation_id:
            await workspace.steering.choose(view.conversation_id, wanted)
        else:
            before = (await workspace.steering.of_draft(view.draft, view.folder or None)).persona
            model = {MODEL: view.model.as_json()} if view.model is not None else {}
            draft = await workspace.steering.with_persona({**view.draft, **model}, wanted)
            view.model = ModelName.read(draft.pop(MODEL, None))
            view.draft = draft
            view.libraries = _libraries(
                view, before, (await workspace.steering.of_draft(view.draft, view.folder or None)).persona
            )
    _changed(desk, view)
    await draw(desk, view)


async def save_persona(desk: Desk, view: View, asked: Asked) -> None:
    """Keep how the conversation is steered as a persona of that name, and let it use that.

    Under the name of the persona that it uses already, that one is changed.
    """
    name = text_of(asked.get("name"))
    async with desk.workspace(view) as workspace:
        steering = await _steering(workspace, view)
        libraries, used = await _used(workspace, view), steering.persona
        level = Level(steering.instructions, _of_both(steering, "parameters"), _of_both(steering, "tools"), libraries)
        if used is not None and used.lent and used.writes and used.name == name.strip():
            await workspace.steering.change_lent(used.id, level)
            kept = used
        else:
            kept = await _kept(workspace, view, steering, level, name)
    await choose(desk, view, {"id": kept.id})


async def _kept(workspace: Workspace, view: View, steering: Steering, level: Level, name: str) -> Persona:
    """The persona of that name, of the owner's own."""
    personas = workspace.steering.personas
    before = next((one for one in await personas.list() if steering.persona and one.id == steering.persona.id), None)
    fresh = Persona("", name, first_sign(name), level, before.starters if before is not None else ())
    again = before is not None and before.name == name.strip()  # under the same name it is changed
    written = replace(before, level=level) if again and before is not None else fresh
    return await personas.save(replace(written, model=await _model(workspace, view)))


async def change_persona(desk: Desk, view: View, asked: Asked) -> None:
    """Give a persona another sign, other questions to begin with (one on each line), and a model or none."""
    async with desk.workspace(view) as workspace:
        personas = workspace.steering.personas
        persona = await personas.get(text_of(asked.get("id")))
        starters = tuple(text_of(asked.get("starters")).splitlines())
        model = ModelName.read(asked.get("model"))
        await personas.save(replace(persona, sign=text_of(asked.get("sign")), starters=starters, model=model))
    _changed(desk, view, everywhere=True)
    await draw(desk, view)


async def import_persona(desk: Desk, view: View, asked: Asked) -> None:
    """Keep what the file of an agent describes as a persona, and let the conversation use it.

    What it names that the owner has not is said.
    """
    from core.workspace.persona_files import at_home, passed_over, persona_from  # brings what checks agents' files

    text, name = text_of(asked.get("text")), text_of(asked.get("name"))
    found = await asyncio.to_thread(persona_from, text, name)
    left = await asyncio.to_thread(passed_over, text, name)
    async with desk.workspace(view) as workspace:
        persona, lacks = at_home(found, await _at_home(workspace, found.model))
        kept = await workspace.steering.personas.save(persona)
    await choose(desk, view, {"id": kept.id})
    what = [
        *(view.words("steer.lacks_library", name=one) for one in lacks.libraries),
        *(view.words("steer.lacks_model", name=one) for one in lacks.models),
        *(view.words("steer.lacks_server", name=one) for one in lacks.servers),
        *(view.words("steer.lacks_tool", name=one) for one in left.tools[:_MOST_NAMED]),
        *(view.words("steer.lacks_field", name=one[:_LONGEST_NAMED]) for one in left.fields[:_MOST_NAMED]),
    ]
    if what:
        toast(view.words, {"key": "persona_lacks", "details": {"what": view.words("lang.comma").join(what)}})


async def delete_persona(desk: Desk, view: View, asked: Asked) -> None:
    """Forget a persona; conversations that use it go on as they were. The tab can take it back."""
    async with desk.workspace(view) as workspace:
        forgotten = await workspace.steering.personas.get(text_of(asked.get("id")))
        await workspace.steering.personas.delete(forgotten.id)
    view.forgotten = forgotten
    _changed(desk, view, everywhere=True)
    await draw(desk, view)


async def restore_persona(desk: Desk, view: View, asked: Asked) -> None:
    """Take the deletion of a persona back."""
    forgotten = view.forgotten
    if forgotten is None or forgotten.id != text_of(asked.get("id")):
        raise NotFoundError("There is no such persona.", kind="persona")
    async with desk.workspace(view) as workspace:
        await workspace.steering.personas.save(forgotten)
    view.forgotten = None
    _changed(desk, view, everywhere=True)
    await draw(desk, view)


async def shelve(desk: Desk, view: View, asked: Asked) -> None:
    """Let the conversations of a folder use a library, or no more."""
    folder, library = text_of(asked.get("folder")), text_of(asked.get("library"))
    async with desk.workspace(view) as workspace:
        await workspace.libraries.known(library)
        kept = Level.of((await workspace.folders.get(folder)).settings).libraries
        others = [one for one in kept if one != library]
        wanted = [*others, library] if asked.get("on") is True else others
        await workspace.steering.change_folder(folder, {"libraries": wanted or None})
    _changed(desk, view, everywhere=True)
    await draw(desk, view)


async def save_prompt(desk: Desk, view: View, asked: Asked) -> None:
    """Keep a prompt: a new one where it has no id."""
    named = (text_of(asked.get(name)) for name in ("id", "name", "text"))
    async with desk.workspace(view) as workspace:
        await workspace.steering.prompts.save(Prompt(*named))
    await draw(desk, view)


async def delete_prompt(desk: Desk, view: View, asked: Asked) -> None:
    """Forget a prompt."""
    async with desk.workspace(view) as workspace:
        await workspace.steering.prompts.delete(text_of(asked.get("id")))
    await draw(desk, view)


class SteeringRoutes:
    """`GET /steering/prompts`, `POST /steering/tokens` and `GET /steering/personas/{id}`, for the request's owner."""

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [
            Route("/steering/prompts", self.prompts, methods=["GET"]),
            Route("/steering/tokens", self.tokens, methods=["POST"]),
            Route("/steering/personas/{persona_id}", self.file, methods=["GET"]),
        ]

    async def prompts(self, request: Request) -> Response:
        """What `/` offers in the composer."""
        owner = request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        async with self._engine.workspaces.open(owner) as workspace:
            found = await workspace.steering.prompts.list()
        return JSONResponse({"prompts": [{"name": one.name, "text": one.text} for one in found]}, headers=_PRIVATE)

    async def tokens(self, request: Request) -> Response:
        """`{"tokens"}` of all instructions where a conversation's own are `text`, as the panel counts them.

        Asked with `{"conversation", "folder", "model", "text"}`; `folder` is the one that a new conversation begins in.
        """
        owner = request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        asked, words = await json_body(request) or {}, self._words(request.headers.get("accept-language", ""))
        conversation, folder = text_of(asked.get("conversation")), text_of(asked.get("folder")) or None
        try:
            async with self._engine.workspaces.open(owner) as workspace:
                kept: Mapping[str, Any] = {}
                if conversation:
                    record, kept = await workspace.stores.conversations.with_settings(conversation)
                    folder = record.folder_id
                kept = changed(kept, {"instructions": text_of(asked.get("text"))})
                told = (await workspace.steering.of_draft(kept, folder)).told(words.spoken)
                model = (await workspace.models.chosen(ModelName.read(asked.get("model")))).loader.model
        except ParlourError as error:
            status = 404 if isinstance(error, NotFoundError) else 400
            return JSONResponse({"failed": words.error(error)}, status, _PRIVATE)
        counter = (model.counter if model is not None else None) or counter_for("")
        return JSONResponse({"tokens": counter.count(told) if told else 0}, headers=_PRIVATE)

    async def file(self, request: Request) -> Response:
        """A persona as the file of an agent."""
        owner = request.scope["owner"]
        if owner is None:
            return PlainTextResponse("", 401, _PRIVATE)
        try:
            async with self._engine.workspaces.open(owner) as workspace:
                persona = await workspace.steering.personas.get(request.path_params["persona_id"])
                here = await _at_home(workspace)
        except NotFoundError as error:
            words = self._words(request.headers.get("accept-language", ""))
            return PlainTextResponse(words.error(error), 404, _PRIVATE)
        from core.workspace.persona_files import persona_file  # as above

        name = file_name(persona.name, "yaml")
        headers = {**_PRIVATE, "content-disposition": attachment(name), "x-content-type-options": "nosniff"}
        text = persona_file(persona, {one: called for called, one in here.libraries.items()})
        return Response(text, media_type="application/yaml", headers=headers)


# ---- inside


async def _at_home(workspace: Workspace, model: ModelName | None = None) -> AtHome:
    """What the owner has that a persona may name, others' included; the service of this model, if it can answer."""
    from core.workspace.persona_files import AtHome  # as above

    tools, models = workspace.tools, workspace.models
    servers = {*(one.kept.name for one in await tools.servers.list()), *(one.rules for one in await tools.lent.list())}
    usual = {one.service: one.model for one in await models.kept()}
    usual = {**{one.name: one.service.model for one in await models.others.list()}, **usual}
    if model is not None and model.service:
        usual.pop(model.service, None)
        with suppress(ParlourError):
            usual[model.service] = (await models.named(model)).model
    libraries = await _libraries_here(workspace)
    return AtHome({one.name: one.id for one in reversed(libraries)}, usual, servers)


async def _shown(workspace: Workspace, view: View) -> Shown:
    steering = await _steering(workspace, view)
    name = await _model(workspace, view)
    model = (await workspace.models.chosen(name)).loader.model
    counter = model.counter if model is not None else None
    told = steering.told(view.words.spoken)
    return Shown(
        steering,
        personas=[*await workspace.steering.personas.list(), *await workspace.steering.lent_personas()],
        rows=await usable(workspace.services, steering, view.conversation_id, counter),
        libraries=await _libraries_here(workspace),
        used=await _used(workspace, view),
        efforts=tuple(model.efforts) if model is not None else (),
        left_out=tuple(model.left_out) if model is not None else (),
        told=(counter or counter_for("")).count(told) if told else 0,
        documents=await _documents(workspace, view),
        prompts=await workspace.steering.prompts.list(),
        model=name,
        shares=bool(await workspace.stores.lending.groups()),
    )


async def _folder(workspace: Workspace, view: View) -> str:
    try:
        folder = await workspace.folders.get(view.side.removeprefix(FOLDER))
    except NotFoundError:
        view.side = ""
        return ""
    level, libraries = Level.of(folder.settings), await _libraries_here(workspace)
    return folder_html(folder, level, libraries, view.words, turn=_turn(view))


async def _libraries_here(workspace: Workspace) -> list[NamedLibrary]:
    """The owner's libraries, and those that others share, whose they are said with their names."""
    lent = await workspace.libraries.lent()
    return [
        *await workspace.libraries.list(),
        *(replace(one.library, name=f"{one.library.name} · {one.lender}") for one in lent),
    ]


async def _steering(workspace: Workspace, view: View) -> Steering:
    if view.conversation_id:
        return await workspace.steering.of(view.conversation_id)
    return await workspace.steering.of_draft(view.draft, view.folder or None)


async def _used(workspace: Workspace, view: View) -> tuple[str, ...]:
    """The libraries that the conversation uses."""
    if not view.conversation_id:
        return view.libraries
    return tuple(one.id for one in await workspace.stores.libraries.used_by(view.conversation_id))


async def _model(workspace: Workspace, view: View) -> ModelName | None:
    """The model that was chosen for the conversation."""
    return await workspace.conversation(view.conversation_id).model() if view.conversation_id else view.model


async def _documents(workspace: Workspace, view: View) -> int:
    return len(await workspace.documents.within_reach(view.conversation_id)) if view.conversation_id else 0


def _of_both(steering: Steering, name: str) -> dict[str, Any]:
    """What the persona and the conversation say; what the folder and the owner say holds anyway."""
    persona = steering.persona.level if steering.persona is not None else Level()
    return {**getattr(persona, name), **getattr(steering.own, name)}


def _libraries(view: View, before: Persona | None, now: Persona | None) -> tuple[str, ...]:
    """The libraries of a new conversation when its persona changes."""
    left = before.level.libraries if before is not None else ()
    brought = now.level.libraries if now is not None else ()
    return tuple(dict.fromkeys([*(one for one in view.libraries if one not in left), *brought]))


def _changed(desk: Desk, view: View, *, everywhere: bool = False) -> None:
    """Let the tabs show it that show the conversation; where it is not there yet, this one."""
    if view.conversation_id:
        desk.views.changed(view.owner, view.conversation_id)
    if everywhere:
        desk.views.changed(view.owner, None)
    view.wake_up(stale=True)


def _turn(view: View) -> int:
    """Counts drawings: one that is equal to the last would not be painted over what a reader changed meanwhile."""
    return view.looks


def _object(given: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", given) if isinstance(given, dict) else {}


ACTIONS = {
    "steering": opened,
    "steer": steer,
    "switch": switch,
    "persona": choose,
    "persona-save": save_persona,
    "persona-change": change_persona,
    "persona-delete": delete_persona,
    "persona-restore": restore_persona,
    "persona-import": import_persona,
    "prompt-save": save_prompt,
    "prompt-delete": delete_prompt,
    "shelve": shelve,
}
