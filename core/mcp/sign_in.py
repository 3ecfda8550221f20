"""How a user signs in to servers that want it (OAuth 2.1): who is asked, where the answer arrives, what is kept.

>>> async def ask(address):
...     show_to_the_user(address)
...     return await the_address_at_which_the_browser_came_back()
>>> sign_in = SignIn(ask, redirect_uri="http://127.0.0.1:8765/signed-in")
>>> async with MCPClient("notes", {"url": "https://mcp.example/mcp"}, sign_in=sign_in) as client:
...     await client.call("search", {"query": "plans"})
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from mcp.client.auth import TokenStorage
    from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

Ask: TypeAlias = Callable[[str], Awaitable[str]]


class SignIn:
    """Lets somebody sign in to the servers of a program.

    Args:
        ask: Is given the address of the page on which to sign in, and returns the whole address to which that page sent
            the browser back: it begins with `redirect_uri` and holds code and state. It is called on the shared loop,
            and has ten minutes. `None` where nobody is there; then only tokens that are kept are used.
        redirect_uri: Where the browser is sent back to: an `https` address, or `http` on this machine.
        storage: Where the tokens of a server are kept: called with its address, gives what the `mcp` package calls a
            `TokenStorage`. In memory if left out.
    """

    def __init__(
        self,
        ask: Ask | None,
        *,
        redirect_uri: str = "",
        storage: Callable[[str], TokenStorage] | None = None,
    ) -> None:
        self._ask = ask
        self._redirect_uri = redirect_uri
        self._storage = storage
        self._memory: dict[str, MemoryTokens] = {}

    @property
    def somebody_is_there(self) -> bool:
        """Whether anybody can be asked now."""
        return self._ask is not None

    def tokens(self, url: str) -> TokenStorage:
        """Where the tokens of the server at an address are kept."""
        if self._storage is not None:
            return self._storage(url)
        return self._memory.setdefault(url, MemoryTokens())

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[tuple[str, Ask]]:
        """While it is open, answers arrive at the first of these, and the second asks. Somebody must be there."""
        if self._ask is None:
            raise RuntimeError("nobody is there to be asked")
        yield self._redirect_uri, self._ask


class MemoryTokens:
    """The tokens of one server, until the program ends."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """What was kept last."""
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep tokens."""
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """As whom the program is registered."""
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep as whom the program is registered."""
        self._client = client_info


class KeptTokens:
    """The tokens of one server, as plain values somewhere else.

    Args:
        read: Gives what is kept: `tokens` and `client`, where there are any.
        write: Keeps one of the two.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[Mapping[str, Any]]],
        write: Callable[[str, Mapping[str, Any]], Awaitable[None]],
    ) -> None:
        self._read = read
        self._write = write

    async def get_tokens(self) -> OAuthToken | None:
        """What was kept last."""
        from mcp.shared.auth import OAuthToken

        kept = (await self._read()).get("tokens")
        return OAuthToken.model_validate(kept) if kept else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep tokens."""
        await self._write("tokens", tokens.model_dump(mode="json", exclude_none=True))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """As whom the owner is registered."""
        from mcp.shared.auth import OAuthClientInformationFull

        kept = (await self._read()).get("client")
        return OAuthClientInformationFull.model_validate(kept) if kept else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep as whom the owner is registered."""
        await self._write("client", client_info.model_dump(mode="json", exclude_none=True))


NOBODY = SignIn(None)
