"""The process itself: it tries which sandbox holds here, serves until it is told to stop, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import logging
import sys
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from core.bridge.watchdog import watched
from core.errors import ParlourError, SettingsError
from core.observing import gauge
from core.readiness import Readiness
from core.resources import raise_descriptor_limit
from core.tools.sandbox.kernels import Kernels, drop_root, make_root
from webui.observing import observing
from webui.sandbox_role.app import Owners, SandboxApp
from webui.sandbox_role.given import GivenHere
from webui.server import Drain, Server, address_of, bind
from webui.startup_app import StartupApp

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from starlette.types import ASGIApp

    from core.settings import Settings

_LOG = logging.getLogger(__name__)
_NOT_NEEDED = ("secret", "database", "redis", "aws_secret_access_key", "api_key", "openai_api_key", "dashscope_api_key")


def serve_sandbox(settings: Settings, *, last: float | None = None) -> int:
    """Run code for other Parlours until a signal says stop.

    Args:
        settings: Those of a process whose role is `sandbox`.
        last: Seconds after a signal in which the process ends, whatever hangs; left out, it is waited for.

    Returns:
        The exit code: 1 where something went wrong that was logged.

    Raises:
        ParlourError: There is no secret, the port is taken, or no sandbox holds on this machine.
    """
    if not settings.sandbox_key:
        raise SettingsError(
            "PARLOUR_SANDBOX_SECRET is not set, and a sandbox runs code only for Parlours that have the same.",
            hint="Set it here and there to one long word, such as `openssl rand -hex 32` makes it.",
        )
    raise_descriptor_limit()
    if settings.sandbox_secret is not None and (idle := [one for one in _NOT_NEEDED if getattr(settings, one)]):
        named = ", ".join(f"PARLOUR_{one.upper()}" for one in idle)
        _LOG.warning("A sandbox needs no %s: leave it out here, so that no code can ever come by it.", named)
    sock = bind(settings.host, settings.port, next_free=settings.may_move_port)
    failures: list[Exception] = []

    def failed(error: Exception) -> None:
        failures.append(error)
        server.should_exit = True

    address = address_of(settings.host, sock)
    app = StartupApp(partial(_opened, settings, address), failed, observing(settings))
    wait = settings.drain_seconds
    drain = Drain(wait, app.drain, lambda: app.busy) if wait else None
    server = Server(app, app.close, write_seconds=settings.write_seconds, drain=drain, last=last)
    server.run(sockets=[sock])
    for failure in failures:
        if isinstance(failure, ParlourError):
            raise failure
        _LOG.error("The sandbox cannot be opened.", exc_info=failure)
    return 1 if failures else 0


@asynccontextmanager
async def _opened(settings: Settings, address: str, take: Callable[[Readiness], None]) -> AsyncGenerator[ASGIApp]:
    """Try what holds here, and serve it. Raises OSError, SettingsError."""
    readiness = Readiness()
    take(readiness)
    folder, lock = await asyncio.to_thread(make_root)
    folder.chmod(0o700)
    owners = Owners()
    kernels = Kernels(wanted=settings.code, private=(folder,), most=settings.sandbox_kernels, most_of=owners.most_of)
    try:
        choice = await kernels.chosen()
        if not choice.driver:
            raise SettingsError(
                f"No code can be run on this machine: {choice.reason}.",
                hint="A sandbox needs Linux with Landlock, or bubblewrap, and the extra code.",
                key="sandbox_off",
                reason=choice.reason,
            )
        kernels.warm()
        gauge("parlour.sandbox.kernels", "Conversations that have an interpreter.", lambda: len(kernels.keys))
        app = SandboxApp(kernels, owners, GivenHere(folder), settings.sandbox_key, settings.sandbox_kernels)
        tidying = asyncio.create_task(app.tidy(), name="sandbox-files")
        readiness.mark("database", "ready")  # it has none that it could wait for
        sys.stdout.write(f"Parlour runs code at {address}, in {choice.driver}.\n")
        sys.stdout.flush()
        try:
            with watched(asyncio.get_running_loop()):
                yield app
        finally:
            tidying.cancel()
            await asyncio.wait({tidying})
    finally:
        await kernels.aclose()
        drop_root(folder, lock)
