"""Reads a bundle into a stage, after every byte of it was held against its manifest."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, Final, cast

from core.export.bundle import FORMAT, MANIFEST, VERSION
from core.importing.problems import problem
from core.messages.computed import disown
from core.messages.message import Message, Usage
from core.messages.transcript import Transcript
from core.rag.document import Passage
from core.runs.log import message_events
from core.runs.reply import Reply
from core.runs.rows import logged_of
from core.storage.arriving import ArrivingConversation, ArrivingTurn
from core.storage.base import EventRow, is_id
from core.storage.kept_pages import PagePlace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from core.errors import ParlourError
    from core.importing.archive import Archive
    from core.importing.stage import Stage

_LARGEST_MANIFEST: Final = 64 << 20
_LARGEST_ROWS: Final = 256 << 20  # of one conversation, or of one reply's log
_LONGEST_LINE: Final = 32 << 20
_MOST_EVENTS: Final = 1 << 31
_LATEST: Final = 4_102_444_800.0  # the year 2100
_STATUSES: Final = frozenset({"complete", "paused", "stopped", "error", "interrupted"})
_ROLES: Final = {"user": {"user"}, "assistant": {"assistant", "function"}}
_ENTRY: Final = re.compile(
    r"parlour-bundle\.json|index\.html|conversation-\d{1,6}\.html|pages/[0-9a-f]{16}-\d{1,6}\.png"
    r"|files/[\w-]{22}(?:\.\w{1,8})?|conversations/[\w-]{22}/(?:conversation\.json|messages\.jsonl|logs/[\w-]{22}\.jsonl)"
)
_WRONG: Final = (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError, OverflowError)


def is_bundle(archive: Archive) -> bool:
    """Whether it says that it is one."""
    return MANIFEST in archive.sizes


class BundleReader:
    """One bundle.

    Args:
        archive: What is in it.
        stage: Where conversations and files go.
        told: Called with the share that was read, from 0 to 1.
    """

    def __init__(self, archive: Archive, stage: Stage, told: Callable[[float], None]) -> None:
        self._archive, self._stage, self._told = archive, stage, told
        self._files: dict[str, str] = {}
        self._disowned = 0  # replies of the conversation for which something is said to have been computed
        self._digests: dict[str, str] = {}  # the ids of what is kept, by its SHA-256
        self._pictures: dict[str, str] = {}  # the same, by the name of the entry

    def read(self) -> None:
        """Read all of it.

        Raises:
            UnsupportedFormatError: key `import_damaged`, `import_unsafe`, `import_newer` or `import_too_large`.
        """
        self._check_names()
        listed = self._checked(self._manifest())
        for place, talk in enumerate(listed):
            try:
                self._stage.add(self._conversation(talk))
            except _WRONG as error:
                raise self._damaged(f"conversations/{talk}") from error
            self._told(0.5 + 0.5 * (place + 1) / len(listed))

    def _check_names(self) -> None:
        for name in self._archive.sizes:
            if not _ENTRY.fullmatch(name):
                raise problem("import_unsafe", file=self._archive.name, where=name[:80])

    def _manifest(self) -> dict[str, Any]:
        raw = self._archive.read(MANIFEST, _LARGEST_MANIFEST)
        try:
            about = json.loads(raw)
            if about["format"] != FORMAT or not isinstance(about["version"], int):
                raise self._damaged(MANIFEST)
        except _WRONG as error:
            raise self._damaged(MANIFEST) from error
        if about["version"] > VERSION:
            raise problem("import_newer", file=self._archive.name)
        return about

    def _checked(self, manifest: dict[str, Any]) -> list[str]:
        """The conversations, when every entry is the one that the manifest names; files are unpacked on the way."""
        try:
            told = {str(name): (one["size"], one["sha256"]) for name, one in manifest["entries"].items()}
            talks = [str(one["id"]) for one in manifest["conversations"]]
        except _WRONG as error:
            raise self._damaged(MANIFEST) from error
        there = {name: size for name, size in self._archive.sizes.items() if name != MANIFEST}
        for name in sorted(there.keys() ^ told.keys()):
            raise self._damaged(name)
        if len(set(talks)) < len(talks) or not all(f"conversations/{one}/messages.jsonl" in there for one in talks):
            raise self._damaged(MANIFEST)
        for place, (name, (size, digest)) in enumerate(told.items()):
            if there[name] != size or self._unpacked(name) != digest:
                raise self._damaged(name)
            self._told(0.5 * (place + 1) / len(told))
        return talks

    def _unpacked(self, name: str) -> str:
        if not name.startswith("files/"):
            return self._archive.unpack(name)
        place = self._stage.place(self._archive.sizes[name])
        digest = self._archive.unpack(name, place)
        file_id = name.removeprefix("files/").partition(".")[0]
        self._files[file_id] = self._stage.keep(name, place, file_id=file_id, sha256=digest).id
        self._digests.setdefault(digest, file_id)
        return digest

    def _conversation(self, talk: str) -> ArrivingConversation:
        folder = f"conversations/{talk}"
        about = json.loads(self._archive.read(f"{folder}/conversation.json", _LARGEST_ROWS))
        own = about["conversation"]
        if own["id"] != talk or not is_id(talk):
            raise self._damaged(folder)
        turns = self._turns(folder)
        self._stage.disowned[talk] = self._disowned
        known = {turn.row["id"] for turn in turns}
        row = {
            "id": talk,
            "title": _text(own["title"]),
            "titled_by": own["titled_by"] if own["titled_by"] in {"question", "model", "person"} else "person",
            "created_at": _moment(own["created_at"]),
            "updated_at": _moment(own["updated_at"]),
            "leaf_id": own["leaf_id"] if own["leaf_id"] in known else None,
        }
        names = {str(one["id"]): _text(one["name"]) for one in about["files"]}
        for file_id, name in names.items():
            if file_id in self._files:
                self._stage.name(file_id, name)
        needed = tuple(one for one in names if one in self._files)
        read = tuple(str(one["file_id"]) for one in about["documents"] if str(one["file_id"]) in needed)
        pages = tuple(self._pages(about.get("pages") or []))
        needed = tuple(dict.fromkeys([*needed, *(one.file for one in pages)]))
        return ArrivingConversation(row, turns, needed, read, pages)

    def _pages(self, listed: list[Any]) -> Iterator[PagePlace]:
        """The pictures of pages that nothing else here could draw; a document is known by what is in it."""
        for one in listed:
            name = one["entry"]
            if one["document_id"] in self._digests:
                continue
            if not isinstance(name, str) or not name.startswith("pages/") or name not in self._archive.sizes:
                raise ValueError(name)
            yield PagePlace.read(one, self._picture(name))

    def _picture(self, name: str) -> str:
        """The id that a picture gets among the files; of one that is there already, its own."""
        if name not in self._pictures:
            place = self._stage.place(self._archive.sizes[name])
            digest = self._archive.unpack(name, place)
            if digest not in self._digests:
                kept = self._stage.keep(name, place, sha256=digest)
                if kept.media_type != "image/png":
                    raise ValueError(name)
                self._digests[digest] = kept.id
            else:
                place.unlink()
            self._pictures[name] = self._digests[digest]
        return self._pictures[name]

    def _turns(self, folder: str) -> tuple[ArrivingTurn, ...]:
        turns: list[ArrivingTurn] = []
        self._disowned = 0
        known: set[str] = set()
        places: set[str] = set()
        for one in self._lines(f"{folder}/messages.jsonl"):
            turn = self._turn(one, folder)
            parent, ids = turn.row["parent_id"], [turn.row["id"], *([turn.run["id"]] if turn.run else [])]
            # Each follows one that stood before it: so there is no circle.
            if known & {*ids} or len({*ids}) < len(ids) or (parent is not None and parent not in places):
                raise self._damaged(f"{folder}/messages.jsonl")
            known.update(ids)
            places.add(turn.row["id"])
            turns.append(turn)
        return tuple(turns)

    def _turn(self, one: dict[str, Any], folder: str) -> ArrivingTurn:
        role = one["role"]
        claimed = disown(one["parts"])
        parts = [Message(**part) for part in one["parts"]]
        if any(part.role not in _ROLES[role] for part in parts) or not is_id(one["id"]):
            raise ValueError(role)
        for part in parts:
            _check_passages(part)
        row = {
            "id": one["id"],
            "parent_id": one["parent_id"],
            "role": role,
            "status": _status(one["status"]),
            "created_at": _moment(one["created_at"]),
            "parts": one["parts"],
        }
        run = self._run(one["run"]) if one["run"] is not None else None
        steps = tuple(map(_step, one["thoughts"]))
        if [step["position"] for step in steps] != list(range(1, len(steps) + 1)):
            raise ValueError(steps)
        log: tuple[dict[str, Any], ...] = ()
        if run is not None:
            log, in_log = self._log(f"{folder}/logs/{run['id']}.jsonl")
            claimed += in_log
        self._disowned += bool(claimed)
        return ArrivingTurn(row, run, log, steps)

    def _run(self, given: dict[str, Any]) -> dict[str, Any]:
        error = given["error"]
        if (
            not is_id(given["id"])
            or not isinstance(error, dict | None)
            or not _can_be_said(cast("dict[str, Any]", error or {}))
        ):
            raise ValueError(given)
        usage = Usage.model_validate(given["usage"]).model_dump() if given["usage"] is not None else None
        finished = given["finished_at"]
        return {
            "id": given["id"],
            "status": _status(given["status"]),
            "error": error,
            "model": _text(given["model"]),
            "usage": usage,
            "started_at": _moment(given["started_at"]),
            "finished_at": _moment(finished) if finished is not None else None,
        }

    def _log(self, name: str) -> tuple[tuple[dict[str, Any], ...], int]:
        """The rows of a log, when a page can be drawn of them, and how many passages are said to be computed."""
        if name not in self._archive.sizes:
            return (), 0
        rows: list[dict[str, Any]] = []
        last = claimed = 0
        for one in self._lines(name):
            seq, at, kind, payload = one["seq"], one["at"], one["kind"], one["payload"]
            is_number = isinstance(seq, int) and isinstance(at, int | float) and math.isfinite(at)
            if (
                not is_number
                or not last < seq < _MOST_EVENTS
                or not isinstance(kind, str)
                or not isinstance(payload, dict)
            ):
                raise self._damaged(name)
            last = seq
            claimed += disown(payload)
            rows.append({"seq": seq, "at": at, "kind": kind, "payload": payload})
        logged = logged_of(EventRow(row["seq"], row["at"], row["kind"], row["payload"]) for row in rows)
        Reply(logged)
        for message in Transcript(message_events(logged)).messages():
            _check_passages(message)
        return tuple(rows), claimed

    def _lines(self, name: str) -> Iterator[dict[str, Any]]:
        if self._archive.sizes[name] > _LARGEST_ROWS:
            raise problem("import_too_large", file=self._archive.name, where=name)
        with self._archive.opened(name) as entry:
            while line := entry.readline(_LONGEST_LINE):
                self._stage.look()
                if not line.endswith(b"\n"):
                    raise problem("import_too_large", file=self._archive.name, where=name)
                one = json.loads(line)
                if not isinstance(one, dict):
                    raise self._damaged(name)
                yield cast("dict[str, Any]", one)

    def _damaged(self, where: str) -> ParlourError:
        return problem("import_damaged", file=self._archive.name, where=where)


def _can_be_said(error: Mapping[str, Any]) -> bool:
    """Whether the page can make a sentence of what went wrong."""
    texts = (error.get(name, "") for name in ("key", "message", "hint"))
    return all(isinstance(text, str) for text in texts) and isinstance(error.get("details", {}), dict | None)


def _check_passages(message: Message) -> None:
    """Raises KeyError, TypeError or ValueError: the page could not show its passages."""
    for one in cast("list[Any]", (message.extra or {}).get("passages") or []):
        passage = Passage.from_dict({"score": 0.0, **one})
        texts: tuple[Any, ...] = (passage.text, passage.document, passage.document_id, passage.heading, passage.url)
        page: Any = passage.page
        if not all(isinstance(text, str) for text in texts) or not isinstance(page, int | None):
            raise ValueError(passage.document)


def _step(given: dict[str, Any]) -> dict[str, Any]:
    texts = {name: given[name] for name in ("tool_name", "tool_input", "observation")}
    position = given["position"]
    if not isinstance(position, int) or position < 1 or not all(isinstance(one, str | None) for one in texts.values()):
        raise ValueError(position)
    told = {"thought": _text(given["thought"]), "created_at": _moment(given["created_at"])}
    return {"id": given["id"] if is_id(given["id"]) else "", "position": position, **texts, **told}


def _status(given: Any) -> str:
    if given not in _STATUSES:
        raise ValueError(given)
    return str(given)


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError
    return given


def _moment(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < _LATEST:
        raise ValueError(given)
    return float(given)
