"""Where other programs learn how they are let in: addresses, documents behind them, and what is said at the door."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal, cast
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from starlette.types import Scope

APP_SCOPES: Final[tuple[Literal["search", "ask"], ...]] = ("search", "ask")
"""What a program may be let in for: searching libraries, and asking the assistant."""
MCP_PATH: Final = "/mcp"
AUTHORIZE: Final = "/oauth/authorize"
TOKEN: Final = "/oauth/token"  # noqa: S105 - a path
REGISTER: Final = "/oauth/register"
REVOKE: Final = "/oauth/revoke"
ABOUT_RESOURCE: Final = "/.well-known/oauth-protected-resource"
ABOUT_SERVER: Final = "/.well-known/oauth-authorization-server"
OPEN_PATHS: Final = frozenset(
    {ABOUT_RESOURCE, f"{ABOUT_RESOURCE}{MCP_PATH}", ABOUT_SERVER, TOKEN, REGISTER, REVOKE},
)
"""What programs ask, who have no cookie; the page where somebody agrees is none of them."""
THIS_MACHINE: Final = frozenset({"127.0.0.1", "localhost", "::1"})
NEEDED: Final = {"search_library": "search", "ask": "ask"}
"""What a program must be let in for to call a tool."""


def base_of(scope: Scope, root: str) -> str:
    """The address of this Parlour as who asks knows it.

    Args:
        root: The path that it is shown under; "" for the root of its site.
    """
    host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
    return f"{scope['scheme']}://{host.lower()}{root}"


def is_safe(base: str) -> bool:
    """Whether nobody on the way can read what is said at an address: over HTTPS, or within this machine."""
    parts = urlsplit(base)
    return parts.scheme == "https" or parts.hostname in THIS_MACHINE


def is_resource(named: str, base: str) -> bool:
    """Whether an address that a program names is that of this very door, `base` and `/mcp`."""
    try:
        parts = urlsplit(named)
        place = f"{parts.scheme.lower()}://{parts.netloc.lower()}{parts.path}"
    except ValueError:
        return False
    return place.rstrip("/") == f"{base}{MCP_PATH}" and not (parts.query or parts.fragment)


def about_resource(base: str) -> dict[str, Any]:
    """What the door says of itself (RFC 9728)."""
    return {
        "resource": f"{base}{MCP_PATH}",
        "resource_name": "Parlour",
        "authorization_servers": [base],
        "scopes_supported": list(APP_SCOPES),
        "bearer_methods_supported": ["header"],
    }


def about_server(base: str) -> dict[str, Any]:
    """What lets in says of itself (RFC 8414)."""
    how = ["none", "client_secret_post", "client_secret_basic"]
    return {
        "issuer": base,
        "authorization_endpoint": f"{base}{AUTHORIZE}",
        "token_endpoint": f"{base}{TOKEN}",
        "registration_endpoint": f"{base}{REGISTER}",
        "revocation_endpoint": f"{base}{REVOKE}",
        "scopes_supported": list(APP_SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": how,
        "revocation_endpoint_auth_methods_supported": how,
        "code_challenge_methods_supported": ["S256"],
        "client_id_metadata_document_supported": True,
        "authorization_response_iss_parameter_supported": True,
    }


def challenge(base: str, *, error: str = "", scopes: Collection[str] = APP_SCOPES) -> str:
    """The header `WWW-Authenticate` for who is not let in.

    Args:
        base: The address of this Parlour; where it is not safe, nobody is told how to be let in there.
        error: What is wrong with the token that was shown; "" where none was.
        scopes: What it would have to be for.
    """
    said = ['Bearer realm="parlour"']
    if error:
        said.append(f'error="{error}"')
    if is_safe(base):
        said += [f'scope="{" ".join(scopes)}"', f'resource_metadata="{base}{ABOUT_RESOURCE}{MCP_PATH}"']
    return ", ".join(said)


def needed_for(body: bytes) -> str:
    """What a token must be for, by the body of a request to the door; "" where any token will do."""
    try:
        asked: object = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(asked, dict):
        return ""
    told = cast("Mapping[str, Any]", asked)
    params: object = told.get("params")
    if told.get("method") != "tools/call" or not isinstance(params, dict):
        return ""
    return NEEDED.get(str(cast("Mapping[str, Any]", params).get("name")), "")
