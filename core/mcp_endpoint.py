"""What an owner's other programs may use of Parlour, over MCP: a token, searching libraries, asking the assistant.

The address is `/mcp` of the page's own, and every request carries a token as `Authorization: Bearer …`: the owner's,
which lasts, or one of a program that the owner let in, which soon runs out and is renewed. Nobody is there to be asked:
what a person would have to agree to is refused.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import aclosing
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self, cast

from core.errors import ConflictError, NotFoundError, ParlourError, ToolError, ToolTimeoutError
from core.llm.ledger import recorded_by
from core.mcp.app_addresses import APP_SCOPES, MCP_PATH, is_resource
from core.messages.message import ASSISTANT, Message
from core.messages.transcript import Transcript
from core.reading.libraries import names_in
from core.runs.account import Account
from core.runs.approvals import RunGuard
from core.storage.app_tokens import ACCESS_PREFIX
from core.storage.base import LOCAL_OWNER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from starlette.types import Receive, Scope, Send

    from core.agents.assistant import Assistant
    from core.mcp.apps import Apps
    from core.mcp.serving import Serving
    from core.messages.events import Event
    from core.messages.message import Usage
    from core.people.people import People
    from core.storage.api_keys import ApiKey
    from core.storage.owner_settings import OwnerSettings
    from core.storage.stores import Stores
    from core.workspace.services import OwnerServices
    from core.workspace.workspace import Workspace
    from core.workspace.workspaces import Workspaces

_LOG = logging.getLogger(__name__)
PATH = MCP_PATH
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
        agent: Makes who answers: given what a workspace works with, and what each document within reach is called.
        seconds: How long an answer may take.
        people: Know whose programs may come in; left out, everybody's may.
        root: The path that Parlour is shown under; "" for the root of its site.
        secret: The installation's, by which programs are let in; left out, none is.

    Attributes:
        asking: How many questions of an owner's programs are being answered.
    """

    def __init__(  # noqa: PLR0913 - each by name
        self,
        stores: Stores,
        workspaces: Workspaces,
        *,
        agent: Callable[[OwnerServices, dict[str, list[str]]], AbstractAsyncContextManager[Assistant]],
        seconds: float,
        people: People | None = None,
        root: str = "",
        secret: str = "",
    ) -> None:
        self.stores = stores
        self._people = people
        self._root = root
        self._secret = secret
        self._apps: Apps | None = None
        self.workspaces = workspaces
        self.agent = agent
        self.seconds = seconds
        self._serving: Serving | None = None
        self._beside: list[Serving] = []
        self._late: set[asyncio.Task[Any]] = set()
        self.asking: dict[str, int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request of another program."""
        if self._serving is None:
            from core.mcp.serving import Serving  # few installations are asked over MCP

            self._serving = Serving(self.authenticate, self._root, lets_in=bool(self._secret))
        await self._serving(scope, receive, send)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what is still asked."""
        for serving in (self._serving, *self._beside):
            if serving is not None:
                await serving.aclose()
        if self._late:
            await asyncio.wait(set(self._late), timeout=5.0)

    def end_with_this(self, serving: Serving) -> None:
        """Let another one end together with this."""
        self._beside.append(serving)

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Let something be written down that nobody waits for, who asked may have left."""
        task = asyncio.ensure_future(_noted(work))
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    def of(self, owner: str) -> OwnerMcpAccess:
        """What one owner's other programs may use."""
        return OwnerMcpAccess(self, owner, self.stores.of(owner).settings)

    @property
    def apps(self) -> Apps:
        """Lets programs in that their owner agrees to."""
        if self._apps is None:
            from core.mcp.apps import Apps  # likewise

            self._apps = Apps(self.stores.apps, self._secret)
        return self._apps

    async def authenticate(self, token: str, visitor: bool, base: str = "") -> OwnerMcpAccess | None:  # noqa: FBT001
        """What whoever shows a token may use; `None` where it is nobody's.

        Args:
            visitor: It came through a proxy or by an allowed name: there the owner of this machine has no token, for
                the assistant that answers may start that owner's programs.
            base: The address that it was shown at: a program's token is for one alone.
        """
        access = await (self._by_app(token, base) if token.startswith(ACCESS_PREFIX) else self._by_token(token))
        return access if access is not None and self.lets_in(access.owner, visitor=visitor) else None

    def lets_in(self, person_id: str, *, visitor: bool) -> bool:
        """Whether programs of somebody may come in at all.

        Args:
            visitor: As of `authenticate`.
        """
        is_barred = visitor and person_id == LOCAL_OWNER
        return not is_barred and (self._people is None or self._people.lets_programs_in(person_id))

    async def _by_token(self, token: str) -> OwnerMcpAccess | None:
        parts = token.split(".")
        owner = _named(parts[1]) if len(token) <= _LONGEST_TOKEN and len(parts) == 3 else ""
        access = self.of(owner)
        access.is_counted = True
        return access if owner and await access.knows(token) else None

    async def _by_app(self, token: str, base: str) -> OwnerMcpAccess | None:
        found = await self.stores.apps.find("access", token)
        if found is None or not is_resource(found.app.resource, base):
            return None
        access = self.of(found.key.owner_id)
        access.app, access.may, access.is_counted = found.key, frozenset(found.scopes), True
        return access


class OwnerMcpAccess:
    """What one owner's other programs may use: a token of the owner's, the libraries, and the assistant.

    Args:
        shared: The way in for all.
        settings: Where the print of the owner's token is kept.

    Attributes:
        may: What for: `search`, `ask`, or both.
        app: The program that shows a token of its own; `None` for the owner's token.
        is_counted: Whether what is used counts towards the owner's limits.
    """

    def __init__(self, shared: McpAccess, owner: str, settings: OwnerSettings) -> None:
        self._shared = shared
        self._settings = settings
        self.owner = owner
        self.may = frozenset[str](APP_SCOPES)
        self.app: ApiKey | None = None
        self.is_counted = False

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
            if not question.strip():
                return []
            async with workspace.services.index_for(documents, documents) as index:
                found = await index.afind(question, k, documents=[*documents]) if index is not None else []
        if self.is_counted:
            self._shared.later(self._note(None, questions=0))
        return [passage.as_dict() for passage in found]

    async def ask(self, question: str, heard: Callable[[Event], Awaitable[None]] | None = None) -> str:
        """The assistant's answer, with the places it cites.

        Args:
            heard: Is given each event on the way to it.

        Raises:
            ConflictError: key `busy`: the owner's other programs are asking already.
            TooManyRequestsError: The owner used all that may be used for now.
            ToolTimeoutError: It took too long.
            ParlourError: The model cannot be had, or failed.
        """
        if self._shared.asking.get(self.owner, 0) >= _AT_ONCE:
            raise ConflictError("The assistant is busy with other questions.", hint="Ask again later.", key="busy")
        # Before anything is waited for: others that come in the same moment find it here.
        self._shared.asking[self.owner] = self._shared.asking.get(self.owner, 0) + 1
        try:
            if self.is_counted:
                await self._shared.stores.use.check(self.owner)
            return await self._noted_answer(question, heard or _unheard)
        finally:
            self._shared.asking[self.owner] -= 1
            if not self._shared.asking[self.owner]:
                del self._shared.asking[self.owner]

    # ---- inside

    async def _noted_answer(self, question: str, heard: Callable[[Event], Awaitable[None]]) -> str:
        account = Account()
        try:
            with recorded_by(account):
                async with asyncio.timeout(self._shared.seconds):
                    return await self._answered(question, heard)
        except TimeoutError:
            raise ToolTimeoutError("The answer took too long.", tool="ask", seconds=self._shared.seconds) from None
        finally:
            if self.is_counted:
                self._shared.later(self._count(account))

    async def _answered(self, question: str, heard: Callable[[Event], Awaitable[None]]) -> str:
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
                    await heard(event)
        reply = transcript.messages()
        texts = [message.get_text_content() for message in reply if message.role == ASSISTANT]
        text = next((text for text in reversed(texts) if text.strip()), "")
        if not text:
            raise ToolError("The assistant gave no answer.")
        return text + _sources(reply, text)

    async def _count(self, account: Account) -> None:
        await self._note(await account.usage(), questions=1)

    async def _note(self, usage: Usage | None, *, questions: int) -> None:
        """Add what a request took to what the owner used, and to the account of the program."""
        stores = self._shared.stores
        if self.app is not None:
            await stores.of(self.owner).api_keys.note_use(self.app.id, usage, questions=questions)
        elif questions:
            await stores.use.add(self.owner, usage, questions=questions)

    async def _kept(self) -> dict[str, Any] | None:
        kept: object = await self._settings.get(_KEPT)
        return cast("dict[str, Any]", kept) if isinstance(kept, dict) and {"hash", "made"} <= kept.keys() else None


async def _unheard(event: Event) -> None:
    del event


async def _noted(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except ParlourError as error:
        _LOG.warning("What a program used could not be noted: %s", error)


def _print(token: str) -> str:
    """Enough for a token of 256 random bits: it cannot be guessed, however fast the function is."""
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def _named(part: str) -> str:
    try:
        return urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode()
    except ValueError:
        return ""


async def _documents(workspace: Workspace, library: str | None) -> dict[str, list[str]]:
    """The documents of one of the owner's libraries, or of all, by their ids in the index: what each is called.

    Raises NotFoundError.
    """
    known = await workspace.libraries.list()
    chosen = [one for one in known if library is None or one.name == library]
    if library is not None and not chosen:
        raise NotFoundError("There is no such library.", kind="library")
    return names_in([await workspace.libraries.opened(one.id) for one in chosen])


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
