"""A program that asks an agent with the A2A project's own client, and prints what it got as JSON, line by line.

It runs in an environment of its own: `a2a_program.py ADDRESS TOKEN VERSION`.
"""

# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import CancelTaskRequest, GetTaskRequest, Message, Part, Role, SendMessageRequest


async def asked(client: Any, question: str, context: str = "") -> Any:
    """The task that a question became, with the kinds of what came before its end."""
    part = Part(text=question)
    message = Message(message_id=question, role=Role.ROLE_USER, parts=[part], context_id=context)
    kinds: list[str] = []
    task = ""
    async for event in client.send_message(SendMessageRequest(message=message)):
        one = event[0] if isinstance(event, tuple) else event
        kinds.append(one.WhichOneof("payload"))
        task = one.task.id or task
    got = await client.get_task(GetTaskRequest(id=task))
    texts = [part.text for artifact in got.artifacts for part in artifact.parts]
    told = {"kinds": kinds, "state": int(got.status.state), "texts": texts, "context": got.context_id}
    print(json.dumps(told))
    return got


async def main(address: str, token: str, version: str) -> None:
    """Ask twice, in one conversation, whole and as a stream; then cancel what is over."""
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=30) as http:
        card = await A2ACardResolver(http, address).get_agent_card()
        print(json.dumps({"name": card.name, "versions": [one.protocol_version for one in card.supported_interfaces]}))
        for one in [one for one in card.supported_interfaces if one.protocol_version != version]:
            card.supported_interfaces.remove(one)
        context = ""
        for streaming in (True, False):
            client = ClientFactory(ClientConfig(httpx_client=http, streaming=streaming)).create(card)
            got = await asked(client, "What do herons do?", context)
            context = got.context_id
        try:
            await client.cancel_task(CancelTaskRequest(id=got.id))
        except Exception as error:
            print(json.dumps({"refused": type(error).__name__}))
        if version == "1.0":
            return
        async with httpx.AsyncClient(headers={"authorization": "Bearer wrong"}) as stranger:
            client = ClientFactory(ClientConfig(httpx_client=stranger, streaming=False)).create(card)
            try:
                await asked(client, "Let me in?")
            except Exception as error:
                print(json.dumps({"refused": type(error).__name__}))


asyncio.run(main(*sys.argv[1:]))
