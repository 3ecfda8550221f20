"""Amazon's accounts: the address of a region, keys, and signatures of requests (Signature Version 4)."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from core.errors import SettingsError, extra_for
from core.settings import named_key

if TYPE_CHECKING:
    from collections.abc import Mapping

_REGION: Final = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d")
_SERVICE: Final = "bedrock"


def region_of(given: str | None) -> str:
    """The region, as it was given or as Amazon's variables have it.

    Raises:
        SettingsError: It is none, or there is none.
    """
    region = (given or named_key("AWS_REGION") or named_key("AWS_DEFAULT_REGION")).strip()
    if not _REGION.fullmatch(region):
        said = f"The region {region!r} is none of Amazon's." if region else "Amazon Bedrock needs a region."
        raise SettingsError(said, hint="Set region, such as us-east-1.", name="region")
    return region


def bedrock_address(region: str) -> str:
    """Where Bedrock answers in a region."""
    china = ".cn" if region.startswith("cn-") else ""
    return f"https://bedrock-runtime.{region}.amazonaws.com{china}"


def is_amazon(address: str) -> bool:
    """Whether an address is Amazon's own."""
    host = urlsplit(address).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))


@dataclass(frozen=True, slots=True)
class AccessKey:
    """Keys that requests are signed with; only the first is ever sent, and the token.

    Args:
        id: The access key's.
        secret: Its secret.
        token: Of a session that ends; "" for keys that stay.
    """

    id: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)


def key_from_variables() -> AccessKey | None:
    """The keys of Amazon's usual variables; `None` where they are not set."""
    key, secret = named_key("AWS_ACCESS_KEY_ID"), named_key("AWS_SECRET_ACCESS_KEY")
    return AccessKey(key, secret, named_key("AWS_SESSION_TOKEN")) if key and secret else None


class ProfileKeys:
    """Keys that the botocore package finds: of a profile, of a signed-in user, or of the role of a machine.

    Args:
        profile: Its name; "" for the usual way to find keys.
    """

    def __init__(self, profile: str) -> None:
        self._profile = profile
        self._found: Any = None

    def now(self) -> AccessKey:
        """The keys as they are now; those of a role change. It may ask the network: call it in a thread.

        Raises:
            SettingsError: There are none, they cannot be had, or the package is missing.
        """
        with extra_for("A key of a profile or a role"):
            from botocore.exceptions import (  # pyright: ignore[reportMissingTypeStubs] - it has none
                BotoCoreError,
                ClientError,
            )
        try:
            if self._found is None:
                self._found = self._find()
            frozen: Any = self._found.get_frozen_credentials()  # a role is taken on, or a sign-in renewed, only here
        except (BotoCoreError, ClientError) as error:
            raise SettingsError(
                f"No keys of Amazon's can be had: {str(error).rstrip('.')}.",
                hint="Sign in with `aws sso login`, or set api_key.",
                name="profile",
            ) from error
        return AccessKey(str(frozen.access_key), str(frozen.secret_key), str(frozen.token or ""))

    def _find(self) -> Any:
        from botocore.session import Session  # pyright: ignore[reportMissingTypeStubs] - as above

        session: Any = Session(profile=self._profile or None)  # pyright: ignore[reportUnknownVariableType]
        found: Any = session.get_credentials()
        if found is None:
            raise SettingsError(
                "No keys of Amazon's were found.",
                hint="Sign in with `aws sso login`, or set api_key.",
                name="profile",
            )
        return found


def signed_headers(
    key: AccessKey, region: str, address: str, body: bytes, now: datetime | None = None
) -> dict[str, str]:
    """The headers that prove who sends a request.

    Args:
        region: That of the service.
        address: With the path as it goes out.
        body: As it goes out.
        now: When; this moment if left out.
    """
    parts = urlsplit(address)
    when = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    headers = {"content-type": "application/json", "host": parts.netloc.rpartition("@")[2], "x-amz-date": when}
    if key.token:
        headers["x-amz-security-token"] = key.token
    named = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    path = quote(parts.path or "/", safe="/-_.~")  # once more than it goes out, as all but S3 want it
    asked = f"POST\n{path}\n{parts.query}\n{lines}\n{named}\n{hashlib.sha256(body).hexdigest()}"
    scope = f"{when[:8]}/{region}/{_SERVICE}/aws4_request"
    told = f"AWS4-HMAC-SHA256\n{when}\n{scope}\n{hashlib.sha256(asked.encode()).hexdigest()}"
    signing = f"AWS4{key.secret}".encode()
    for part in scope.split("/"):
        signing = hmac.digest(signing, part.encode(), "sha256")
    signature = hmac.digest(signing, told.encode(), "sha256").hex()
    credential = f"Credential={key.id}/{scope}, SignedHeaders={named}, Signature={signature}"
    token = {"X-Amz-Security-Token": key.token} if key.token else {}
    return {"X-Amz-Date": when, **token, "Authorization": f"AWS4-HMAC-SHA256 {credential}"}


def checked_key(given: Mapping[str, str | None]) -> AccessKey | None:
    """The keys that were given; `None` where there are none.

    Args:
        given: The id, the secret and the token, by the names of their settings.

    Raises:
        SettingsError: One of the two is missing.
    """
    id_, secret, token = (str(value or "").strip() for value in given.values())
    if bool(id_) != bool(secret):
        missing = "aws_secret_access_key" if id_ else "aws_access_key_id"
        raise SettingsError(f"{missing} is missing: the two are a pair.", hint=f"Set {missing} too.", name=missing)
    return AccessKey(id_, secret, token) if id_ else None
