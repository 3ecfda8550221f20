"""What the page asks for in JSON is answered even while the app ends under it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from webui.context import answered_in_time

pytestmark = pytest.mark.anyio


async def test_work_that_is_called_off_because_the_app_ends_is_answered_with_503() -> None:
    inner: asyncio.Task[None] = asyncio.create_task(asyncio.sleep(3600))

    async def work() -> dict[str, Any]:
        await inner
        return {}

    asyncio.get_running_loop().call_soon(inner.cancel)
    answer = await answered_in_time(work(), {"cache-control": "no-store"})
    assert answer.status_code == 503
    assert answer.headers["cache-control"] == "no-store"
