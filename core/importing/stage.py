"""Where what is brought in waits until all of it was read: rows in a file, the bytes of files in a folder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from core.storage.arriving import ArrivingConversation, ArrivingTurn
from core.storage.base import FileRecord, new_id
from core.storage.files import media_type_of, shown_name
from core.storage.kept_pages import PagePlace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

_UNCHECKED: Final = 64 << 20  # bytes that may come before the next check


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file that came along, by the id that messages name it by."""

    id: str
    name: str
    path: Path
    media_type: str
    sha256: str = ""

    @property
    def record(self) -> FileRecord:
        """What its row will say, but for whose it is."""
        return FileRecord(self.id, "", self.name, self.media_type, self.path.stat().st_size, self.sha256, 0.0)


class Stage:
    """Keeps conversations and files in a folder; only one conversation is in memory.

    Args:
        folder: Holds them.
        check: Called now and then with the bytes that the files will have; raises where that is too much.
        look: To be called at each turn that is read or stored; it may raise to end the work.

    Attributes:
        conversations: How many there are.
        messages: How many turns they have.
        files: What came along.
        disowned: In how many replies of a conversation something was said to be counted by program, by its id.
    """

    def __init__(self, folder: Path, check: Callable[[int], None], look: Callable[[], None] = lambda: None) -> None:
        self._folder = folder
        self._check = check
        self.look = look
        self._bytes = self._checked_at = 0
        self._rows = folder / "rows.jsonl"
        self._rows.touch()
        self.conversations = self.messages = 0
        self.files: dict[str, StagedFile] = {}
        self.disowned: dict[str, int] = {}
        self._left: frozenset[str] = frozenset()

    def add(self, one: ArrivingConversation) -> None:
        """Keep a conversation. Raises OSError."""
        self.conversations += 1
        self.messages += len(one.turns)
        turns = [{"row": turn.row, "run": turn.run, "log": turn.log, "steps": turn.steps} for turn in one.turns]
        pages = [asdict(page) for page in one.pages]
        kept = {
            "row": one.row,
            "turns": turns,
            "files": one.files,
            "documents": one.documents,
            "pages": pages,
            "origin": one.origin,
            "retold": one.retold,
        }
        line = json.dumps(kept, ensure_ascii=True, separators=(",", ":"))
        with self._rows.open("a", encoding="ascii") as rows:
            rows.write(f"{line}\n")

    def place(self, size: int) -> Path:
        """Where the bytes of the next file go, as many as `size`. Raises what `check` raises."""
        self._bytes += size
        if self._bytes >= self._checked_at:
            self._check(self._bytes)
            self._checked_at = self._bytes + _UNCHECKED
        return self._folder / f"{len(self.files)}.bin"

    def keep(self, name: str, path: Path, *, file_id: str = "", sha256: str = "") -> StagedFile:
        """Note a file whose bytes are at its place."""
        shown = shown_name(name)
        file = StagedFile(file_id or new_id(), shown, path, media_type_of(path, shown), sha256)
        self.files[file.id] = file
        return file

    def name(self, file_id: str, name: str) -> None:
        """Call a file what its conversation calls it."""
        file = self.files[file_id]
        self.files[file_id] = replace(file, name=name, media_type=media_type_of(file.path, name))

    def leave(self, ids: Collection[str]) -> None:
        """Pass over these conversations from now on, and over files that no other one needs."""
        self._left = frozenset(ids)
        self.disowned = {talk: count for talk, count in self.disowned.items() if talk not in self._left}
        self.conversations = self.messages = 0
        needed: set[str] = set()
        for one in self:
            self.conversations += 1
            self.messages += len(one.turns)
            needed.update(one.files)
        self.files = {name: file for name, file in self.files.items() if name in needed}

    def __iter__(self) -> Iterator[ArrivingConversation]:
        with self._rows.open(encoding="ascii") as rows:
            for line in rows:
                one = json.loads(line)
                if one["row"]["id"] in self._left:
                    continue
                turns = tuple(
                    ArrivingTurn(turn["row"], turn["run"], tuple(turn["log"]), tuple(turn["steps"]))
                    for turn in one["turns"]
                )
                pages = tuple(PagePlace(**page) for page in one["pages"])
                yield ArrivingConversation(
                    one["row"],
                    turns,
                    tuple(one["files"]),
                    tuple(one["documents"]),
                    pages,
                    one["origin"],
                    retold=one["retold"],
                )
