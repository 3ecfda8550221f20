"""Signing in to a server (OAuth 2.1) by the `mcp` package, and what that package leaves to its user.

Whom to ask; which addresses the server's description may lead to; that an expired token is renewed after a restart too;
that nothing secret reaches a log.
"""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError
from mcp.client.auth.utils import extract_field_from_www_auth
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata
from pydantic import AnyUrl

from core.errors import ServerUnreachableError, SignInNeededError
from core.mcp.forms import PATIENCE
from core.mcp.web import OutOfReachError, guarded_client
from core.net.addresses import Reach, is_own, is_public, system_addresses

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from contextlib import AbstractContextManager

    from mcp.client.auth import TokenStorage
    from mcp.shared.auth import OAuthToken

    from core.mcp.journal import ServerLog
    from core.mcp.settings import ServerSettings, StaticClient
    from core.mcp.sign_in import Ask, SignIn


_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_WHY = re.compile(r'"error"\s*:\s*"([a-z_]{1,40})"')
_WORD = re.compile(r"[a-z_]{1,40}")
_TOO_MUCH, _BROKEN = 429, 500
_REFUSED, _FORBIDDEN = 401, 403


class _NoTraces(logging.Filter):
    """The package logs what went wrong with all of it: answers that hold tokens, and states."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not record.exc_info


logging.getLogger("mcp.client.auth.oauth2").addFilter(_NoTraces())


class _RefreshRefusedError(Exception):
    """The kept sign-in is worth nothing any more, and somebody is there to make another."""


class _Attempt:
    """One request's way through.

    Args:
        opened: Closes what listens for an answer.
    """

    def __init__(self, opened: AsyncExitStack) -> None:
        self.opened = opened
        self.ask: Ask | None = None  # where the user is to be asked
        self.address = ""
        self.renewed: httpx2.Response | None = None  # the answer that renewed a token, which is not asked for again
        self.done = False


class Authorization(OAuthClientProvider):
    """Signs the requests to one server.

    Args:
        name: The server's name, for messages.
        settings: How it is reached.
        sign_in: Who can be asked, and where tokens are kept.
        reach: How far HTTP may go; where it is `None`, a server of the open internet leads to no private address.
        journal: Must not repeat tokens.
        waiting: While it is open, nobody's time runs out.
    """

    def __init__(
        self,
        name: str,
        settings: ServerSettings,
        *,
        sign_in: SignIn,
        reach: Reach | None,
        journal: ServerLog,
        waiting: Callable[[], AbstractContextManager[None]],
    ) -> None:
        url = settings.url or ""
        self._name = name
        self._client = settings.oauth
        self._sign_in = sign_in
        self._reach = reach
        self._waiting = waiting
        self._is_own = False  # whether the server is one of this machine or its network
        self._attempt = _Attempt(AsyncExitStack())  # the one under way, where there is any
        metadata = OAuthClientMetadata(redirect_uris=None, client_name="Parlour")
        storage = _Storage(sign_in.tokens(url), settings.oauth, journal)
        super().__init__(url, metadata, storage, self._to_open, self._answer)

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request, signed; where it is refused, once more with a token that is new.

        It is sent outside of the package's lock, within which every call would wait for the end of all others.

        Raises:
            SignInNeededError: Nobody has signed in, nobody is there, or it did not work; its key says which.
            ServerUnreachableError: The service that signs in cannot be reached.
        """
        refused: httpx2.Response | None = None
        while not await self._is_signed_anew(request, refused):
            refused = yield request
            if not _wants_sign_in(refused):
                return
        yield request

    async def _is_signed_anew(self, request: httpx2.Request, refused: httpx2.Response | None) -> bool:
        """Sign a request, and say whether that was by a token that came for it: if that is refused, so be it.

        Args:
            request: Gets its header.
            refused: What came of it before.
        """
        context = self.context
        if refused is None and self._initialized and (context.is_token_valid() or not context.can_refresh_token()):
            if context.is_token_valid():
                self._add_auth_header(request)
            return False
        async with AsyncExitStack() as opened:
            try:
                return await self._through(request, refused, _Attempt(opened))
            except (OAuthFlowError, httpx2.InvalidURL, ValueError) as error:
                raise self._failure(error) from None  # without its cause, which may hold tokens

    async def _through(self, request: httpx2.Request, refused: httpx2.Response | None, attempt: _Attempt) -> bool:
        """The package's flow up to where it sends the request, or further where that was refused with its last token.

        What it asks besides goes through a guarded client of its own.
        """
        sent = request.headers.get("authorization")
        flow = super().async_auth_flow(request)
        try:
            outgoing = await anext(flow)
            self._attempt = attempt  # from here on the package holds its lock: there is one attempt at a time
            while outgoing is not request or not attempt.done:
                if outgoing is request:
                    if refused is None or request.headers.get("authorization") != sent:
                        return False  # another request has got a token meanwhile
                    await self._challenged(refused, attempt)
                    response = refused
                elif attempt.renewed is not None and outgoing is attempt.renewed.request:
                    response = attempt.renewed
                else:
                    response = await self._beside(outgoing)
                try:
                    outgoing = await flow.asend(response)
                except _RefreshRefusedError:
                    flow = super().async_auth_flow(request)
                    outgoing = await anext(flow)
            return True
        finally:
            await flow.aclose()

    async def _challenged(self, response: httpx2.Response, attempt: _Attempt) -> None:
        """The server wants a sign-in, or more rights: find out whether somebody can be asked, before anything else."""
        self._is_own = self._reach is None and await _answered_here(response)
        if response.status_code == _REFUSED and self.context.can_refresh_token():
            return
        if not self._sign_in.somebody_is_there:
            raise self._needed()
        redirect, attempt.ask = await attempt.opened.enter_async_context(self._sign_in.listening())
        metadata = self.context.client_metadata
        metadata.redirect_uris = [AnyUrl(redirect)]
        metadata.application_type = "native" if urlsplit(redirect).hostname in _LOOPBACK else "web"
        if self._client is None:
            self.context.client_info = None  # registered anew: it may have been for another address

    async def _perform_authorization(self) -> httpx2.Request:
        """A token: by renewing the one that is kept, else by asking the user."""
        attempt, context = self._attempt, self.context
        self._choose_way_to_send_secret()
        if attempt.ask is None:
            kept = await context.storage.get_tokens()
            if kept is not None and kept.refresh_token:  # another session with the same sign-in may have renewed it
                context.current_tokens = kept
            response = await self._beside(await self._refresh_token())
            if await self._handle_refresh_response(response):
                attempt.renewed, attempt.done = response, True
                return response.request
            if not self._sign_in.somebody_is_there:
                raise self._needed()
            raise _RefreshRefusedError
        if self._client is not None and self._client.scopes:
            context.client_metadata.scope = " ".join(self._client.scopes)
        return await super()._perform_authorization()

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        if response is not self._attempt.renewed:
            await super()._handle_token_response(response)
        self._attempt.done = True

    def _choose_way_to_send_secret(self) -> None:
        """That of a client which registered itself was agreed on then; for a given one the service says what it takes.

        Where it says nothing, that is the header (RFC 8414).
        """
        info, metadata = self.context.client_info, self.context.oauth_metadata
        if self._client is not None and info is not None and info.client_secret:
            taken = metadata.token_endpoint_auth_methods_supported if metadata is not None else None
            basic = "client_secret_basic" in (taken or ["client_secret_basic"])
            info.token_endpoint_auth_method = "client_secret_basic" if basic else "client_secret_post"

    async def _to_open(self, address: str) -> None:
        """An address that a browser opens: encrypted, or of this machine where the server is, too.

        Raises:
            SignInNeededError: It is not.
        """
        parts = urlsplit(address)
        here = parts.scheme == "http" and parts.hostname in _LOOPBACK and self._is_own
        if (parts.scheme != "https" and not here) or not parts.hostname or parts.username or parts.password:
            raise self._refused("mcp_sign_in_unsafe", "leads to a page that is not safe to open")
        self._attempt.address = address

    async def _answer(self) -> AuthorizationCodeResult:
        """Ask, and read where the browser was sent back to. Raises SignInNeededError."""
        attempt = self._attempt
        if attempt.ask is None:
            raise self._needed()
        try:
            with self._waiting():
                async with asyncio.timeout(PATIENCE):
                    back = await attempt.ask(attempt.address)
        except TimeoutError:
            raise self._refused("mcp_sign_in_late", "waited ten minutes for a sign-in") from None
        given = {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}
        if "error" in given or "code" not in given:
            why = given.get("error", "")
            raise self._refused("mcp_sign_in_refused", "was not allowed in", why=why if _WORD.fullmatch(why) else "-")
        return AuthorizationCodeResult(code=given["code"], state=given.get("state"), iss=given.get("iss"))

    async def _beside(self, request: httpx2.Request) -> httpx2.Response:
        """What the package asks of others than the server itself, as far as the server may lead us.

        Raises:
            SignInNeededError: It leads where nothing is to be asked.
            ServerUnreachableError: Nobody answers there.
        """
        if request.url.scheme != "https" and not (request.url.scheme == "http" and self._is_own):
            raise self._refused("mcp_sign_in_unsafe", "leads to an address that is not safe to ask")
        try:
            async with guarded_client(self._reach or _reach_of(is_own_server=self._is_own)) as client:
                response = await client.send(request)
        except OutOfReachError:
            text = "leads to an address of this machine or its network"
            raise self._refused("mcp_sign_in_unsafe", text) from None
        except httpx2.HTTPError:
            raise self._away(request.url.host) from None
        if request.method == "POST" and (response.status_code >= _BROKEN or response.status_code == _TOO_MUCH):
            raise self._away(request.url.host)
        return response

    # -- what went wrong

    def _needed(self) -> SignInNeededError:
        hint = "Give sign_in to MCPClient, or put the server's key into the header Authorization."
        return SignInNeededError(f"The MCP server {self._name!r} wants you to sign in.", hint=hint, name=self._name)

    def _refused(self, key: str, what: str, **details: Any) -> SignInNeededError:
        text = f"Signing in to the MCP server {self._name!r} did not work: it {what}."
        return SignInNeededError(text, hint="Try again.", key=key, name=self._name, **details)

    def _away(self, host: str) -> ServerUnreachableError:
        text = f"The MCP server {self._name!r} wants a sign-in at {host}, which does not answer."
        hint = "Try again later."
        return ServerUnreachableError(text, hint=hint, key="mcp_sign_in_away", name=self._name, host=host)

    def _failure(self, error: Exception) -> SignInNeededError:
        described = self.context.oauth_metadata or self.context.protected_resource_metadata
        if isinstance(error, OAuthRegistrationError) and described is None:
            text = f"The MCP server {self._name!r} wants a login, and offers no sign-in."
            hint = "Put its key into the header Authorization."
            return SignInNeededError(text, hint=hint, key="mcp_sign_in_none", name=self._name)
        found = _WHY.search(str(error))
        why = found[1] if found else "-"
        if isinstance(error, OAuthRegistrationError):
            return self._refused("mcp_sign_in_unknown", f"lets no program register by itself ({why})", why=why)
        return self._refused("mcp_sign_in_failed", f"does not keep to the protocol ({why})", why=why)


class _Storage:
    """Tokens where they are kept; the journal is told what it must not repeat.

    Args:
        client: As whom the user has registered this program; it registers itself where this is left out.
    """

    def __init__(self, kept: TokenStorage, client: StaticClient | None, journal: ServerLog) -> None:
        self._kept = kept
        self._client = client
        self._journal = journal

    async def get_tokens(self) -> OAuthToken | None:
        tokens = await self._kept.get_tokens()
        self._hide(tokens)
        return tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._hide(tokens)
        await self._kept.set_tokens(tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        if self._client is None:
            return await self._kept.get_client_info()
        secret = self._client.client_secret
        return OAuthClientInformationFull(
            client_id=self._client.client_id, client_secret=secret.get_secret_value() if secret is not None else None
        )

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._journal.hide(client_info.client_secret or "")
        await self._kept.set_client_info(client_info)

    def _hide(self, tokens: OAuthToken | None) -> None:
        if tokens is not None:
            self._journal.hide(tokens.access_token, tokens.refresh_token or "")


def _wants_sign_in(response: httpx2.Response) -> bool:
    """Whether nobody, or somebody with less rights, is signed in; as the package sees it."""
    if response.status_code == _FORBIDDEN:
        return extract_field_from_www_auth(response, "error") == "insufficient_scope"
    return response.status_code == _REFUSED


async def _answered_here(response: httpx2.Response) -> bool:
    """Whether whoever answered, and whoever has that name, is of this machine or its network.

    Both: a name may say one thing now and another then, and behind a proxy it is the proxy that answered.
    """
    stream: Any = response.extensions.get("network_stream")
    answered = stream.get_extra_info("server_addr") if stream is not None else None
    url = response.request.url
    try:
        named = await system_addresses(url.host, url.port or 0)
    except (OSError, UnicodeError):
        return False
    return bool(answered) and is_own(str(answered[0])) and bool(named) and all(map(is_own, named))


def _reach_of(*, is_own_server: bool) -> Reach:
    """How far a server of the owner of this machine may lead: one from outside never inside."""
    return Reach(lambda address, _: is_public(address) or (is_own_server and is_own(address)))
