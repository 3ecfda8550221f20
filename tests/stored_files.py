"""Stored files as tests look at them: where they are in the data folder."""

from __future__ import annotations

from pathlib import Path

from core.storage.base import FileRecord
from core.storage.files import FileStore


async def stored(files: FileStore, file_id: str) -> tuple[FileRecord, Path]:
    """What is known of a file in a data folder, and where it is."""
    async with files.local(file_id) as (record, path):
        return record, path
