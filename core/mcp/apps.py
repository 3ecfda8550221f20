"""Letting other programs in by OAuth: what a program asks for, and the tokens that it gets once somebody agreed.

The `mcp` package's handlers check codes, verifiers and secrets; here stands what they leave to their user.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import AuthenticationError, ClientAuthenticator
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    IdentityAssertionParams,
    RefreshToken,
    RegistrationError,
    TokenError,
)
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from core.errors import ParlourError
from core.mcp.app_addresses import APP_SCOPES, MCP_PATH, is_resource
from core.mcp.app_clients import METHODS, Client, Clients

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal

    from starlette.types import Message

    from core.storage.api_keys import Scope
    from core.storage.app_tokens import AllApps, Given, KeptToken

_LONGEST_BODY: Final = 16 * 1024
_LONGEST_ASKED: Final = 8 * 1024
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_NO_STORE: Final = {"cache-control": "no-store", "pragma": "no-cache"}
_GRANTS: Final[Mapping[str, tuple[Literal["code", "refresh"], str]]] = {
    "authorization_code": ("code", "code"),
    "refresh_token": ("refresh", "refresh_token"),
}


@dataclass(frozen=True, slots=True)
class AskedFor:
    """What a program asks for.

    Args:
        client: The program.
        redirect: Where it is sent back to.
        given: Whether it named that address.
        challenge: Whoever fetches the tokens must know what this was made of.
        state: What it gets back as it is; `None` where it gave nothing.
        scopes: What for.
        resource: The address of the door that it wants to ask at.
    """

    client: Client
    redirect: str
    given: bool
    challenge: str
    state: str | None
    scopes: tuple[Scope, ...]
    resource: str

    def back(self, base: str, **told: str) -> str:
        """The address that leads back to the program, with what it is told."""
        return _back(self.redirect, base, self.state, told)


# The addresses as the program wrote them: they are compared letter by letter (RFC 9700, 4.1.3). The package has them
# rewritten, with hosts in small letters and a path where there is none.
_NAMED: ContextVar[Sequence[str]] = ContextVar("the addresses that a program names", default=())


def _redirects(body: bytes) -> list[str]:
    """The addresses that a program names; none where the package is to say what is wrong."""
    try:
        said: object = json.loads(body)
    except (ValueError, RecursionError):
        return []
    named = cast("dict[str, object]", said).get("redirect_uris") if isinstance(said, dict) else None
    each = cast("list[object]", named) if isinstance(named, list) else []
    return [one for one in each if isinstance(one, str)]


class Apps:
    """Lets programs in.

    Args:
        kept: Codes and tokens.
        secret: The installation's.
    """

    def __init__(self, kept: AllApps, secret: str) -> None:
        self._kept = kept
        self.clients = Clients(secret)
        provider: Any = _Provider(kept, self.clients)
        self._who = ClientAuthenticator(provider)
        self._tokens = TokenHandler(provider, self._who)
        self._registering = RegistrationHandler(provider, ClientRegistrationOptions(enabled=True))

    async def asked(self, query: str, base: str) -> AskedFor:
        """What a program asks for by the query of an address.

        Args:
            base: The address of this Parlour.

        Raises:
            ParlourError: key `app_asked`: the program can be told, at the address `back` in the details; `app_unknown`,
                `app_site`, `app_redirect`, `app_twice` or `app_says`: it cannot.
        """
        if len(query) > _LONGEST_ASKED:
            raise ParlourError("The program says too much.", hint="Tell who makes it.", key="app_says")
        pairs = parse_qsl(query, keep_blank_values=True)
        params = dict(pairs)
        counts = Counter(name for name, _ in pairs if name != "resource")
        if any(count > 1 for count in counts.values()):
            raise ParlourError("The program says something twice.", hint="Tell who makes it.", key="app_twice")
        client = await self.clients.get(params.get("client_id", ""))
        redirect = client.redirect(params.get("redirect_uri"))
        if redirect is None:
            hint = "Nobody is sent there. Let the program begin anew, or tell who makes it."
            raise ParlourError("The program did not name this address as its own.", hint=hint, key="app_redirect")
        state = params.get("state")

        def wrong(code: str, message: str) -> ParlourError:
            back = _back(redirect, base, state, {"error": code, "error_description": message})
            return ParlourError(message, hint="Tell who makes the program.", key="app_asked", code=code, back=back)

        if params.get("response_type") != "code":
            raise wrong("unsupported_response_type", "The response_type must be code.")
        if params.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(params.get("code_challenge", "")):
            raise wrong("invalid_request", "A code_challenge with the method S256 is needed.")
        resources = [value for name, value in pairs if name == "resource"]
        if not all(is_resource(one, base) for one in resources):
            raise wrong("invalid_target", f"The resource must be {base}{MCP_PATH}.")
        named = params.get("scope", "").split()
        scopes: tuple[Scope, ...] = tuple(one for one in APP_SCOPES if one in named or not named)
        if not scopes:
            raise wrong("invalid_scope", f"The scopes are {' and '.join(APP_SCOPES)}.")
        return AskedFor(
            client, redirect, "redirect_uri" in params, params["code_challenge"], state, scopes, f"{base}{MCP_PATH}"
        )

    async def register(self, request: Request) -> Response:
        """`POST`: a program introduces itself (RFC 7591)."""
        body = await _body(request)
        if body is None:
            return _said("invalid_client_metadata", "The body is too long.", 413)
        named = _NAMED.set(_redirects(body))
        try:
            return _unkept(await self._registering.handle(_again(request, body)))
        finally:
            _NAMED.reset(named)

    async def token(self, request: Request, base: str) -> Response:
        """`POST`: tokens for a code, or for the one that they are renewed by.

        Args:
            base: The address of this Parlour.
        """
        form = await self._form(request)
        if isinstance(form, Response):
            return form
        kind, name = _GRANTS.get(form.get("grant_type", ""), ("", ""))
        if not kind:
            return _said("unsupported_grant_type", f"Known grant types: {', '.join(_GRANTS)}.")
        found = await self._kept.find(kind, form.get(name, ""))
        if found is None or found.app.id != form.get("client_id", ""):
            # Before anything else: nobody but who has a token makes this machine ask another one's site.
            return _said("invalid_grant", "This counts no more: its time is up, it was used, or it never was one.")
        resource = form.get("resource", "")
        if not is_resource(found.app.resource, base) or (resource and not is_resource(resource, base)):
            return _said("invalid_target", "It was given for another address.")
        return _unkept(await self._tokens.handle(_again(request, urlencode(form).encode())))

    async def revoke(self, request: Request) -> Response:
        """`POST`: a program is let in no more (RFC 7009), whichever of its tokens it shows."""
        form = await self._form(request)
        if isinstance(form, Response):
            return form
        shown = form.get("token", "")
        each = [await self._kept.find("access", shown), await self._kept.find("refresh", shown)]
        found = next((one for one in each if one is not None and one.app.id == form.get("client_id", "")), None)
        if found is not None:
            try:
                await self._who.authenticate_request(_again(request, urlencode(form).encode()))
            except AuthenticationError as error:
                return _said("invalid_client", error.message, 401)
            await self._kept.end(found.key.id)
        return Response(status_code=200, headers=_NO_STORE)

    async def let_in(self, token: str) -> KeptToken | None:
        """Whom a token lets in, and for what; `None` where it is nobody's. Raises StorageError."""
        return await self._kept.find("access", token)

    async def _form(self, request: Request) -> dict[str, str] | Response:
        """The fields of a form; the program's name stands in the header as well, where it shows its secret there."""
        body = await _body(request)
        kind = request.headers.get("content-type", "")
        if body is None or not kind.startswith("application/x-www-form-urlencoded"):
            return _said("invalid_request", "The body must be a form of at most 16 KB.")
        try:
            pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=50)
        except ValueError:
            return _said("invalid_request", "The body is no form.")
        form = dict(pairs)
        if len(form) != len(pairs):
            return _said("invalid_request", "Something stands there twice.")
        return {"client_id": _named_in_header(request), **form}


class _Provider:
    """What the package's handlers ask."""

    def __init__(self, kept: AllApps, clients: Clients) -> None:
        self._kept = kept
        self._clients = clients

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        try:
            client = await self._clients.get(client_id)
        except ParlourError:
            return None
        return OAuthClientInformationFull(
            client_id=client.id,
            client_secret=self._clients.secret_of(client),
            client_name=client.name,
            token_endpoint_auth_method=client.method,
        )

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Give it the name that says all; the handler answers with what stands in `client_info` then."""
        method = client_info.token_endpoint_auth_method or "none"
        if method not in METHODS:
            raise RegistrationError("invalid_client_metadata", f"Known methods: {', '.join(METHODS)}.")
        redirects = [*_NAMED.get()] or [str(one) for one in client_info.redirect_uris or ()]
        try:
            client = self._clients.introduce(client_info.client_name or _host(redirects), redirects, method)
        except ParlourError as error:
            code = "invalid_redirect_uri" if error.words_key == "app_redirect" else "invalid_client_metadata"
            raise RegistrationError(code, str(error)) from error
        client_info.client_id, client_info.client_name = client.id, client.name
        client_info.client_secret = self._clients.secret_of(client)
        client_info.scope = " ".join(APP_SCOPES)
        client_info.grant_types = ["authorization_code", "refresh_token"]

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        found = await self._usable("code", authorization_code, client)
        if found is None:
            return None
        asked = found.about
        return AuthorizationCode(
            code=authorization_code,
            scopes=list(found.scopes),
            expires_at=found.expires_at,
            client_id=found.app.id,
            code_challenge=asked["challenge"],
            redirect_uri=AnyUrl(asked["redirect"]),
            redirect_uri_provided_explicitly=asked["given"],
            resource=found.app.resource,
            subject=found.key.owner_id,
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del client
        code = authorization_code
        return _told(await self._kept.exchange("code", code.code, code.scopes))

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        found = await self._usable("refresh", refresh_token, client)
        if found is None:
            return None
        return RefreshToken(
            token=refresh_token,
            client_id=found.app.id,
            scopes=list(found.scopes),
            expires_at=int(found.expires_at),
            resource=found.app.resource,
            subject=found.key.owner_id,
        )

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del client
        return _told(await self._kept.exchange("refresh", refresh_token.token, scopes))

    async def load_access_token(self, token: str) -> AccessToken | None:
        del token  # no handler that is used here asks for it
        return None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        del token

    async def exchange_identity_assertion(
        self, client: OAuthClientInformationFull, params: IdentityAssertionParams
    ) -> OAuthToken:
        del client, params
        raise TokenError("unsupported_grant_type")

    async def _usable(
        self, kind: Literal["code", "refresh"], token: str, client: OAuthClientInformationFull
    ) -> KeptToken | None:
        """What is kept of it. Where it was used before, somebody else has it too: what was given for it ends."""
        found = await self._kept.find(kind, token)
        if found is None or found.app.id != client.client_id:
            return None
        if found.is_spent:
            await self._kept.end(found.key.id)
            return None
        return found


def _told(given: Given | None) -> OAuthToken:
    if given is None:
        raise TokenError("invalid_grant", "This counts no more: it was used before.")
    return OAuthToken(
        access_token=given.access,
        refresh_token=given.refresh,
        expires_in=given.seconds,
        scope=" ".join(given.scopes),
    )


def _back(redirect: str, base: str, state: str | None, told: Mapping[str, str]) -> str:
    """The program's address with what it is told, and by whom (RFC 9207)."""
    more = urlencode({**told, **({"state": state} if state is not None else {}), "iss": base})
    begins = "" if redirect.endswith(("?", "&")) else "&" if "?" in redirect else "?"  # there is no fragment in it
    return f"{redirect}{begins}{more}"


def _host(redirects: list[str]) -> str:
    """What a program is called that has no name."""
    return next((urlsplit(one).hostname or one for one in redirects), "")


def _named_in_header(request: Request) -> str:
    kind, _, shown = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "basic":
        return ""
    try:
        return unquote(b64decode(shown, validate=True).decode().partition(":")[0])
    except ValueError:
        return ""


async def _body(request: Request) -> bytes | None:
    """The whole body; `None` where it is too long, or whoever asked has left."""
    raw = b""
    try:
        async for piece in request.stream():
            raw += piece
            if len(raw) > _LONGEST_BODY:
                return None
    except ClientDisconnect:
        return None
    return raw


def _again(request: Request, body: bytes) -> Request:
    """The request, for who reads its body by itself."""
    kept = [(name, value) for name, value in request.scope["headers"] if name != b"content-length"]

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request({**request.scope, "headers": kept}, receive)


def _unkept(answer: Response) -> Response:
    answer.headers.update(_NO_STORE)
    return answer


def _said(error: str, description: str, status: int = 400) -> Response:
    return JSONResponse({"error": error, "error_description": description}, status, _NO_STORE)
