"""The wires to a kernel, with a kernel of the test's at their other end."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import zmq
import zmq.asyncio

from core.tools.sandbox.kernel import Channels

pytestmark = pytest.mark.anyio


async def test_a_kernel_that_missed_the_first_question_is_asked_again(tmp_path: Path) -> None:
    from jupyter_client.session import Session

    with ExitStack() as stack:
        context = stack.enter_context(zmq.asyncio.Context())
        channels = Channels(context, tmp_path)
        told = json.loads(channels.connection(tmp_path))
        shell = stack.enter_context(closing(context.socket(zmq.ROUTER)))
        shell.bind(f"ipc://{tmp_path}/k-{told['shell_port']}")
        printed = stack.enter_context(closing(context.socket(zmq.XPUB)))  # it welcomes nobody
        printed.bind(f"ipc://{tmp_path}/k-{told['iopub_port']}")
        session: Any = Session(key=told["key"].encode())
        channels.open()
        stack.callback(channels.close)

        async def answer() -> None:
            await shell.recv_multipart()  # missed
            identity, *parts = await shell.recv_multipart()
            asked = session.deserialize(session.feed_identities(parts)[1])
            status = session.msg("status", {"execution_state": "idle"}, parent=asked)
            await printed.send_multipart(session.serialize(status))
            reply = session.msg("kernel_info_reply", {}, parent=asked)
            await shell.send_multipart([identity, *session.serialize(reply)])

        async with asyncio.timeout(180):
            await asyncio.gather(channels.ready(), answer())
