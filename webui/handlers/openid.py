"""Signing in by another service: the browser is sent there, and comes back with who it is."""

from __future__ import annotations

import json
from dataclasses import asdict
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from itsdangerous import BadSignature, URLSafeSerializer
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from core.errors import ParlourError
from core.people.openid import Begun, OpenId
from core.people.outside import sign_in_outside

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from core.people.people import SignedIn
    from core.settings import Settings
    from core.storage.people import Role
    from webui.auth import Cookies
    from webui.handlers.sign_in import SignInPages

_KIND: Final = "-openid"
_LASTS: Final = 600
BACK: Final = "/login/callback"
"""Where the service sends browsers; Spaces are registered with this very path."""


class OpenIdRoutes:
    """`GET /sign-in/openid` leads to the service, `GET /login/callback` takes who comes back.

    Args:
        service: The one that people may sign in by.
        pages: The pages that say what went wrong, and let in.
        cookies: How cookies of this server are named and written.
    """

    def __init__(self, service: OpenId, settings: Settings, pages: SignInPages, cookies: Cookies) -> None:
        self.service = service
        self._newcomers: Role | None = settings.oidc_newcomers
        self._root = settings.root_path
        self._pages = pages
        self._cookies = cookies
        self._kept = URLSafeSerializer(
            settings.signing_secret(), salt="parlour.openid", signer_kwargs={"digest_method": sha256}
        )

    def table(self) -> list[BaseRoute]:
        """Both."""
        return [
            Route("/sign-in/openid", self.begin, methods=["GET"]),
            Route(BACK, self._answering(self.come_back), methods=["GET"]),
        ]

    async def begin(self, request: Request) -> Response:
        """Lead to the service; the browser keeps, signed, what it has to bring back."""
        back = f"{request.scope['scheme']}://{request.headers.get('host', '')}{self._root}{BACK}"
        try:
            address, begun = await self.service.begin(back, request.query_params.get("link", "")[:200])
        except ParlourError as error:
            return await self._pages.refused(request, error)
        answer = RedirectResponse(address, 303, headers={"cache-control": "no-store"})
        self._keep(request, answer, str(self._kept.dumps(json.dumps(asdict(begun)))))
        return answer

    async def come_back(self, request: Request) -> SignedIn:
        """Who came back. Raises ParlourError."""
        account = await self.service.finish(dict(request.query_params), self._begun(request))
        return await sign_in_outside(
            self._pages.people_here,
            account,
            link=self._begun(request).link,
            newcomers=self._newcomers,
            **self._pages.of_browser(request),
        )

    def _begun(self, request: Request) -> Begun:
        for value in self._cookies.values(request.headers.get("cookie", ""), _KIND):
            try:
                return Begun(**json.loads(self._kept.loads(value)))
            except (BadSignature, ValueError, TypeError):
                continue
        return Begun("", "", "", "", "", 0.0)

    def _answering(self, work: Callable[[Request], Awaitable[SignedIn]]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                done = await work(request)
            except ParlourError as error:
                answered = await self._pages.refused(request, error)
            else:
                answered = await self._pages.come_in(request, done, "../")
            self._keep(request, answered, "")  # it counts once, whatever came of it
            return answered

        return answer

    def _keep(self, request: Request, answer: Response, value: str) -> None:
        https = request.scope["scheme"] == "https"
        seconds = _LASTS if value else 0
        answer.headers.append("set-cookie", self._cookies.header(value, _KIND, https=https, seconds=seconds))


def service_of(settings: Settings) -> OpenId | None:
    """The service that the settings name; `None` where they name none."""
    named = settings.openid
    return OpenId(*named) if named is not None else None
