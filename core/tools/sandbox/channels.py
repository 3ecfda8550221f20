"""The wires to one kernel: Jupyter's messages over sockets in a folder, signed; nothing of them is ever unpickled."""

from __future__ import annotations

import asyncio
import json
import secrets
from contextlib import suppress
from queue import Empty
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    import zmq.asyncio

_NUMBERS: Final = {"shell": 1, "iopub": 2, "stdin": 3, "control": 4, "hb": 5}
_LARGEST: Final = 16 << 20  # bytes of one message: what is larger ends the connection
_WAITING: Final = 16  # messages taken in before anybody reads them
_ASK_AGAIN: Final = 1.0  # seconds


class Channels:
    """What is said to a kernel and what comes back.

    Args:
        context: The sockets' context, of the loop that uses them.
        folder: The folder of the sockets as this process sees it.
    """

    def __init__(self, context: zmq.asyncio.Context, folder: Path) -> None:
        from jupyter_client.session import Session

        self._context = context
        self._folder = folder
        self._key = secrets.token_hex(32)
        self._session: Any = Session(key=self._key.encode(), username="parlour", copy_threshold=1 << 62)
        self._sockets: dict[str, Any] = {}

    def connection(self, folder: Path) -> str:
        """The connection file for the kernel, which sees the sockets in `folder`."""
        ports = {f"{name}_port": number for name, number in _NUMBERS.items()}
        told = {"transport": "ipc", "ip": f"{folder}/k", "key": self._key, "signature_scheme": "hmac-sha256"}
        return json.dumps({**told, **ports})

    def open(self) -> None:
        """Connect, as soon as the kernel is there."""
        import zmq

        for name, kind in (("shell", zmq.DEALER), ("control", zmq.DEALER), ("iopub", zmq.SUB)):
            one = self._context.socket(kind)
            one.setsockopt(zmq.LINGER, 0)
            one.setsockopt(zmq.MAXMSGSIZE, _LARGEST)
            one.setsockopt(zmq.RCVHWM, _WAITING)
            one.setsockopt(zmq.RECONNECT_IVL, 20)
            if name == "iopub":
                one.setsockopt(zmq.SUBSCRIBE, b"")
            one.connect(f"ipc://{self._folder}/k-{_NUMBERS[name]}")
            self._sockets[name] = one

    def close(self) -> None:
        """Let go of the sockets."""
        for one in self._sockets.values():
            one.close()
        self._sockets.clear()

    async def ready(self) -> None:
        """Wait until the kernel answers, and what it prints is heard.

        It is asked again and again: threads of a kernel that is just starting sometimes miss what came first, and see
        it when more comes.
        """
        asked: set[str] = set()
        is_heard = False
        while True:
            asked.add(await self._say("shell", "kernel_info_request", {}))
            with suppress(TimeoutError):
                async with asyncio.timeout(_ASK_AGAIN):
                    if not is_heard:
                        await self._hear("iopub")  # whatever it is: what the kernel prints from now on comes as well
                        is_heard = True
                    while (await self._hear("shell"))["parent_header"].get("msg_id") not in asked:
                        pass
                    return

    async def execute(self, code: str, *, silent: bool = False) -> AsyncGenerator[dict[str, Any], None]:
        """Run code; the messages that belong to it, without the last, which says that it is done."""
        content: dict[str, Any] = {
            "code": code,
            "silent": silent,
            "store_history": not silent,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        asked = await self._say("shell", "execute_request", content)
        while True:
            message = await self._hear("iopub")
            if message["parent_header"].get("msg_id") != asked:
                continue
            if message["msg_type"] == "status":
                if message["content"].get("execution_state") == "idle":
                    break
                continue
            yield message
        await self._answer(asked)

    async def interrupt(self) -> None:
        """Ask the kernel to break off what it runs."""
        await self._say("control", "interrupt_request", {})

    async def _say(self, channel: str, kind: str, content: dict[str, Any]) -> str:
        message: dict[str, Any] = self._session.msg(kind, content)
        await self._sockets[channel].send_multipart(self._session.serialize(message))
        return str(message["header"]["msg_id"])

    async def _answer(self, asked: str) -> None:
        while (await self._hear("shell"))["parent_header"].get("msg_id") != asked:
            pass

    async def _hear(self, channel: str) -> dict[str, Any]:
        """The next message that is whole and signed; what is not, is passed over."""
        while True:
            try:
                parts: list[bytes] = await self._sockets[channel].recv_multipart()
                _, own = self._session.feed_identities(parts)
                message = cast("dict[str, Any]", self._session.deserialize(own))
            except (ValueError, TypeError, KeyError, Empty):
                continue
            finally:
                await asyncio.sleep(0)  # where there always is a next message, nothing else would have its turn
            if isinstance(message.get("content"), dict) and isinstance(message.get("parent_header"), dict):
                return message
