"""What was brought in from elsewhere, and what was left out, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from core.importing.importing import Imported
    from webui.words import Words


def import_told(imported: Imported, words: Words) -> Iterator[str]:
    """What was brought in, and what was left out, line by line."""
    count = len(imported.conversations)
    key = "import.done_one" if count == 1 else "import.done"
    yield words(key, n=count, messages=imported.messages, files=imported.files, source=imported.source)
    yield from import_left_out(imported.left_out, words)


def import_left_out(counts: Mapping[str, int], words: Words) -> Iterator[str]:
    """What was left out, a sentence for each reason."""
    for reason, count in sorted(counts.items()):
        if count:
            yield words(f"import.left_{reason}", n=count)
