"""What an owner's other programs may use of Parlour, over MCP: a token, searching libraries, asking the assistant.

The address is `/mcp` of the page's own, and every request carries the token as `Authorization: Bearer …`. Nobody is
there to be asked: what a person would have to agree to is refused.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import aclosing
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self, cast

from core.errors import ConflictError, NotFoundError, ToolError, ToolTimeoutError
from core.messages.message import ASSISTANT, Message
from core.messages.transcript import Transcript
from core.runs.approvals import RunGuard
from core.storage.base import LOCAL_OWNER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from starlette.types import Receive, Scope, Send

    from core.agents.assistant import Assistant
    from core.mcp.serving import Serving
    from core.people.people import People
    from core.storage.owner_settings import OwnerSettings
    from core.storage.stores import Stores
    from core.workspace.services import OwnerServices
    from core.workspace.workspace import Workspace
    from core.workspace.workspaces import Workspaces

PATH = "/mcp"
_KEPT = "mcp_token"  # the name of the owner's setting: {"hash", "made"}
_BEGINNING = "parlour"
_LONGEST_TOKEN = 400
_AT_ONCE = 2  # questions of one owner


@dataclass(frozen=True, slots=True)
class TokenInfo:
    """That there is a token.

    Args:
        made: Unix seconds.
    """

    made: float


class McpAccess:
    """The way in for other programs.

    Args:
        stores: Where the print of each owner's token is kept; the token itself is shown once and kept nowhere.
        agent: Makes who answers: given what a workspace works with, and the documents within reach.
        seconds: How long an answer may take.
        people: Know whose programs may come in; left out, everybody's may.

    Attributes:
        asking: How many questions of an owner's programs are being answered.
    """

    def __init__(
        self,
        stores: Stores,
        workspaces: Workspaces,
        *,
        agent: Callable[[OwnerServices, list[str]], AbstractAsyncContextManager[Assistant]],
        seconds: float,
        people: People | None = None,
    ) -> None:
        self._stores = stores
        self._people = people
        self.workspaces = workspaces
        self.agent = agent
        self.seconds = seconds
        self._serving: Serving | None = None
        self.asking: dict[str, int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request of another program."""
        if self._serving is None:
            from core.mcp.serving import Serving  # few installations are asked over MCP

            self._serving = Serving(self.authenticate)
        await self._serving(scope, receive, send)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what is still asked."""
        if self._serving is not None:
            await self._serving.aclose()

    def of(self, owner: str) -> OwnerMcpAccess:
        """What one owner's other programs may use."""
        return OwnerMcpAccess(self, owner, self._stores.of(owner).settings)

    async def authenticate(self, token: str, visitor: bool) -> OwnerMcpAccess | None:  # noqa: FBT001 - Serving's
        """What whoever shows a token may use; `None` where it is nobody's.

        Args:
            visitor: It came through a proxy or by an allowed name: there the owner of this machine has no token, for
                the assistant that answers may start that owner's programs.
        """
        parts = token.split(".")
        owner = _named(parts[1]) if len(token) <= _LONGEST_TOKEN and len(parts) == 3 else ""
        access = self.of(owner)
        known = bool(owner) and await access.knows(token)
        barred = (visitor and owner == LOCAL_OWNER) or (
            self._people is not None and not self._people.lets_programs_in(owner)
        )
        return access if known and not barred else None


class OwnerMcpAccess:
    """What one owner's other programs may use: a token of the owner's, the libraries, and the assistant.

    Args:
        shared: The way in for all.
        settings: Where the print of the owner's token is kept.
    """

    def __init__(self, shared: McpAccess, owner: str, settings: OwnerSettings) -> None:
        self._shared = shared
        self._settings = settings
        self.owner = owner

    # ---- the token

    async def token(self) -> TokenInfo | None:
        """Whether the owner has a token, and since when. Raises StorageError."""
        kept = await self._kept()
        return TokenInfo(float(kept["made"])) if kept else None

    async def renew_token(self) -> str:
        """A new token, to be shown once; the one before no longer counts. Raises StorageError."""
        name = urlsafe_b64encode(self.owner.encode()).decode("ascii").rstrip("=")
        token = f"{_BEGINNING}.{name}.{secrets.token_urlsafe(32)}"
        kept = {"hash": _print(token), "made": time.time()}
        await self._settings.change(_KEPT, lambda _: kept)
        return token

    async def revoke_token(self) -> None:
        """Let no other program in any more. Raises StorageError."""
        await self._settings.change(_KEPT, lambda _: None)

    async def knows(self, token: str) -> bool:
        """Whether it is the owner's token."""
        kept = await self._kept()
        expected = str(kept["hash"]) if kept else _print("")
        return hmac.compare_digest(expected, _print(token)) and kept is not None

    # ---- what it is for

    async def libraries(self) -> Sequence[str]:
        """The names of the owner's libraries."""
        async with self._shared.workspaces.open(self.owner) as workspace:
            return [library.name for library in await workspace.libraries.list()]

    async def search(self, question: str, library: str | None, k: int) -> list[dict[str, Any]]:
        """Passages of the owner's libraries, the best first.

        Args:
            library: The name of one of them; all if left out.
            k: How many passages.

        Raises:
            NotFoundError: The owner has no such library.
            StorageError: The index cannot be used.
        """
        async with self._shared.workspaces.open(self.owner) as workspace:
            documents = await _documents(workspace, library)
            if not documents or not question.strip():
                return []
            found = await (await workspace.index()).afind(question, k, documents=documents)
        return [passage.as_dict() for passage in found]

    async def ask(self, question: str) -> str:
        """The assistant's answer, with the places it cites.

        Raises:
            ConflictError: key `busy`: the owner's other programs are asking already.
            ToolTimeoutError: It took too long.
            ParlourError: The model cannot be had, or failed.
        """
        if self._shared.asking.get(self.owner, 0) >= _AT_ONCE:
            raise ConflictError("The assistant is busy with other questions.", hint="Ask again later.", key="busy")
        self._shared.asking[self.owner] = self._shared.asking.get(self.owner, 0) + 1
        try:
            async with asyncio.timeout(self._shared.seconds):
                return await self._answered(question)
        except TimeoutError:
            raise ToolTimeoutError("The answer took too long.", tool="ask", seconds=self._shared.seconds) from None
        finally:
            self._shared.asking[self.owner] -= 1
            if not self._shared.asking[self.owner]:
                del self._shared.asking[self.owner]

    # ---- inside

    async def _answered(self, question: str) -> str:
        transcript = Transcript()
        async with self._shared.workspaces.open(self.owner) as workspace:
            policy = workspace.rules.policy
            guard = RunGuard(await policy(), None, policy)  # without anybody to ask
            async with (
                self._shared.agent(workspace.services, await _documents(workspace, None)) as agent,
                aclosing(agent.stream([Message("user", question)], approval=guard)) as events,
            ):
                async for event in events:
                    transcript.apply(event)
        reply = transcript.messages()
        texts = [message.get_text_content() for message in reply if message.role == ASSISTANT]
        text = next((text for text in reversed(texts) if text.strip()), "")
        if not text:
            raise ToolError("The assistant gave no answer.")
        return text + _sources(reply, text)

    async def _kept(self) -> dict[str, Any] | None:
        kept: object = await self._settings.get(_KEPT)
        return cast("dict[str, Any]", kept) if isinstance(kept, dict) and {"hash", "made"} <= kept.keys() else None


def _print(token: str) -> str:
    """Enough for a token of 256 random bits: it cannot be guessed, however fast the function is."""
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def _named(part: str) -> str:
    try:
        return urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode()
    except ValueError:
        return ""


async def _documents(workspace: Workspace, library: str | None) -> list[str]:
    """The documents of one of the owner's libraries, or of all, as the index knows them. Raises NotFoundError."""
    known = await workspace.libraries.list()
    chosen = [one for one in known if library is None or one.name == library]
    if library is not None and not chosen:
        raise NotFoundError("There is no such library.", kind="library")
    opened = [await workspace.libraries.opened(one.id) for one in chosen]
    ids = [record.library_id for one in opened for record in one.documents if record.library_id is not None]
    return list(dict.fromkeys(ids))


def _sources(reply: list[Message], text: str) -> str:
    """The places that the answer cites, by their numbers."""
    passages = [passage for message in reply for passage in (message.extra or {}).get("passages", [])]
    lines: list[str] = []
    for number, passage in enumerate(passages, 1):
        if f"[{number}]" in text:
            page = f", page {passage['page']}" if passage.get("page") else ""
            where = passage.get("url") or f"{passage['document']}{page}"
            lines.append(f"[{number}] {where}")
    return "\n\n" + "\n".join(lines) if lines else ""
