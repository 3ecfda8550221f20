"""How a service of an owner's knows who asks: the key as it is typed, kept and shown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from core.errors import SettingsError
from core.storage.sealing import end_of

if TYPE_CHECKING:
    from core.storage.sealing import Sealer

KeyKind: TypeAlias = Literal["none", "bearer", "header", "query", "cookie", "basic", "oauth2"]

KEY_KINDS: Final[Mapping[str, KeyKind]] = {
    "none": "none", "bearer": "bearer", "header": "header", "query": "query", "cookie": "cookie", "basic": "basic",
    "oauth2": "oauth2",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ServiceKey:
    """How a service knows who asks.

    Args:
        kind: Where the key goes; of `oauth2` it becomes a token first.
        name: Of the header, the parameter or the cookie; of `basic` the user, of `oauth2` the client's id.
        value: The key, the password, or the client's secret; "" where only its end is told.
        end: What may be shown of it.
        token_url: Where tokens are given.
        scope: What a token is for, in words with spaces between; the service's usual where empty.
    """

    kind: KeyKind = "none"
    name: str = ""
    value: str = field(default="", repr=False)
    end: str = ""
    token_url: str = ""
    scope: str = ""

    @property
    def credentials(self) -> dict[str, Any]:
        """As tools take them."""
        match self.kind:
            case "none":
                return {}
            case "bearer":
                return {"bearer": self.value}
            case "basic":
                return {"basic": {"username": self.name, "password": self.value}}
            case "header" | "query" | "cookie":
                return {self.kind: {self.name: self.value}}
            case "oauth2":
                client = {"client_id": self.name, "client_secret": self.value, "scope": self.scope}
                return {"oauth2": {**client, "token_url": self.token_url}}

    def goes_like(self, other: ServiceKey) -> bool:
        """Whether it is sent where the other one is: then, and only then, the other's value may stay in its place."""
        return (self.kind, self.token_url.strip()) == (other.kind, other.token_url)


def sealed_key(key: ServiceKey, sealer: Sealer, *place: str) -> dict[str, Any]:
    """A key as it is kept; only its value is secret.

    Args:
        key: As it was typed.
        sealer: Seals it.
        place: Whose it is and for what; it opens there alone.

    Raises:
        SettingsError: key `openapi_key` or `openapi_client`: it is not whole.
    """
    if key.kind not in KEY_KINDS:
        raise SettingsError("A key cannot go there.", key="openapi_key")
    if key.kind == "none":
        return {"kind": "none"}
    value, name, token_url = key.value.strip(), key.name.strip(), key.token_url.strip()
    if key.kind == "oauth2" and not (value and name and token_url):
        hint = "Type all three."
        raise SettingsError(
            "A client needs its id, its secret, and where to get a token.", hint=hint, key="openapi_client"
        )
    if not value or (key.kind != "bearer" and not name):
        raise SettingsError("The key is not whole.", hint="Type it, and what it is called.", key="openapi_key")
    kept = {"kind": key.kind, "name": name, "sealed": sealer.seal(json.dumps(value), *place), "end": end_of(value)}
    return kept | ({"token_url": token_url, "scope": " ".join(key.scope.split())} if key.kind == "oauth2" else {})


def shown_key(kept: object) -> ServiceKey:
    """What may be shown of a key that is kept."""
    key: Mapping[str, Any] = cast("Mapping[str, Any]", kept) if isinstance(kept, Mapping) else {}
    name, end, token_url, scope = (str(key.get(one) or "") for one in ("name", "end", "token_url", "scope"))
    kind = KEY_KINDS.get(str(key.get("kind")), "none")
    return ServiceKey(kind, name, end=end, token_url=token_url, scope=scope)


def opened_key(kept: object, sealer: Sealer, *place: str) -> ServiceKey:
    """A key that is kept, with its value. Raises StorageError where it cannot be read any more."""
    shown = shown_key(kept)
    if shown.kind == "none":
        return shown
    sealed = str(cast("Mapping[str, Any]", kept).get("sealed") or "")
    return replace(shown, value=str(json.loads(sealer.open(sealed, *place))))
