"""Adding passkeys, and signing in by one: the page's script passes on what the browser's own dialog says."""

from __future__ import annotations

import json
from dataclasses import asdict
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from itsdangerous import BadSignature, URLSafeSerializer
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from core.errors import ParlourError, StorageError, TooManyRequestsError
from core.people.passkeys import ISSUER, Challenge, Passkeys, Place
from webui.auth import host_of
from webui.context import json_body

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from core.settings import Settings
    from webui.auth import Cookies
    from webui.handlers.sign_in import SignInPages

_KIND: Final = "-passkey"
_LASTS: Final = 300
_PRIVATE: Final = {"cache-control": "no-store"}


class PasskeyRoutes:
    """`POST /account/passkey/begin`, `add` and `remove`, `POST /sign-in/passkey/begin` and `done`: JSON both ways.

    Args:
        pages: What lets in.
        cookies: How cookies of this server are named and written.
    """

    def __init__(self, settings: Settings, pages: SignInPages, cookies: Cookies) -> None:
        self._pages = pages
        self._passkeys = Passkeys(pages.people_here)
        self._cookies = cookies
        self._kept = URLSafeSerializer(
            settings.signing_secret(), salt="parlour.passkey", signer_kwargs={"digest_method": sha256}
        )

    def table(self) -> list[BaseRoute]:
        """All of them."""
        works = {
            "/account/passkey/begin": self.begin_adding,
            "/account/passkey/add": self.add,
            "/account/passkey/remove": self.remove,
            "/sign-in/passkey/begin": self.begin,
            "/sign-in/passkey/done": self.done,
        }
        return [Route(path, self._answering(work), methods=["POST"]) for path, work in works.items()]

    async def begin_adding(self, request: Request) -> Response:
        """What the browser makes a passkey of, for who knows the password: a browser left open is not enough."""
        typed = _password(await json_body(request) or {})
        people, known = self._pages.people_here, request.scope["known"]
        person = await people.check_password_of(known, typed, address=self._pages.address_of(request))
        options, challenge = await self._passkeys.to_add(person, _place(request))
        return self._asked(request, options, challenge)

    async def add(self, request: Request) -> Response:
        """Keep what it made."""
        given = await json_body(request) or {}
        await self._passkeys.add(request.scope["known"], given, self._challenge(request), _place(request))
        return self._over(request, JSONResponse({"to": "./account"}, headers=_PRIVATE))

    async def remove(self, request: Request) -> Response:
        """Forget one of one's own, for who knows the password or signed in within the last ten minutes."""
        given = await json_body(request) or {}
        people, known = self._pages.people_here, request.scope["known"]
        await people.check_there(known, _password(given), address=self._pages.address_of(request))
        await people.store.remove_sign_in(ISSUER, str(given.get("id", "")), known.person.id)
        return JSONResponse({"to": "./account"}, headers=_PRIVATE)

    async def begin(self, request: Request) -> Response:
        """What a device is asked to sign."""
        return self._asked(request, *self._passkeys.to_sign_in(_place(request)))

    async def done(self, request: Request) -> Response:
        """Sign in by what it signed."""
        given = await json_body(request) or {}
        person = await self._passkeys.signed_in(given, self._challenge(request), _place(request))
        done = await self._pages.people_here.open_session(person, **self._pages.of_browser(request))
        led = await self._pages.come_in(request, done, "./")
        answer = JSONResponse({"to": led.headers["location"]}, headers=_PRIVATE)
        for cookie in led.headers.getlist("set-cookie"):
            answer.headers.append("set-cookie", cookie)
        return self._over(request, answer)

    # ---- inside

    def _asked(self, request: Request, options: str, challenge: Challenge) -> Response:
        answer = JSONResponse(json.loads(options), headers=_PRIVATE)
        self._keep(request, answer, str(self._kept.dumps(json.dumps(asdict(challenge)))))
        return answer

    def _over(self, request: Request, answer: Response) -> Response:
        self._keep(request, answer, "")
        return answer

    def _challenge(self, request: Request) -> Challenge:
        for value in self._cookies.values(request.headers.get("cookie", ""), _KIND):
            try:
                return Challenge(**json.loads(self._kept.loads(value)))
            except (BadSignature, ValueError, TypeError):
                continue
        return Challenge("", 0.0)

    def _keep(self, request: Request, answer: Response, value: str) -> None:
        https = request.scope["scheme"] == "https"
        seconds = _LASTS if value else 0
        answer.headers.append("set-cookie", self._cookies.header(value, _KIND, https=https, seconds=seconds))

    def _answering(self, work: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                return await work(request)
            except ParlourError as error:
                said = self._pages.words_of(request).error(error)
                status = 503 if type(error) is StorageError else 400
                if isinstance(error, TooManyRequestsError):
                    status = 429
                return self._over(request, JSONResponse({"failed": said}, status, _PRIVATE))

        return answer


def _password(given: Mapping[str, Any]) -> str:
    password = given.get("password")
    return password if isinstance(password, str) else ""


def _place(request: Request) -> Place:
    host = request.headers.get("host", "")
    return Place(host_of(host), f"{request.scope['scheme']}://{host}")
