"""Signing in by another service that speaks OpenID Connect: discovery, PKCE, state, nonce, and who answered."""

from __future__ import annotations

import hmac
import secrets
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import httpx

from core.errors import ParlourError, extra_for

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

_SECONDS: Final = 10.0
_KNOWN_FOR: Final = 3600.0
_LEEWAY: Final = 60
_LASTS: Final = 600.0
_LONGEST: Final = 1024 * 1024
_SIGNED_BY: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_THIS_MACHINE: Final = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class Begun:
    """A sign-in that somebody was sent away for; the browser that began it keeps it, signed, and nobody else has it.

    Args:
        state: Names it.
        nonce: What the service has to sign.
        verifier: Proves to the service that who asks for the token began it.
        back: Where the service sends the browser.
        link: The one-time link that it makes somebody of; "" for none.
        at: When, in Unix seconds.
    """

    state: str
    nonce: str
    verifier: str
    back: str
    link: str
    at: float


@dataclass(frozen=True, slots=True)
class Account:
    """Who somebody is at the service: its name for them never changes, what it calls them may."""

    issuer: str
    subject: str
    name: str


@cache
def _trusted() -> ssl.SSLContext:
    """The certificates that services are known by; each client would read them anew, in 25 ms."""
    return httpx.create_ssl_context()


class OpenId:
    """One service, by its address.

    Args:
        issuer: Its address, which it must say of itself letter by letter.
        client_id: What it calls this Parlour.
        client_secret: What this Parlour proves that by; "" where it is public.
    """

    def __init__(self, issuer: str, client_id: str, client_secret: str) -> None:
        self.issuer = issuer
        self._id = client_id
        self._secret = client_secret
        self._known: tuple[dict[str, Any], float] | None = None

    @property
    def name(self) -> str:
        """What a reader knows it by: its host."""
        return urlsplit(self.issuer).hostname or self.issuer

    async def begin(self, back: str, link: str = "") -> tuple[str, Begun]:
        """The address to send a browser to, and what it has to keep meanwhile.

        Raises:
            ParlourError: key `openid_away` or `openid_wrong`.
        """
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        begun = Begun(state, nonce, verifier, back, link, time.time())
        about = await self._about()
        with extra_for("Signing in by another service"):
            from authlib.integrations.httpx_client import AsyncOAuth2Client

        client: Any = AsyncOAuth2Client(
            self._id, scope="openid profile", code_challenge_method="S256", verify=_trusted()
        )
        async with client:
            address, _ = client.create_authorization_url(
                about["authorization_endpoint"],
                state=begun.state,
                nonce=begun.nonce,
                code_verifier=begun.verifier,
                redirect_uri=back,
            )
        return str(address), begun

    async def finish(self, answer: Mapping[str, str], begun: Begun) -> Account:
        """Who came back.

        Args:
            answer: What the service added to the address.
            begun: What the browser kept.

        Raises:
            ParlourError: key `openid_refused` (the service said no), `openid_stale` (it is not the sign-in that this
                browser began, or too late), `openid_wrong` (another service answered, or what it says is not signed
                for this sign-in) or `openid_away`.
        """
        if not hmac.compare_digest(answer.get("state", "").encode(), begun.state.encode()) or not begun.state:
            raise _stale()
        if time.time() - begun.at > _LASTS:
            raise _stale()
        about = await self._about()
        must_say = bool(about.get("authorization_response_iss_parameter_supported"))
        if answer.get("iss", "" if must_say else self.issuer) != self.issuer:
            raise _wrong("Another service answered.")
        if answer.get("error"):
            raise ParlourError("The service did not sign you in.", hint="Try again.", key="openid_refused")
        token = await self._token(about, answer.get("code", ""), begun)
        claims = await self._claims(about, token, begun.nonce)
        said = (claims.get(name) for name in ("preferred_username", "name", "nickname", "email"))
        name = next((str(one) for one in said if one), "")
        return Account(self.issuer, str(claims["sub"]), name)

    async def _token(self, about: Mapping[str, Any], code: str, begun: Begun) -> str:
        from authlib.integrations.base_client import OAuthError
        from authlib.integrations.httpx_client import AsyncOAuth2Client

        how = about.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        method = "client_secret_basic" if "client_secret_basic" in how else "client_secret_post"
        client: Any = AsyncOAuth2Client(
            self._id,
            self._secret or None,
            token_endpoint_auth_method=method if self._secret else "none",
            timeout=_SECONDS,
            verify=_trusted(),
        )
        try:
            async with client:
                given = await client.fetch_token(
                    about["token_endpoint"],
                    grant_type="authorization_code",
                    code=code,
                    code_verifier=begun.verifier,
                    redirect_uri=begun.back,
                )
        except httpx.HTTPError as error:
            raise _away() from error
        except (OAuthError, ValueError) as error:
            raise _wrong("The code counts no more.") from error
        return str(given.get("id_token") or "")

    async def _claims(self, about: Mapping[str, Any], token: str, nonce: str) -> dict[str, Any]:
        """What the service signed for this very sign-in. Raises ParlourError."""
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        keys = await self._fetched(str(about["jwks_uri"]))
        offered = about.get("id_token_signing_alg_values_supported") or ["RS256"]
        algorithms = [one for one in _SIGNED_BY if one in offered]
        rules = jwt.JWTClaimsRegistry(
            leeway=_LEEWAY,
            iss={"essential": True, "value": self.issuer},
            sub={"essential": True},
            aud={"essential": True, "value": self._id},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            read = jwt.decode(token, KeySet.import_key_set(cast("Any", keys)), algorithms=algorithms)
            rules.validate(read.claims)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise _wrong("What the service says is not signed for this sign-in.") from error
        audience = read.claims["aud"]
        if isinstance(audience, list) and len(cast("list[Any]", audience)) > 1 and read.claims.get("azp") != self._id:
            raise _wrong("The service signed it for another program.")
        return dict(read.claims)

    async def _about(self) -> dict[str, Any]:
        """What the service says of itself. Raises ParlourError."""
        now = time.monotonic()
        if self._known is not None and now - self._known[1] < _KNOWN_FOR:
            return self._known[0]
        about = await self._fetched(f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
        if about.get("issuer") != self.issuer:
            raise _wrong("The service calls itself something else.")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            parts = urlsplit(str(about.get(name, "")))
            if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _THIS_MACHINE):
                raise _wrong(f"The service names no safe {name}.")
        self._known = (about, now)
        return about

    async def _fetched(self, address: str) -> dict[str, Any]:
        try:
            async with httpx.AsyncClient(timeout=_SECONDS, follow_redirects=False, verify=_trusted()) as client:
                answer = await client.get(address, headers={"accept": "application/json"})
                answer.raise_for_status()
                if len(answer.content) > _LONGEST:
                    raise _wrong("The service says too much.")
                found: Any = answer.json()
        except (httpx.HTTPError, ValueError) as error:
            raise _away() from error
        if not isinstance(found, dict):
            raise _wrong("The service speaks another language.")
        return cast("dict[str, Any]", found)


def _away() -> ParlourError:
    hint = "Try again later, or sign in by name and password."
    return ParlourError("The service that signs people in did not answer.", hint=hint, key="openid_away")


def _wrong(what: str) -> ParlourError:
    return ParlourError(what, hint="Nobody was signed in; tell whoever runs this Parlour.", key="openid_wrong")


def _stale() -> ParlourError:
    return ParlourError(
        "This sign-in was not begun in this browser, or long ago.", hint="Try again.", key="openid_stale"
    )
