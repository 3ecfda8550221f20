"""Other programs that somebody lets in at a page: what they read and ask, and the page where a person agrees."""

from __future__ import annotations

from dataclasses import asdict
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from core.errors import ParlourError, TooManyRequestsError
from core.mcp import app_addresses as at
from core.storage.api_keys import App
from core.storage.app_tokens import NewApp
from webui.middleware.answers import read_body
from webui.middleware.proxy import client_address, counted_as
from webui.panels.consent import ConsentView, consent_page, no_consent_page

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from core.mcp.apps import Apps, AskedFor
    from core.storage.api_keys import Scope
    from webui.context import WebContext
    from webui.words import Words

_LASTS: Final = 600  # seconds in which a question is answered
_A_MINUTE: Final = {"register": 60, "token": 300}  # of one address, behind which many people may be
_FORM_LIMIT: Final = 16 * 1024
_ALL_MAY_READ: Final = {"cache-control": "public, max-age=300"}
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'; base-uri 'none'; "
    "form-action 'self' BACK; frame-ancestors 'none'"
)


class AppRoutes:
    """Routes about other programs."""

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._root = context.settings.root_path
        self._words = context.words
        self._rates = {
            name: context.engine.limits.rate(
                f"apps_{name}", most, 60.0, error="too_many_requests", message="Too many requests of programs."
            )
            for name, most in _A_MINUTE.items()
        }
        secret = context.settings.signing_secret()
        self._tickets = URLSafeTimedSerializer(
            secret, salt="parlour.consent", signer_kwargs={"digest_method": sha256, "key_derivation": "hmac"}
        )

    def table(self) -> list[BaseRoute]:
        """All of them."""
        about = {at.ABOUT_RESOURCE: at.about_resource, f"{at.ABOUT_RESOURCE}{at.MCP_PATH}": at.about_resource}
        about |= {at.ABOUT_SERVER: at.about_server}
        return [
            *(Route(path, self._told(of), methods=["GET"]) for path, of in about.items()),
            Route(at.REGISTER, self._safely(self.register, "register"), methods=["POST"]),
            Route(at.TOKEN, self._safely(self.token, "token"), methods=["POST"]),
            Route(at.REVOKE, self._safely(self.revoke, "token"), methods=["POST"]),
            Route(at.AUTHORIZE, self.ask, methods=["GET"]),
            Route(at.AUTHORIZE, self.answer, methods=["POST"]),
        ]

    # ---- what programs ask

    async def register(self, request: Request, base: str) -> Response:
        """A program introduces itself."""
        del base
        return await self._apps.register(request)

    async def token(self, request: Request, base: str) -> Response:
        """A program fetches its tokens."""
        return await self._apps.token(request, base)

    async def revoke(self, request: Request, base: str) -> Response:
        """A program says that it is over."""
        del base
        return await self._apps.revoke(request)

    # ---- what a person is asked

    async def ask(self, request: Request) -> Response:
        """The page where a person lets a program in, or does not."""
        words, base = self._of(request), at.base_of(request.scope, self._root)
        try:
            self._check(request, base)
            asked = await self._apps.asked(request.url.query, base)
        except ParlourError as error:
            return self._refused(error, words)
        known = request.scope.get("known")
        view = ConsentView(
            asked.client.name,
            asked.client.site,
            self._back_of(asked),
            known.person.name if known is not None else "",
            urlsplit(base).netloc,
            asked.scopes,
            str(self._tickets.dumps({"who": _who(request), "base": base, **_kept(asked)})),
        )
        return _page(consent_page(view, words), 200, _origin_of(asked.redirect))

    async def answer(self, request: Request) -> Response:
        """What the person said: the program is sent back with it."""
        words, base = self._of(request), at.base_of(request.scope, self._root)
        try:
            self._check(request, base)
            form = parse_qsl((await read_body(request.receive, _FORM_LIMIT) or b"").decode("utf-8", "replace"))
            asked = self._asked(dict(form).get("ticket", ""), request, base)
            ticked = {value for name, value in form if name == "scope"}
            scopes: tuple[Scope, ...] = tuple(one for one in asked.scopes if one in ticked)
            if ("answer", "yes") not in form:
                told = {"error": "access_denied", "error_description": "The person did not agree."}
            elif not scopes:
                raise ParlourError("Nothing was chosen.", hint="Choose what it may do.", key="app_nothing")
            else:
                app = App(asked.client.id, asked.resource, self._back_of(asked))
                wanted = NewApp(asked.client.name, app, scopes, _asked_again(asked))
                told = {"code": await self._engine.stores.of(request.scope["owner"]).apps.let_in(wanted)}
        except ParlourError as error:
            return self._refused(error, words)
        headers = {"cache-control": "no-store", "referrer-policy": "no-referrer"}
        return RedirectResponse(asked.back(base, **told), 303, headers)

    # ---- inside

    @property
    def _apps(self) -> Apps:
        return self._engine.outward.apps

    def _of(self, request: Request) -> Words:
        return self._words(request.headers.get("accept-language", ""))

    def _check(self, request: Request, base: str) -> None:
        """Whether whoever is here may let programs in. Raises ParlourError."""
        owner = request.scope["owner"]
        if not at.is_safe(base):
            hint = "Open Parlour over HTTPS, or on the machine that it runs on."
            raise ParlourError("Programs are let in over HTTPS alone.", hint=hint, key="app_unsafe")
        if owner is None:
            hint = "Open Parlour in this browser, then let the program begin anew."
            raise ParlourError("This browser is nobody's here.", hint=hint, key="app_nobody")
        if not self._engine.outward.lets_in(owner, visitor=bool(request.scope.get("visitor"))):
            hint = "Begin on the machine that Parlour runs on, or ask who looks after it for an account."
            raise ParlourError("Programs are not let in for you here.", hint=hint, key="app_not_here")

    def _asked(self, ticket: str, request: Request, base: str) -> AskedFor:
        """What this person was asked here, not long ago. Raises ParlourError (key `app_ticket`)."""
        from core.mcp.app_clients import Client
        from core.mcp.apps import AskedFor

        try:
            kept: dict[str, Any] = self._tickets.loads(ticket, max_age=_LASTS)
        except BadData:
            kept = {}
        if (kept.get("who"), kept.get("base")) != (_who(request), base):
            hint = "Let the program begin anew."
            raise ParlourError("This page was not for you, or it is too old.", hint=hint, key="app_ticket")
        program: dict[str, Any] = {**kept["client"], "redirects": tuple(kept["client"]["redirects"])}
        told: dict[str, Any] = {**kept["asked"], "scopes": tuple(kept["asked"]["scopes"])}
        return AskedFor(Client(**program), **told)

    def _back_of(self, asked: AskedFor) -> str:
        from core.mcp.app_clients import back_of

        return back_of(asked.redirect)

    def _refused(self, error: ParlourError, words: Words) -> Response:
        happened, remedy = words.error_parts(error)
        back = str(error.details.get("back", ""))
        return _page(no_consent_page(happened, remedy, back, words), 400)

    def _told(self, of: Callable[[str], dict[str, Any]]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            base = at.base_of(request.scope, self._root)
            return JSONResponse(of(base), headers=_ALL_MAY_READ) if at.is_safe(base) else Response(status_code=404)

        return answer

    def _safely(
        self, work: Callable[[Request, str], Awaitable[Response]], counts: str
    ) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            base = at.base_of(request.scope, self._root)
            if not at.is_safe(base):
                return _error("invalid_request", "Programs are let in over HTTPS alone.", 400)
            try:
                await self._rates[counts].take(counted_as(client_address(request)))
                return await work(request, base)
            except TooManyRequestsError as error:
                answer = _error("temporarily_unavailable", str(error), 429)
                answer.headers["retry-after"] = str(max(1, error.retry_after))
                return answer
            except ParlourError as error:
                return _error("server_error", str(error), 503)

        return answer


def _who(request: Request) -> list[str]:
    """Whose answer counts: that of the person and the session that the page was shown to."""
    known = request.scope.get("known")
    return [str(request.scope["owner"]), known.session.id if known is not None else ""]


def _kept(asked: AskedFor) -> dict[str, Any]:
    told = asdict(asked)
    client = told.pop("client")
    client["redirects"] = [asked.redirect]  # one may be long, all of them many
    return {"client": client, "asked": told}


def _asked_again(asked: AskedFor) -> dict[str, Any]:
    return {"redirect": asked.redirect, "given": asked.given, "challenge": asked.challenge}


def _origin_of(redirect: str) -> str:
    """What the answer to the form may lead on to, as a policy names it."""
    parts = urlsplit(redirect)
    if parts.scheme not in {"http", "https"} or ":" in (parts.hostname or ""):
        return f"{parts.scheme}:"
    return f"{parts.scheme}://{parts.netloc}"


def _page(markup: str, status: int, back: str = "") -> Response:
    headers = {
        "cache-control": "no-store",
        "content-security-policy": _POLICY.replace("BACK", back),
        "x-frame-options": "DENY",
    }
    return HTMLResponse(markup, status, headers)


def _error(error: str, description: str, status: int) -> Response:
    return JSONResponse({"error": error, "error_description": description}, status, {"cache-control": "no-store"})
