"""What a backup says of itself: its form, the schema, how much there is, and size and SHA-256 of every file."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final, cast

NAME: Final = "parlour-backup.json"
FORM: Final = 1
COUNTED: Final = ("conversations", "messages", "files", "documents")

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SCHEMA = re.compile(r"[0-9]{4,8}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A backup's contents.

    Args:
        made: When, in Unix seconds.
        schema: The step of the database's schema.
        counts: Rows of the tables that people know.
        entries: Size in bytes and SHA-256 of every file, by its name in the data folder.
        form: How the file is built; a higher one is of a newer Parlour.
    """

    made: float
    schema: str
    counts: dict[str, int]
    entries: dict[str, tuple[int, str]]
    form: int = FORM

    def to_json(self) -> str:
        """As it stands in the file."""
        entries = {name: {"size": size, "sha256": digest} for name, (size, digest) in self.entries.items()}
        values = {"form": self.form, "made": self.made, "schema": self.schema, "counts": self.counts}
        return json.dumps({**values, "entries": entries}, ensure_ascii=True, indent=1)

    @classmethod
    def from_json(cls, text: bytes) -> Manifest:
        """Read it; of a newer form only the form is known.

        Raises:
            ValueError: It is no manifest.
        """
        try:
            raw: Any = json.loads(text)
            form = int(raw["form"])
            if form > FORM:
                return cls(0.0, "", {}, {}, form)
            schema = str(raw["schema"])
            counts = {str(name): int(count) for name, count in cast("dict[str, Any]", raw["counts"]).items()}
            entries = {str(name): _entry(entry) for name, entry in cast("dict[str, Any]", raw["entries"]).items()}
            if not _SCHEMA.fullmatch(schema):
                raise ValueError(schema)
            return cls(float(raw["made"]), schema, counts, entries, form)
        except (KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            raise ValueError("no manifest") from error


def _entry(entry: Any) -> tuple[int, str]:
    size, digest = entry["size"], str(entry["sha256"])
    if type(size) is not int or size < 0 or not _SHA256.fullmatch(digest):
        raise ValueError(digest)
    return size, digest
