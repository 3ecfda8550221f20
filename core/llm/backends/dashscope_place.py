"""Where DashScope is, and the key for it: what the settings leave out, its own SDK knows."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from core.errors import SettingsError
from core.vendor_hosts import is_dashscope

_COMPATIBLE: Final = re.compile(r"/compatible-mode/v(\d+)$")
NO_KEY: Final = "Set api_key, or DASHSCOPE_API_KEY."
KEY_STAYS: Final = "Set api_key: the one in DASHSCOPE_API_KEY goes to the vendor's own addresses alone."


class Place(NamedTuple):
    """Address and key; `hint` says how to get a key where there is none."""

    address: str
    api_key: str
    hint: str = ""

    def __repr__(self) -> str:
        return f"Place({self.address!r})"  # without the key


def checked_address(given: str | None) -> str | None:
    """The address as it is used; `None` leaves it to the SDK.

    Raises:
        ValueError: It names no server that can be asked over HTTP.
    """
    given = (given or "").strip()
    if not given or given == "dashscope":
        return None
    address = (given if "://" in given else f"http://{given}").rstrip("/")
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0 or re.search(r"\s", address):
        raise ValueError("it must be an address such as https://dashscope.aliyuncs.com/api/v1")
    # The same host serves OpenAI's protocol under another path, and that is the address that people have at hand.
    return _COMPATIBLE.sub(r"/api/v\1", address)


def placed(address: str | None, api_key: str, workspace: str | None) -> Place:
    """The place that settings describe.

    The SDK is asked for what they leave out: the variables, regions and key files are its own business. It is not
    imported otherwise, as that takes most of a second.

    Args:
        address: From the settings, checked.
        api_key: From the settings, or empty.
        workspace: For addresses that have it in their name.

    Raises:
        SettingsError: The region's address needs a workspace.
    """
    if address and api_key:
        return Place(address, api_key)
    import dashscope
    from dashscope.common import env
    from dashscope.common.error import DashScopeException

    resolved: Any = env.resolve_base_url  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    try:
        usual = str(resolved(str(dashscope.base_http_api_url), workspace)).rstrip("/")
    except (DashScopeException, ValueError) as error:
        if address is None:
            raise SettingsError(f"DashScope's address is not known: {error}", hint="Set workspace.") from error
        usual = ""
    found = address or usual
    if api_key:
        return Place(found, api_key)
    if found != usual and not is_dashscope(found):
        return Place(found, "", KEY_STAYS)
    return Place(found, _usual_key(), NO_KEY)


def _usual_key() -> str:
    from dashscope.common.api_key import get_default_api_key
    from dashscope.common.error import AuthenticationError

    try:
        return str(get_default_api_key() or "")
    except (AuthenticationError, OSError):
        return ""
