"""What can be wrong with a file that is brought in: sentences by their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from core.errors import UnsupportedFormatError

if TYPE_CHECKING:
    from collections.abc import Mapping

SENTENCES: Final[Mapping[str, tuple[str, str]]] = {
    "import_no_file": ("There is no file {file}.", ""),
    "import_folder": ("{file} is a folder.", "Name a file in it."),
    "import_unknown": (
        "Parlour cannot read {file} as an export.",
        "It reads its own bundles and JSON, and exports of ChatGPT, Claude, Open WebUI and LibreChat. Nothing came in.",
    ),
    "import_stopped": ("{file} was called off.", "Nothing of it was taken in."),
    "import_damaged": ("{file} is damaged or was changed at {where}.", "Export it again; nothing was taken in."),
    "import_damaged_itself": ("{file} is damaged or was changed.", "Export it again; nothing was taken in."),
    "import_unsafe": (
        "{file} names a place that no export has: {where}.",
        "Do not use it; nothing was taken in.",
    ),
    "import_newer": ("{file} was made by a newer Parlour.", "Update Parlour, then bring it in; nothing was taken in."),
    "import_too_large": (
        "{file} holds more than is taken in at once: {where}.",
        "Export less at a time; nothing was taken in.",
    ),
    "import_too_large_itself": (
        "{file} holds more than is taken in at once.",
        "Export less at a time; nothing was taken in.",
    ),
    "import_too_many_files": (
        "{file} holds {n} files, more than are taken in at once.",
        "Export less at a time; nothing was taken in.",
    ),
    "import_too_many": (
        "{file} holds more than the {most} messages that are taken in at once.",
        "Export less at a time; nothing was taken in.",
    ),
    "demo_damaged": ("{file} is no recording, or was changed in line {line}.", "Record it again."),
    "demo_newer": ("{file} was recorded by a newer Parlour.", "Update Parlour, then play it."),
    "demo_too_large": ("{file} is larger than a recording may be, {size} MB.", "Record a shorter conversation."),
}


def problem(key: str, **blanks: Any) -> UnsupportedFormatError:
    """The error that says it; where the file itself is the place, its name is said once."""
    if blanks.get("where", "") == blanks.get("file") and f"{key}_itself" in SENTENCES:
        key = f"{key}_itself"
    text, hint = SENTENCES[key]
    return UnsupportedFormatError(text.format(**blanks), hint=hint.format(**blanks), key=key, **blanks)
