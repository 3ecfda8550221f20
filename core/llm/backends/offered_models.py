"""Asks a service which models it offers."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import httpx2

from core.errors import ParlourError
from core.llm.backends.http_clients import DIRECT, bounded
from core.llm.backends.openai_public import public_client
from core.net.unpacked import ASKED

_WITHIN = 8.0
_MOST_BYTES = 2 * 1024 * 1024
_MOST = 500
_LONGEST = 200


async def offered_models(address: str, key: str, *, public_only: bool = False) -> list[str]:
    """The names of the models, in the order of the alphabet; empty where the service does not say.

    Args:
        address: Of a service that speaks the OpenAI protocol.
        key: Its key; goes there and nowhere else.
        public_only: Call the open internet alone.
    """
    # In a thread: reading the trusted certificates takes a while.
    client = await asyncio.to_thread(public_client if public_only else _client)
    try:
        async with asyncio.timeout(_WITHIN), client:
            raw = await _read(client, f"{address.rstrip('/')}/models", key)
        return _names(json.loads(raw))
    except (httpx2.HTTPError, httpx2.InvalidURL, ParlourError, ValueError, TimeoutError):
        return []


def _client() -> httpx2.AsyncClient:
    hooks = {"response": [bounded]}
    return httpx2.AsyncClient(mounts=DIRECT, follow_redirects=False, headers=ASKED, event_hooks=hooks)


async def _read(client: httpx2.AsyncClient, url: str, key: str) -> bytes:
    headers = {"authorization": f"Bearer {key}", "accept": "application/json"}
    pieces: list[bytes] = []
    size = 0
    async with client.stream("GET", url, headers=headers, timeout=_WITHIN) as answer:
        answer.raise_for_status()
        async for piece in answer.aiter_bytes():
            size += len(piece)
            if size > _MOST_BYTES:
                raise ValueError("The list is too long to be one.")
            pieces.append(piece)
    return b"".join(pieces)


def _names(told: Any) -> list[str]:
    listed = cast("dict[str, Any]", told).get("data") if isinstance(told, dict) else None
    models = cast("list[Any]", listed) if isinstance(listed, list) else []
    names = {str(cast("dict[str, Any]", one).get("id") or "") for one in models if isinstance(one, dict)}
    return sorted((name for name in names if name and len(name) <= _LONGEST and name.isprintable()), key=str.lower)[
        :_MOST
    ]
