"""An owner signs in to an MCP server: the question goes to the page, its answer to the server that waits for it."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from core.errors import NotFoundError, SettingsError, StorageError
from core.mcp.sign_in import KeptTokens, SignIn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from core.mcp.sign_in import Ask
    from core.storage.mcp_servers import McpServerStore

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Signing:
    """One sign-in that is under way.

    Args:
        server_id: To which server.
        redirect_uri: Where the answer arrives.
    """

    def __init__(self, owner: str, server_id: str, redirect_uri: str) -> None:
        self.owner = owner
        self.server_id = server_id
        self.redirect_uri = redirect_uri
        self.address: Future[str] = Future()  # of the page to sign in on; set on the shared loop
        self.answer: Future[str] = Future()  # where the browser was sent back to; set on the page's loop

    @property
    def state(self) -> str:
        """Names the question; "" before there is one, and after its answer."""
        if not self.address.done() or self.answer.done():
            return ""
        return next(iter(parse_qs(urlsplit(self.address.result()).query).get("state", [])), "")

    async def address_or(self, started: asyncio.Task[None]) -> str:
        """The address, as soon as there is one; "" where the server was started, or not, without it."""
        asked = asyncio.wrap_future(self.address)
        await asyncio.wait({started, asked}, return_when=asyncio.FIRST_COMPLETED)
        return asked.result() if asked.done() else ""

    async def ask(self, address: str) -> str:
        """Tell the page the address, and wait for the answer."""
        self.address.set_result(address)
        return await asyncio.wrap_future(self.answer)


class SignIns:
    """The sign-ins of one owner that are under way, at most one for each server.

    Args:
        owner: Whose they are.
        store: Where tokens are kept.
        under_way: Those of all owners, by the server's id; each ends when its answer came, or the server stops waiting.
    """

    def __init__(self, owner: str, store: McpServerStore, under_way: dict[str, Signing]) -> None:
        self._owner = owner
        self._store = store
        self._under_way = under_way

    def of(self, server_id: str) -> SignIn:
        """Who can be asked to sign in to a server: its owner, while they do."""
        return _OwnersSignIn(self, server_id)

    def begin(self, server_id: str, redirect_uri: str) -> Signing:
        """From now on the owner can be asked; an older question is none any more.

        Raises:
            SettingsError: key `sign_in_plain`: others could read the answer on its way.
        """
        parts = urlsplit(redirect_uri)
        if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
            hint = "Open it over https, or at 127.0.0.1 on its own machine."
            raise SettingsError("The page is reached without encryption.", hint=hint, key="sign_in_plain")
        self._under_way[server_id] = signing = Signing(self._owner, server_id, redirect_uri)
        return signing

    def under_way(self, server_id: str) -> Signing | None:
        """The sign-in to a server, if there is one."""
        signing = self._under_way.get(server_id)
        return signing if signing is not None and signing.owner == self._owner else None

    def address(self, server_id: str) -> str:
        """Where the owner signs in to a server now; "" where no answer is waited for."""
        signing = self.under_way(server_id)
        return signing.address.result() if signing is not None and signing.state else ""

    def answered(self, query: str) -> str:
        """Take an answer that the owner's browser brings; gives the server's id.

        Args:
            query: Of the address to which that was sent.

        Raises:
            NotFoundError: key `sign_in_unknown`: nobody of this name asked, it is too late, or it came before.
        """
        state = next(iter(parse_qs(query).get("state", [])), "")
        for signing in list(self._under_way.values()):
            if state and signing.owner == self._owner and signing.state == state:
                signing.answer.set_result(f"{signing.redirect_uri}?{query}")
                return signing.server_id
        hint = "Go back to Parlour, and press Sign in again."
        raise NotFoundError("Nobody waits for this sign-in.", hint=hint, key="sign_in_unknown")

    def ended(self, signing: Signing) -> None:
        """Nobody waits for it any more."""
        if self._under_way.get(signing.server_id) is signing:
            del self._under_way[signing.server_id]

    def tokens(self, server_id: str, url: str) -> KeptTokens:
        """Where the tokens of a server are kept. Those of one address go to no other."""

        async def read() -> Mapping[str, Any]:
            with suppress(NotFoundError, StorageError):
                kept = await self._store.sign_in(server_id)
                return kept if kept.get("url") == url else {}
            return {}

        async def write(name: str, value: Mapping[str, Any]) -> None:
            with suppress(NotFoundError):  # it was removed meanwhile
                await self._store.keep_sign_in(server_id, url, {name: value})

        return KeptTokens(read, write)


class _OwnersSignIn(SignIn):
    def __init__(self, sign_ins: SignIns, server_id: str) -> None:
        super().__init__(None, storage=lambda url: sign_ins.tokens(server_id, url))
        self._sign_ins = sign_ins
        self._server_id = server_id

    @property
    def somebody_is_there(self) -> bool:
        """Whether the owner has pressed the button."""
        signing = self._sign_ins.under_way(self._server_id)
        return signing is not None and not signing.address.done()

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[tuple[str, Ask]]:
        """The route of the page."""
        signing = self._sign_ins.under_way(self._server_id)
        if signing is None:
            raise RuntimeError("nobody is there to be asked")
        try:
            yield signing.redirect_uri, signing.ask
        finally:
            self._sign_ins.ended(signing)
