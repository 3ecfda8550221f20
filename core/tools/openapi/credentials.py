"""Keys for a service: where they go with a request, and how they stay out of everything else."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote, quote_plus

from core.errors import SettingsError
from core.tools.openapi.document import node

if TYPE_CHECKING:
    from core.tools.openapi.document import Document
    from core.tools.openapi.operations import Operation

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_WRONG: Final = re.compile(r"[^\x20-\x7e]")
_SHORTEST: Final = 4  # letters: shorter values would take whole answers apart
HIDDEN: Final = "…"
_NO_SECRETS: Final = frozenset({"username", "client_id", "token_url", "scope"})


@dataclass(frozen=True, slots=True)
class Placed:
    """What goes with a request. Nothing of it is ever shown."""

    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    query: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    cookies: dict[str, str] = field(default_factory=dict[str, str], repr=False)


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one service.

    Args:
        document: Which schemes there are.
        given: `{"bearer": token}`, `{"basic": {"username": …, "password": …}}`, `{"header": {name: value}}`,
            `{"query": {name: value}}`, `{"cookie": {name: value}}`, or by the name that the document gives a scheme;
            what gets a token first is said in `tokens`.
        besides: More that nobody may see.
    """

    document: Document
    given: Mapping[str, Any] = field(repr=False)
    besides: frozenset[str] = field(default=frozenset(), repr=False)

    def placed(self, operation: Operation) -> Placed:
        """What goes with a call of this operation.

        Raises:
            SettingsError: A value is missing or cannot be sent; no value is in the message.
        """
        placed = Placed()
        for name, value in self.given.items():
            scheme = self.scheme(name)
            if not scheme:
                _place_plainly(placed, name, value)
            elif not operation.security or any(name in names for names in operation.security):
                _place_by_scheme(placed, name, scheme, value)
        return placed

    def check(self, operation: Operation) -> None:
        """Look whether this operation has what it needs.

        Raises:
            SettingsError: Something is missing, or cannot be sent.
        """
        placed = self.placed(operation)
        plainly = any(not self.scheme(name) for name in self.given)
        given = set(self.given)
        if not operation.security or plainly or any(names <= given for names in operation.security):
            return
        if placed.headers or placed.query or placed.cookies:
            return
        needed = ", ".join(sorted(min(operation.security, key=len)))
        raise SettingsError(
            f"{self.document.title} needs credentials ({needed}).",
            hint="Enter them with the address of the service.",
            key="openapi_credentials",
            needed=needed,
        )

    def hidden(self, text: str) -> str:
        """The text without any key in it, however it is written there."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return text

    @property
    def secrets(self) -> frozenset[str]:
        """Whatever must not be seen, in every spelling."""
        found = set(self.besides)
        for value in self.given.values():
            parts = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {"": value}
            found.update(str(part) for name, part in parts.items() if name not in _NO_SECRETS)
            if "password" in parts:
                found.add(_pair(parts))
        found = {one for one in found if len(one) >= _SHORTEST}
        return frozenset(found | {quote(one, "") for one in found} | {quote_plus(one) for one in found})

    def scheme(self, name: str) -> Mapping[str, Any]:
        """What the document says of a security scheme; empty where it has none of that name."""
        schemes = node(node(self.document.root.get("components")).get("securitySchemes"))
        return self.document.resolved(schemes.get(name))


def _place_plainly(placed: Placed, name: str, value: Any) -> None:
    match name:
        case "bearer":
            placed.headers["authorization"] = f"Bearer {_fit(value)}"
        case "basic":
            placed.headers["authorization"] = f"Basic {_pair(node(value))}"
        case "header":
            placed.headers.update({_header_name(key): _fit(each) for key, each in node(value).items()})
        case "query":
            placed.query.update({str(key): _fit(each) for key, each in node(value).items()})
        case "cookie":
            placed.cookies.update({_header_name(key): _fit(each) for key, each in node(value).items()})
        case _:
            hint = "Known: bearer, basic, header, query, cookie, and the names of the document's security schemes."
            raise SettingsError(f"There is no way to send the credentials {name!r}.", hint=hint)


def _place_by_scheme(placed: Placed, name: str, scheme: Mapping[str, Any], value: Any) -> None:
    kind, way = str(scheme.get("type")), str(scheme.get("scheme") or "").lower()
    match kind, way, scheme.get("in"):
        case "apiKey", _, "header":
            placed.headers[_header_name(scheme.get("name"))] = _fit(value)
        case "apiKey", _, "query":
            placed.query[str(scheme.get("name"))] = _fit(value)
        case "apiKey", _, "cookie":
            placed.cookies[_header_name(scheme.get("name"))] = _fit(value)
        case "http", "basic", _:
            placed.headers["authorization"] = f"Basic {_pair(node(value))}"
        case ("http", "bearer", _) | ("oauth2" | "openIdConnect", _, _):
            placed.headers["authorization"] = f"Bearer {_fit(value)}"
        case _:
            raise SettingsError(f"The security scheme {name!r} is of a kind that is not supported.")


def _pair(value: Mapping[str, Any]) -> str:
    username, password = str(value.get("username") or ""), str(value.get("password") or "")
    if not username and not password:
        raise SettingsError("The credentials have no user name and no password.")
    return b64encode(f"{username}:{password}".encode()).decode()


def _fit(value: object) -> str:
    """A key as it can be sent."""
    text = str(value or "").strip()
    if not text or _WRONG.search(text):
        raise SettingsError("A key is empty, or has letters that cannot be sent.", hint="Copy it again.")
    return text


def _header_name(value: object) -> str:
    name = str(value or "")
    if not _HEADER_NAME.fullmatch(name):
        raise SettingsError("The name of a header for a key cannot be sent.")
    return name.lower()
