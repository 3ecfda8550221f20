"""Copies on this machine of what is elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

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
