"""Office files are zip archives; some are made to fill the memory of whoever opens them."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

from core.errors import BrokenDocumentError

if TYPE_CHECKING:
    from pathlib import Path

_ENTRIES = 2_000
_BYTES = 400 * 1024 * 1024
_RATIO = 100
_SMALL = 20 * 1024 * 1024  # below it no ratio is dangerous
_TEXT_BYTES = 100 * 1024 * 1024


def check_zip(path: Path) -> None:
    """Refuse an archive that is damaged or grows too large when it is unpacked.

    The declared sizes can be trusted: `zipfile` never reads beyond them.

    Raises:
        BrokenDocumentError: With the key `document_too_large` for what unpacks too large.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise BrokenDocumentError("The file is damaged: its archive cannot be opened.") from error
    total = sum(entry.file_size for entry in entries)
    packed = max(1, sum(entry.compress_size for entry in entries))
    text = max((entry.file_size for entry in entries if entry.filename.endswith(".xml")), default=0)
    bursts = total > _SMALL and total / packed > _RATIO
    if len(entries) > _ENTRIES or total > _BYTES or text > _TEXT_BYTES or bursts:
        raise BrokenDocumentError(
            "The file is far larger inside than it looks.", key="document_too_large", hint="Split it into smaller ones."
        )
