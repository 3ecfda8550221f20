"""The way in by an account, one's own account, and what administrators do about others': pages and forms."""

from __future__ import annotations

import logging
import re
import time
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from core.errors import NotFoundError, ParlourError, StorageError, TooManyRequestsError
from core.people.passkeys import ISSUER as PASSKEY
from core.people.passwords import SHORTEST
from core.people.roles import may
from core.storage.use import day_of
from webui.auth import owners_of
from webui.handlers.groups import GroupRoutes
from webui.handlers.openid import OpenIdRoutes, service_of
from webui.handlers.passkeys import PasskeyRoutes
from webui.middleware.accounts import SESSION
from webui.middleware.answers import read_body
from webui.middleware.owner import newcomers_of
from webui.middleware.proxy import client_address, counted_as
from webui.middleware.then import forgetting, remembered
from webui.panels.people import ShownAccount, ShownPeople, account_page, people_page
from webui.panels.sign_in import SignInView, link_page, sign_in_page, told_page

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from core.limits import RateLimiter
    from core.people.people import Known, SignedIn
    from core.storage.people import Invitation, Person
    from webui.auth import Owners
    from webui.context import WebContext
    from webui.words import Words

    Form = Mapping[str, str]

_log = logging.getLogger(__name__)
_FORM_LIMIT: Final = 8 * 1024
_MOST_DAYS: Final = 30
_DAY: Final = 24 * 3600.0
_PRIVATE: Final = {"cache-control": "no-store", "referrer-policy": "same-origin"}
_SYSTEMS: Final = ("Windows", "Android", "iPhone", "iPad", "Mac OS X", "CrOS", "Linux")
_BROWSERS: Final = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)


class PeopleRoutes:
    """Routes about people; each answers with a page, or leads to one.

    Args:
        owners: Makes the cookies of browsers.
        newcomers: Limits how many browsers of one address may come as new guests.
    """

    def __init__(self, context: WebContext, owners: Owners, newcomers: RateLimiter) -> None:
        self._engine = context.engine
        self._people = context.engine.people
        self._guests = context.settings.guests
        self._words = context.words
        self._owners = owners
        self._newcomers = newcomers
        self.people_here = self._people
        self._settings = context.settings
        self._warned = False  # that a proxy is not named
        service = service_of(context.settings)
        self._outside = OpenIdRoutes(service, context.settings, self, owners.cookies) if service is not None else None

    def table(self) -> list[BaseRoute]:
        """All of them."""
        mine = {"password": self.change_password, "end": self.end_mine, "delete": self.leave}
        theirs = {"invite": self.invite, "role": self.role, "recover": self.recover, "end": self.end_theirs}
        theirs |= {"delete": self.delete, "revoke": self.revoke, "limits": self.limits}
        return [
            Route("/sign-in", self.door, methods=["GET"]),
            Route("/sign-in", self.sign_in, methods=["POST"]),
            Route("/sign-out", self.sign_out, methods=["POST"]),
            Route("/guest", self.as_guest, methods=["POST"]),
            Route("/link/{token}", self.link, methods=["GET"]),
            Route("/link/{token}", self.use_link, methods=["POST"]),
            *(self._outside.table() if self._outside is not None else ()),
            *GroupRoutes(self._engine, self, self._listed).table(),
            *PasskeyRoutes(self._settings, self, self._owners.cookies).table(),
            Route("/account", self.account, methods=["GET"]),
            *(Route(f"/account/{name}", self._mine(work), methods=["GET", "POST"]) for name, work in mine.items()),
            Route("/people", self.people, methods=["GET"]),
            *(Route(f"/people/{name}", self._theirs(work), methods=["GET", "POST"]) for name, work in theirs.items()),
        ]

    # ---- the way in

    async def door(self, request: Request) -> Response:
        """The page to sign in; who has signed in is led on."""
        if request.scope["known"] is not None:
            return _to("./")
        return await self._door(request)

    async def sign_in(self, request: Request) -> Response:
        """Sign in by what was typed."""
        form = await _form(request)
        words = self.words_of(request)
        name, password = form.get("name", ""), form.get("password", "")
        try:
            done = await self._people.sign_in(
                name, password, address=self.address_of(request), browser=_browser(request), former=self._token(request)
            )
        except TooManyRequestsError as error:
            wait = {"retry-after": str(error.retry_after)}
            return await self._door(request, 429, name, words.error(error), wait)
        except StorageError as error:
            return await self._door(request, 503, name, words.error(error))
        except ParlourError as error:
            return await self._door(request, 401, name, words.error(error))
        return await self.come_in(request, done, "./")

    async def sign_out(self, request: Request) -> Response:
        """End the session of this browser."""
        known: Known | None = request.scope["known"]
        if known is not None:
            await self._people.sign_out(known)
        answer = _to("./sign-in")
        self._give(request, answer, "")
        return answer

    async def as_guest(self, request: Request) -> Response:
        """Go on without an account: the browser is an owner of its own."""
        words = self.words_of(request)
        if not self._guests:
            return await self._door(request, 403, problem=words("account.no_guests"))
        answer = _to("./")
        if request.scope["known"] is None and self._token(request):
            self._give(request, answer, "")  # of a session that ended
        if request.scope["guest"] is None:
            try:
                await self._newcomers.take(counted_as(client_address(request)))
            except TooManyRequestsError as error:
                return await self._door(request, 429, problem=words.error(error))
            answer.headers.append(
                "set-cookie", self._owners.cookie(self._owners.new(), https=request.scope["scheme"] == "https")
            )
        return answer

    async def link(self, request: Request) -> Response:
        """What a one-time link is for."""
        try:
            invitation = await self._people.link(request.path_params["token"])
        except ParlourError as error:
            return self._link_failed(request, error)
        return self._link_page(request, invitation)

    async def use_link(self, request: Request) -> Response:
        """Become somebody, or choose another password."""
        form, token, words = await _form(request), request.path_params["token"], self.words_of(request)
        password, former = form.get("password", ""), self._token(request)
        try:
            invitation = await self._people.link(token)
        except ParlourError as error:
            return self._link_failed(request, error)
        try:
            if invitation.person_id is not None:
                done = await self._people.recover(token, password, browser=_browser(request), former=former)
                self._engine.stores.api_keys.forget()
            else:
                name = form.get("name", "")
                done = await self._people.accept(token, name, password, browser=_browser(request), former=former)
        except NotFoundError as error:  # somebody else was quicker
            return self._link_failed(request, error)
        except ParlourError as error:
            return self._link_page(request, invitation, 400, form.get("name", ""), words.error(error))
        return await self.come_in(request, done, "../")

    # ---- one's own account

    async def account(self, request: Request) -> Response:
        """One's own account."""
        return await self._account(request)

    async def change_password(self, request: Request, known: Known, form: Form) -> Response:
        """Another password, for who knows the old one; the first one for who signed in by another way a moment ago."""
        await self._people.change_password(
            known, form.get("old", ""), form.get("new", ""), address=self.address_of(request)
        )
        return await self._account(request, said="account.changed")

    async def end_mine(self, request: Request, known: Known, form: Form) -> Response:
        """End one of one's own sessions."""
        del request
        session = form.get("session", "")
        await self._people.end_session(known.person, session)
        return _to("../sign-in") if session == known.session.id else _to("../account")

    async def leave(self, request: Request, known: Known, form: Form) -> Response:
        """Delete one's own account with everything; who has no password types the name, so that no click is enough."""
        person = await self._people.check_password_of(known, form.get("password", ""), address=self.address_of(request))
        if not person.password:
            _check_typed(form, person)
        gone = await self._people.remove(known.person, known.person.id)
        self._engine.stores.api_keys.forget()
        await self._engine.belongings.delete(gone.id)
        answer = _to("../sign-in")
        self._give(request, answer, "")
        return answer

    # ---- others' accounts

    async def people(self, request: Request) -> Response:
        """Who has an account."""
        return await self._listed(request)

    async def invite(self, request: Request, known: Known, form: Form) -> Response:
        """A link that makes somebody new."""
        days = form.get("days", "")
        seconds = min(int(days[:4]), _MOST_DAYS) * _DAY if re.fullmatch("[1-9][0-9]*", days) else 7 * _DAY
        token = await self._people.invite(known.person, form.get("role", ""), seconds=seconds)
        return await self._listed(request, token=token)

    async def role(self, request: Request, known: Known, form: Form) -> Response:
        """Another role for somebody."""
        del request
        await self._people.set_role(known.person, form.get("person", ""), form.get("role", ""))
        return _to("../people")

    async def recover(self, request: Request, known: Known, form: Form) -> Response:
        """A link that lets somebody choose a new password."""
        token = await self._people.recovery_link(known.person, form.get("person", ""))
        return await self._listed(request, token=token)

    async def end_theirs(self, request: Request, known: Known, form: Form) -> Response:
        """End all sessions of somebody."""
        await self._people.end_sessions(known.person, form.get("person", ""))
        return await self._listed(request, said="people.ended")

    async def revoke(self, request: Request, known: Known, form: Form) -> Response:
        """Let a link count no more."""
        del request
        await self._people.revoke(known.person, form.get("link", ""))
        return _to("../people")

    async def limits(self, request: Request, known: Known, form: Form) -> Response:
        """What somebody may use, where that is not what their role may."""
        del request
        await self._people.set_limits(known.person, form.get("person", ""), form)
        return _to("../people")

    async def delete(self, request: Request, known: Known, form: Form) -> Response:
        """Delete somebody with everything, where their name was typed."""
        person = await self._people.store.get(form.get("person", ""))
        _check_typed(form, person)
        gone = await self._people.remove(known.person, person.id)
        self._engine.stores.api_keys.forget()
        await self._engine.belongings.delete(gone.id)
        return await self._listed(request, said="people.gone")

    # ---- inside

    def words_of(self, request: Request) -> Words:
        """The words of the language that a request asks for."""
        return self._words(request.headers.get("accept-language", ""))

    async def _door(
        self,
        request: Request,
        status: int = 200,
        name: str = "",
        problem: str = "",
        more: Mapping[str, str] | None = None,
    ) -> Response:
        door = SignInView(
            request.headers.get("host", ""),
            name[:64],
            problem,
            guests=self._guests,
            outside=self._outside.service.name if self._outside is not None else "",
            base="../" if request.url.path.count("/") > 1 else "./",
        )
        return _page(sign_in_page(door, self.words_of(request)), status, more)

    def _link_page(
        self, request: Request, invitation: Invitation, status: int = 200, name: str = "", problem: str = ""
    ) -> Response:
        words = self.words_of(request)
        kind = "recovery" if invitation.person_id else "first" if not invitation.made_by else "invited"
        outside = self._outside.service.name if self._outside is not None and kind != "recovery" else ""
        door = SignInView(
            request.headers.get("host", ""),
            name,
            problem,
            outside=outside,
            base="../",
            link=request.path_params["token"],
        )
        return _page(link_page(kind, door, words(f"role.{invitation.role}"), words), status)

    def _link_failed(self, request: Request, error: ParlourError) -> Response:
        words = self.words_of(request)
        happened, remedy = words.error_parts(error)
        return _page(told_page(happened, remedy, words), 404 if isinstance(error, NotFoundError) else 503)

    async def refused(self, request: Request, error: ParlourError) -> Response:
        """The page to sign in, with why that did not work elsewhere."""
        status = 404 if isinstance(error, NotFoundError) else 503 if error.words_key == "openid_away" else 400
        return await self._door(request, status, problem=self.words_of(request).error(error))

    def address_of(self, request: Request) -> str:
        """What wrong passwords of a browser are counted by besides its name; "" in a Space, where all have one address.

        It is the address that a trusted proxy saw, else that of whoever connects: what a header of anybody else says
        changes nothing, so that nobody has a limit of their own for each address that they make up.
        """
        if self._settings.space_hosts and not self._settings.trusted_proxies:
            return ""
        address = client_address(request)
        if request.scope.get("relayed") == "unknown" and not self._warned:
            self._warned = True
            _log.warning(
                "Somebody signs in through %s, which PARLOUR_TRUSTED_PROXIES does not name: if that is a proxy, wrong "
                "passwords of everybody behind it are counted as one's, until it is named.",
                address,
            )
        return counted_as(address)

    def of_browser(self, request: Request) -> dict[str, str]:
        """What the browser says that it is, and the session that it has."""
        return {"browser": _browser(request), "former": self._token(request)}

    async def come_in(self, request: Request, done: SignedIn, to: str) -> Response:
        """Give the browser its session, and the person what she had as a guest."""
        guest, taken = request.scope["guest"], False
        if guest is not None:
            try:
                await self._engine.belongings.take_along(guest, done.person.id)
                taken = True
            except ParlourError as error:  # the link is spent and the session made; the next sign-in takes it along
                _log.warning("What a guest has is not taken along yet: %s", error)
        then = remembered(request.scope, self._owners.cookies)  # a program waits for this person's word
        answer = _to(to + then)
        self._give(request, answer, done.token)
        if taken:  # the guest has nothing any more: signed out, this browser is nobody's
            https = request.scope["scheme"] == "https"
            answer.headers.append("set-cookie", self._owners.cookies.header("", https=https, seconds=0))
        if then:
            answer.headers.append("set-cookie", forgetting(request.scope, self._owners.cookies))
        return answer

    def _give(self, request: Request, answer: Response, token: str) -> None:
        https = request.scope["scheme"] == "https"
        seconds = {} if token else {"seconds": 0}
        answer.headers.append("set-cookie", self._owners.cookies.header(token, SESSION, https=https, **seconds))

    def _token(self, request: Request) -> str:
        return next(self._owners.cookies.values(request.headers.get("cookie", ""), SESSION), "")

    async def _account(self, request: Request, status: int = 200, *, problem: str = "", said: str = "") -> Response:
        known: Known = request.scope["known"]
        words = self.words_of(request)
        shown = ShownAccount(
            await self._people.store.get(known.person.id),
            known.session.id,
            await self._people.store.sessions_of(known.person.id),
            problem,
            words(said, n=SHORTEST) if said else "",
            keeps=may(known.person.role, "house"),
            shares=may(known.person.role, "own") and bool(await self._engine.stores.groups.list()),
            passkeys=await self._people.store.sign_ins_of(known.person.id, PASSKEY),
        )
        return _page(account_page(shown, words), status, place=request.scope["path"])

    async def _listed(
        self, request: Request, status: int = 200, *, token: str = "", problem: str = "", said: str = ""
    ) -> Response:
        known: Known = request.scope["known"]
        words, store = self.words_of(request), self._people.store
        scheme, host = request.scope["scheme"], request.headers.get("host", "")
        everybody = await store.list()
        shown = ShownPeople(
            next((one for one in everybody if one.id == known.person.id), known.person),
            everybody,
            await self._engine.stores.use.since(f"{day_of(time.time())[:7]}-01"),
            await store.invitations(),
            await store.audit(),
            await self._engine.stores.groups.list(),
            link=f"{scheme}://{host}{self._settings.root_path}/link/{token}" if token else "",
            problem=problem,
            said=words(said) if said else "",
        )
        return _page(people_page(shown, words), status, place=request.scope["path"])

    def _mine(
        self, work: Callable[[Request, Known, Form], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        return self.answering(work, self._account)

    def _theirs(
        self, work: Callable[[Request, Known, Form], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        return self.answering(work, self._listed)

    def shown(self, markup: str, request: Request, status: int = 200) -> Response:
        """A page, at the place that was asked for."""
        return _page(markup, status, place=request.scope["path"])

    def answering(
        self,
        work: Callable[[Request, Known, Form], Awaitable[Response]],
        page: Callable[..., Awaitable[Response]],
    ) -> Callable[[Request], Awaitable[Response]]:
        """What answers a form with work, or with a page that says what went wrong.

        Its address stands above that page, and may be opened again: that leads to the page of the form.
        """

        async def answer(request: Request) -> Response:
            if request.method != "POST":
                return _to(f"../{request.url.path.split('/')[-2]}")
            form = await _form(request)
            try:
                return await work(request, request.scope["known"], form)
            except ParlourError as error:
                status = 404 if isinstance(error, NotFoundError) else 503 if type(error) is StorageError else 400
                if isinstance(error, TooManyRequestsError):
                    status = 429
                return await page(request, status, problem=self.words_of(request).error(error))

        return answer


def accounts_of(context: WebContext) -> PeopleRoutes | None:
    """The routes about people; `None` where nobody has an account."""
    settings = context.settings
    if not settings.has_accounts:
        return None
    owners = owners_of(settings, settings.signing_secret())
    return PeopleRoutes(context, owners, newcomers_of(context.engine.limits, settings))


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form; none where it is too long, or no form."""
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return {}
    body = await read_body(request.receive, _FORM_LIMIT)
    try:
        pairs = parse_qsl((body or b"").decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=10)
    except ValueError:
        return {}
    return dict(pairs)


def _check_typed(form: Form, person: Person) -> None:
    """Raises ParlourError: the name of who is to be deleted was not typed."""
    if form.get("name", "").strip() != person.name:
        raise ParlourError("The name was not typed.", key="name_not_typed", name=person.name)


def _to(place: str) -> RedirectResponse:
    return RedirectResponse(place, 303, headers=_PRIVATE)


def _page(markup: str, status: int = 200, more: Mapping[str, str] | None = None, place: str = "") -> Response:
    if place.count("/") > 1:  # the answer to a form: links of the page are relative to what it stands at
        markup = markup.replace("<head>", '<head><base href="../">', 1)
    return HTMLResponse(markup, status, headers={**_PRIVATE, **(more or {})})


def _browser(request: Request) -> str:
    """What a browser says that it is, in two words."""
    said = request.headers.get("user-agent", "")
    name = next((name for sign, name in _BROWSERS if sign in said), "")
    system = next((name for name in _SYSTEMS if name in said), "").replace("Mac OS X", "macOS")
    return ", ".join(part for part in (name, system) if part)
