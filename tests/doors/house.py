"""The real application on 127.0.0.1 behind its middleware, in a thread of its own, with a scripted service."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import SecretStr

from core.agents.base import Agent
from core.engine import Engine
from core.settings import Settings
from core.storage.api_keys import NewKey
from core.testing.model_server import ModelServer
from core.testing.script import Reply, refusal
from core.workspace.program import Program
from tests.webui.server.served_app import served

T = TypeVar("T")
OWNER = "local"


class House:
    """What tests need of it.

    Args:
        home: Its data folder.
        agents: A program's own, given the address of the service; they answer in place of the assistant.
        whole: Who asks is known by the settings; else anybody of this machine is its owner.

    Attributes:
        model: The service that answers what a test has let it say.
    """

    def __init__(
        self, home: Path, agents: Callable[[str], list[Agent]] | None = None, *, whole: bool = False, **settings: Any
    ) -> None:
        self._agents = agents
        self._whole = whole
        self._said: list[Reply] = []
        self.model = ModelServer(self._next)
        self._home = home
        self._settings = settings
        self._ready = threading.Event()
        self._over: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name="house")
        self.engine: Engine
        self.address = ""
        self.loop: asyncio.AbstractEventLoop

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"

    def start(self) -> House:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def stop(self) -> None:
        over = self._over
        assert over is not None
        self.loop.call_soon_threadsafe(over.set)
        self._thread.join()

    def do(self, work: Callable[[Engine], Awaitable[T]]) -> T:
        """Do something on the loop of the house."""

        async def done() -> T:
            return await work(self.engine)

        return asyncio.run_coroutine_threadsafe(done(), self.loop).result(60)

    def key(self, name: str, owner: str = OWNER, **given: Any) -> str:
        """A new key."""
        wanted = NewKey.checked({"name": name, "scopes": ["chat", "files", "embeddings"], **given})
        return self.do(lambda engine: engine.stores.of(owner).api_keys.create(wanted))[0]

    def says(self, *replies: Reply | str) -> None:
        """What the service answers next."""
        self.model.requests.clear()
        self._said[:] = [Reply(text=one) if isinstance(one, str) else one for one in replies]

    def _next(self, _: Any) -> Reply:
        return self._said.pop(0) if self._said else refusal(500, "The script has no more replies.")

    async def _live(self) -> None:
        self.loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        settings = Settings(
            home=self._home,
            base_url=self.model.base_url,
            model="scripted",
            api_key=SecretStr("any"),
            retrieval="keyword",
            check_claims=False,
            **self._settings,
        )
        program = Program(self._agents(self.model.base_url)) if self._agents is not None else None
        async with (
            Engine(settings, program=program) as self.engine,
            served(self.engine, settings, whole=self._whole) as house,
        ):
            self.address = house.address
            self._ready.set()
            await self._over.wait()


@contextmanager
def house_in(home: Path, agents: Callable[[str], list[Agent]] | None = None, **settings: Any) -> Iterator[House]:
    house = House(home, agents, **settings)
    with house.model:
        house.start()
        try:
            yield house
        finally:
            house.stop()
