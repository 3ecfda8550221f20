"""What of a conversation a service may be sent: the files that its user added, and nobody else's."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from core.engine import Engine
from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.testing.script import Reply as Say
from core.testing.scripted_model import ScriptedModel
from tests.core.talks import talk_of
from tests.core.tools.openapi.test_openapi_calls import Service

pytestmark = pytest.mark.anyio

FORM = {"type": "object", "properties": {"file": {"type": "string", "format": "binary"}}}
DATA = b"a,1\n" * 500


def document(port: int) -> str:
    operation = {"summary": "Keep", "requestBody": {"content": {"multipart/form-data": {"schema": FORM}}}}
    root = {"openapi": "3.0.0", "info": {"title": "Safe"}, "servers": [{"url": f"http://127.0.0.1:{port}"}]}
    return json.dumps({**root, "paths": {"/x": {"post": {**operation, "operationId": "put"}}}})


def sends(name: str) -> Say:
    return Say(calls=(("Safe-put", json.dumps({"body": {"file": name}})),))


async def test_a_service_is_sent_what_the_user_added_once_the_user_has_seen_name_and_size(tmp_path: Path) -> None:
    service = Service()
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    service.port = server.sockets[0].getsockname()[1]
    model = ScriptedModel(sends("theirs.csv"), sends("elsewhere.csv"), sends("mine.csv"), "Sent.")
    home = tmp_path / "home"
    async with Engine(Settings.load(home=home, code="off"), model=model) as engine:
        owner = LOCAL_OWNER  # who may name services of this machine
        await engine.toolbox.of(owner).openapi.add(document(service.port), name="Safe")
        talk = await engine.stores.of(owner).conversations.create()
        mine = await engine.stores.of(owner).files.put("mine.csv", DATA)
        await engine.stores.of(owner).files.put("elsewhere.csv", b"of no conversation")
        await engine.stores.of("bob").files.put("theirs.csv", b"secret")
        run = await talk_of(engine, owner, talk.id).ask("Send it.", [mine.id])
        wanted: dict[str, str] = {}
        async with asyncio.timeout(180):
            async for _ in run.log.follow():
                for block in run.reply().asking:
                    if block.asked is not None and block.call_id not in wanted:
                        wanted[block.call_id] = block.asked.wants["en"]
                        await talk_of(engine, owner, talk.id).decide(block.call_id, allowed=True)
        assert await run.wait() == "complete", run.error
    server.close()
    await server.wait_closed()
    assert list(wanted.values()) == [
        "send to Safe: Keep, with theirs.csv (not here)",
        "send to Safe: Keep, with elsewhere.csv (not here)",
        "send to Safe: Keep, with mine.csv (2 kB)",
    ]
    assert len(service.bodies) == 1
    assert DATA in service.bodies[0]
