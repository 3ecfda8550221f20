"""The token that opens the page: shown once, and from then on a cookie that proves it without holding it."""

from __future__ import annotations

import hmac
import secrets
from hashlib import sha256
from typing import TYPE_CHECKING

from itsdangerous import BadSignature, Signer

if TYPE_CHECKING:
    from webui.cookies import Cookies


class PageToken:
    """A token and the proofs of having shown it.

    Args:
        secret: Signs the proofs.
        token: What has to be shown; "" where nobody is asked.
        for_everybody: Visitors are asked for it too, not the owner of this machine alone.
        cookies: How cookies of this server are named and written.
    """

    def __init__(self, secret: str, token: str = "", *, for_everybody: bool = False, cookies: Cookies) -> None:
        self._token = token
        self.for_everybody = bool(token) and for_everybody
        self._cookies = cookies
        # Signed for this very token: with another one, no proof of the first counts any more.
        salt = f"parlour.token.{sha256(token.encode()).hexdigest()}"
        self._signer = Signer(secret, salt=salt, digest_method=sha256)

    @property
    def asked(self) -> bool:
        """Whether there is one."""
        return bool(self._token)

    def matches(self, typed: str) -> bool:
        """Whether this is the token. What surrounds it is not looked at: it comes from a terminal, by copying."""
        given = typed.strip().encode("utf-8", "replace")
        return self.asked and hmac.compare_digest(given, self._token.encode())

    def shown_by(self, cookies: str) -> bool:
        """Whether a `Cookie` header holds a proof."""
        return any(self._proves(value) for value in self._cookies.values(cookies, "-key"))

    def proof(self, *, https: bool) -> str:
        """The `Set-Cookie` header for a browser that has shown the token."""
        value = self._signer.sign(secrets.token_urlsafe(16)).decode("ascii")
        return self._cookies.header(value, "-key", https=https)

    def _proves(self, value: str) -> bool:
        try:
            self._signer.unsign(value)
        except BadSignature:
            return False
        return True
