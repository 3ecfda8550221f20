"""What was brought in from elsewhere, and what was left out, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from core.importing.importing import Imported
    from webui.words import Words


def import_told(imported: Imported, words: Words) -> Iterator[str]:
    """What was brought in, what was here already, and what was left out, line by line."""
    count, here = len(imported.conversations), len(imported.here)
    if count or not here:
        what = _counted("import.messages", imported.messages, words)
        if imported.files:
            what = words("import.and_files", messages=what, files=_counted("import.files", imported.files, words))
        yield _counted("import.done", count, words, what=what, source=imported.source)
    if here:
        yield _counted("import.here" if count else "import.all_here", here, words)
    yield from import_left_out(imported.left_out, words)


def import_left_out(counts: Mapping[str, int], words: Words) -> Iterator[str]:
    """What was left out, a sentence for each reason."""
    for reason, count in sorted(counts.items()):
        if count:
            yield _counted(f"import.left_{reason}", count, words)


def _counted(key: str, count: int, words: Words, **blanks: str) -> str:
    return words(f"{key}_one" if count == 1 else key, n=count, **blanks)
