"""The least that passing a reply on can cost: a server that sends a model's stream through as it comes."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route


def relay(base_url: str) -> Starlette:
    """Passes `POST /` on to a model's `chat/completions`."""
    client = httpx.AsyncClient(timeout=120, limits=httpx.Limits(max_connections=500))

    async def passed(request: Request) -> Response:
        body = await request.body()

        async def pieces() -> AsyncIterator[bytes]:
            headers = {"content-type": "application/json", "authorization": "Bearer any"}
            async with client.stream("POST", f"{base_url}/chat/completions", content=body, headers=headers) as answer:
                async for piece in answer.aiter_raw():
                    yield piece

        return StreamingResponse(pieces(), media_type="text/event-stream")

    return Starlette(routes=[Route("/", passed, methods=["POST"])])


if __name__ == "__main__":
    uvicorn.run(relay(sys.argv[1]), host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
