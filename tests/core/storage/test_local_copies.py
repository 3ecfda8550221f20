"""Copies on this machine of what is elsewhere."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from core.storage import local_copies
from core.storage.local_copies import LocalCopies


@pytest.mark.anyio
async def test_a_copy_that_was_fetched_anew_outlives_who_still_reads_the_deleted_one(tmp_path: Path) -> None:
    async def fill(draft: Path) -> None:
        draft.write_bytes(b"bytes")

    copies = LocalCopies(tmp_path, 1000)
    first = copies.held("key", "", "name", fill)
    await first.__aenter__()
    await copies.forget("key")
    async with copies.held("key", "", "name", fill) as path:
        await first.__aexit__(None, None, None)
        assert path.read_bytes() == b"bytes"
    copies.close()


@pytest.mark.anyio
async def test_a_copy_that_has_come_at_this_moment_is_not_taken_for_the_deleted_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside: Any = local_copies
    copies, put, loop = LocalCopies(tmp_path, 1000), inside._put, asyncio.get_running_loop()
    reads, leaves = asyncio.Event(), asyncio.Event()

    async def fill(draft: Path) -> None:
        draft.write_bytes(b"bytes")

    async def read_the_deleted_one() -> None:
        async with copies.held("key", "", "name", fill):
            reads.set()
            await leaves.wait()

    async def leave() -> None:
        leaves.set()
        for _ in range(10):
            await asyncio.sleep(0)

    def put_as_it_leaves(draft: Path, path: Path) -> int:
        size = put(draft, path)
        asyncio.run_coroutine_threadsafe(leave(), loop).result(60)
        return size

    first = asyncio.create_task(read_the_deleted_one())
    await reads.wait()
    await copies.forget("key")
    monkeypatch.setattr(local_copies, "_put", put_as_it_leaves)
    async with copies.held("key", "", "name", fill) as path:
        assert path.read_bytes() == b"bytes"
    await first
    copies.close()


@pytest.mark.anyio
async def test_a_deleted_copy_goes_where_it_cannot_be_fetched_anew(tmp_path: Path) -> None:
    copies, begun, fails = LocalCopies(tmp_path, 1000), asyncio.Event(), asyncio.Event()

    async def fill(draft: Path) -> None:
        draft.write_bytes(b"bytes")

    async def fail(draft: Path) -> None:
        begun.set()
        await fails.wait()
        raise OSError(str(draft))

    async def fetch() -> None:
        async with copies.held("key", "", "name", fail):
            pass

    async with copies.held("key", "", "name", fill) as path:
        await copies.forget("key")
        second = asyncio.create_task(fetch())
        await begun.wait()
        asyncio.get_running_loop().call_soon(fails.set)
    with pytest.raises(OSError, match="drafts"):
        await second
    assert not path.exists()
    copies.close()
