"""The ways in which a document says that a service knows who asks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from urllib.parse import urljoin

from core.tools.openapi.document import node, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from core.tools.openapi.document import Document, Node

WayKind: TypeAlias = Literal["bearer", "header", "query", "cookie", "basic", "oauth2"]

_PLACES: Final[Mapping[str, WayKind]] = {"header": "header", "query": "query", "cookie": "cookie"}
_MOST: Final = 12
_MOST_SCOPES: Final = 60
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class Way:
    """One of them.

    Args:
        kind: Where the key goes; of `oauth2` a client's id and secret become a token first.
        name: Of the header, the parameter or the cookie.
        token_url: Where tokens are given; "" where the document does not say.
        scopes: What a token can be for, in the document's words.
    """

    kind: WayKind
    name: str = ""
    token_url: str = ""
    scopes: Mapping[str, str] = field(default_factory=dict[str, str])


def ways_of(document: Document, server: str) -> list[Way]:
    """Those of a document, each once, in its order.

    Args:
        document: It.
        server: What an address without a host follows.
    """
    schemes = node(node(document.root.get("components")).get("securitySchemes"))
    found: list[Way] = []
    for value in schemes.values():
        found += [way for way in _ways(document.resolved(value), server) if way not in found]
    return found[:_MOST]


def _ways(scheme: Node, server: str) -> Iterator[Way]:
    name = plain(str(scheme.get("name") or ""), _LONGEST)
    match str(scheme.get("type")), str(scheme.get("scheme") or "").lower():
        case "apiKey", _ if name and scheme.get("in") in _PLACES:
            yield Way(_PLACES[str(scheme.get("in"))], name)
        case "http", "basic":
            yield Way("basic")
        case "http", "bearer":
            yield Way("bearer")
        case "oauth2", _:
            flow = node(node(scheme.get("flows")).get("clientCredentials"))
            if not flow:
                yield Way("bearer")  # a token that was got elsewhere
                return
            url = str(flow.get("tokenUrl") or "").strip()
            scopes = list(node(flow.get("scopes")).items())[:_MOST_SCOPES]
            told = {plain(str(one), _LONGEST): plain(str(words or ""), _LONGEST) for one, words in scopes}
            yield Way("oauth2", token_url=plain(urljoin(server, url), 2000) if url else "", scopes=told)
        case "openIdConnect", _:
            yield Way("bearer")
            yield Way("oauth2")
        case _:
            return
