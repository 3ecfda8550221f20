"""What administrators do about groups, and what people share with them: forms of the pages about people."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse
from starlette.routing import Route

from core.errors import ParlourError
from webui.handlers.lending import checked_kind
from webui.panels.lending import Borrowed, Shareable, ShownLending, lending_page
from webui.panels.model_menu import kept_label

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from typing import Protocol

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from core.engine import Engine
    from core.people.people import Known
    from core.workspace.workspace import Workspace
    from webui.words import Words

    Form = Mapping[str, str]
    Work = Callable[[Request, Known, Form], Awaitable[Response]]

    class Pages(Protocol):
        """What answers forms with pages."""

        def words_of(self, request: Request) -> Words:
            """The words of the language that a request asks for."""
            ...

        def shown(self, markup: str, request: Request, status: int = 200) -> Response:
            """A page."""
            ...

        def answering(
            self, work: Work, page: Callable[..., Awaitable[Response]]
        ) -> Callable[[Request], Awaitable[Response]]:
            """What answers a form with work, or with a page that says what went wrong."""
            ...


class GroupRoutes:
    """`POST /people/group-make` and so on, `GET /lending` and `POST /lending/set`.

    Args:
        pages: Answers forms.
        people: The page of the people.
    """

    def __init__(self, engine: Engine, pages: Pages, people: Callable[..., Awaitable[Response]]) -> None:
        self._engine = engine
        self._groups = engine.groups
        self._pages = pages
        self._people = people

    def table(self) -> list[BaseRoute]:
        """All of them."""
        works = {"make": self.make, "rename": self.rename, "delete": self.delete, "limits": self.limits}
        works |= {"add": self.add, "remove": self.remove}
        return [
            *(
                Route(f"/people/group-{name}", self._pages.answering(work, self._people), methods=["GET", "POST"])
                for name, work in works.items()
            ),
            Route("/lending", self.lending, methods=["GET"]),
            Route("/lending/set", self._pages.answering(self.lend, self._lending), methods=["GET", "POST"]),
        ]

    # ---- groups

    async def make(self, request: Request, known: Known, form: Form) -> Response:
        """A new group."""
        del request
        await self._groups.make(known.person, form.get("name", ""))
        return _to("../people")

    async def rename(self, request: Request, known: Known, form: Form) -> Response:
        """Another name."""
        del request
        await self._groups.rename(known.person, form.get("group", ""), form.get("name", ""))
        return _to("../people")

    async def delete(self, request: Request, known: Known, form: Form) -> Response:
        """Delete a group with all that is shared with it, where its name was typed."""
        del request
        group = next((one for one in await self._groups.store.list() if one.id == form.get("group")), None)
        if group is not None and form.get("name", "").strip() != group.name:
            raise ParlourError("The name was not typed.", key="name_not_typed", name=group.name)
        gone = await self._groups.delete(known.person, form.get("group", ""))
        self._tell(gone.members)
        return _to("../people")

    async def limits(self, request: Request, known: Known, form: Form) -> Response:
        """What each of its members may use."""
        del request
        await self._groups.set_limits(known.person, form.get("group", ""), form)
        return _to("../people")

    async def add(self, request: Request, known: Known, form: Form) -> Response:
        """Let somebody be in it."""
        del request
        await self._groups.add(known.person, form.get("group", ""), form.get("person", ""))
        self._tell([form.get("person", "")])
        return _to("../people")

    async def remove(self, request: Request, known: Known, form: Form) -> Response:
        """Let somebody be in it no more."""
        del request
        await self._groups.take_out(known.person, form.get("group", ""), form.get("person", ""))
        self._tell([form.get("person", "")])
        return _to("../people")

    # ---- what is shared

    async def lending(self, request: Request) -> Response:
        """What is shared, by whom and with whom."""
        return await self._lending(request)

    async def lend(self, request: Request, known: Known, form: Form) -> Response:
        """Share something with a group to read or to write, or no more."""
        del request
        kind = checked_kind(form.get("kind", ""))
        thing, group, how = (form.get(name, "") for name in ("thing", "group", "how"))
        lending = self._engine.stores.of(known.person.id).lending
        reached = set(await lending.borrowers(kind, thing))
        if how in {"read", "write"}:
            await lending.lend(group, kind, thing, writes=how == "write")
        else:
            await lending.take_back(group, kind, thing)
        self._tell({*reached, *await lending.borrowers(kind, thing)})
        return _to("../lending")

    async def _lending(self, request: Request, status: int = 200, *, problem: str = "") -> Response:
        known: Known = request.scope["known"]
        words = self._pages.words_of(request)
        async with self._engine.workspaces.open(known.person.id) as workspace:
            groups = await workspace.stores.lending.groups()
            mine = await _mine(workspace, words, keeps=workspace.models.is_local) if groups else []
            shown = ShownLending(groups, mine, await _borrowed(workspace, words), problem)
        return self._pages.shown(lending_page(shown, words), request, status)

    def _tell(self, people: Iterable[str]) -> None:
        """Let their pages show it."""
        for one in people:
            self._engine.services.changed(one, None)


async def _mine(workspace: Workspace, words: Words, *, keeps: bool) -> list[Shareable]:
    lending = workspace.stores.lending
    found = [Shareable("library", one.id, one.name) for one in await workspace.libraries.list()]
    found += [Shareable("persona", one.id, one.name) for one in await workspace.steering.personas.list()]
    found += [Shareable("server", one.id, one.name) for one in await workspace.stores.mcp_servers.list()]
    found += [Shareable("service", one.id, one.name) for one in await workspace.tools.openapi.list()]
    if keeps:
        found += [Shareable("model", one.service, kept_label(one, words)) for one in await workspace.models.kept()]
    return [replace(one, loans=await lending.loans(one.kind, one.thing)) for one in found]


async def _borrowed(workspace: Workspace, words: Words) -> list[Borrowed]:
    return [
        *(Borrowed("library", one.library.name, one.lender, one.writes) for one in await workspace.libraries.lent()),
        *(Borrowed("persona", one.name, one.lender, one.writes) for one in await workspace.steering.lent_personas()),
        *(
            Borrowed("model", kept_label(one.service, words), one.lender, writes=False)
            for one in await workspace.models.others.list()
        ),
        *(Borrowed(one.kind, one.name, one.lender, writes=False) for one in await workspace.tools.lent.list()),
    ]


def _to(place: str) -> RedirectResponse:
    return RedirectResponse(place, 303, headers={"cache-control": "no-store", "referrer-policy": "same-origin"})
