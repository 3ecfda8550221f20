"""A conversation as a recording: lines of JSON that a page plays as it happened, without a model.

The first line says what it is, each further one is a part of one conversation: `conversation`, `message`, `event` (a
row of the log of a reply), `data` (a file, or the picture of a cited page). They are what a bundle holds, so one is
made of it where it is taken in, and it is checked as strictly. It may come from strangers: everything is bounded.
"""

from __future__ import annotations

import binascii
import json
import math
import re
from base64 import b64decode, b64encode
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast
from zipfile import ZipFile

from core.export.bundle import MANIFEST, line, manifest
from core.export.zip_stream import ZipStream
from core.importing.archive import Archive
from core.importing.problems import problem
from core.languages import LANGS
from core.storage.base import is_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from core.errors import ParlourError
    from core.languages import Lang

FORMAT: Final = "parlour.recording"
VERSION: Final = 1
LARGEST: Final = 32 << 20
"""Bytes of a recording; what is larger is not read."""
_LONGEST_LINE: Final = 16 << 20
_MOST_MESSAGES: Final = 1_000
_MOST_EVENTS: Final = 100_000
_MOST_FILES: Final = 100
_MOST_SAID: Final = 200
_LONGEST_SAID: Final = 300
_LONGEST_TITLE: Final = 200
_LATEST: Final = 4_102_444_800.0  # the year 2100
_ENTRY: Final = re.compile(r"files/[\w-]{22}(?:\.\w{1,8})?|pages/[0-9a-f]{16}-\d{1,6}\.png")
_LEFT_OUT: Final = re.compile(r"index\.html|conversation-\d{1,6}\.html")
_WRONG: Final = (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError)


@dataclass(frozen=True, slots=True)
class About:
    """The first line of a recording.

    Args:
        title: What it is called.
        about: A sentence on it; may be empty.
        lang: The language that is spoken in it.
        made: When, in Unix seconds.
        said: What is said beside its steps, in their order; "" where that goes without saying.
    """

    title: str
    about: str = ""
    lang: Lang = "en"
    made: float = 0.0
    said: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded conversation, without versions: the turns that were in sight, each after the one that it follows.

    Args:
        conversation: As the `conversation.json` of a bundle.
        messages: As its `messages.jsonl`.
        logs: The rows of the logs of its replies, by the ids of their runs.
        data: Its files, and the pictures of cited pages, by their names in a bundle.
        digest: The SHA-256 of the file; "" for one that was not read from any.
    """

    about: About
    conversation: Mapping[str, Any]
    messages: Sequence[Mapping[str, Any]]
    logs: Mapping[str, Sequence[Mapping[str, Any]]]
    data: Mapping[str, bytes]
    digest: str = ""

    def log(self, turn: int) -> Sequence[Mapping[str, Any]]:
        """The rows of the log of a turn; none for a question."""
        return self.logs.get(_run_of(self.messages[turn]), ())

    def error(self, turn: int) -> dict[str, Any] | None:
        """Why a reply failed, where it did."""
        failed = _run(self.messages[turn]).get("error")
        return cast("dict[str, Any]", failed) if isinstance(failed, dict) else None

    def model(self, turn: int) -> str:
        """What the page calls the model that wrote a reply; "" where that is not known."""
        return str(_run(self.messages[turn]).get("model") or "")

    def lines(self) -> Iterator[bytes]:
        """The recording as it is written into a file."""
        about = self.about
        head = {"format": FORMAT, "version": VERSION, "title": about.title, "about": about.about, "lang": about.lang}
        yield line({**head, "made": about.made, "said": list(about.said)})
        yield line({"is": "conversation", "value": self.conversation})
        for name, content in self.data.items():
            yield line({"is": "data", "name": name, **_packed(content)})
        for message in self.messages:
            yield line({"is": "message", "value": message})
            for event in self.logs.get(_run_of(message), ()):
                yield line({"is": "event", "run": _run_of(message), "value": event})

    def write_bundle(self, path: Path, turns: int | None = None) -> None:
        """Write it as a bundle, which `core.importing.importing.bring_in` takes in.

        Args:
            turns: How many of its turns; all where left out.

        Raises:
            OSError: It cannot be written.
        """
        kept = self.messages if turns is None else self.messages[: max(1, turns)]
        talk = str(self.conversation["conversation"]["id"])
        folder, archive = f"conversations/{talk}", ZipStream()
        own = {**self.conversation["conversation"], "leaf_id": kept[-1]["id"] if kept else None}
        with path.open("wb") as file:
            for name, content in self.data.items():
                file.write(archive.add(name, [content]))
            for message in kept:
                if rows := self.logs.get(_run_of(message)):
                    file.write(archive.add(f"{folder}/logs/{_run_of(message)}.jsonl", map(line, rows)))
            file.write(archive.add(f"{folder}/messages.jsonl", [line(one) for one in kept]))
            about = {**self.conversation, "conversation": own}
            file.write(archive.add(f"{folder}/conversation.json", [line(about)]))
            page = {"id": talk, "title": own.get("title"), "messages": len(kept), "page": ""}
            file.write(archive.add(MANIFEST, [manifest(archive, [page])]))
            file.write(archive.end())


def recorded(bundle: Path, about: About) -> Recording:
    """The recording of the only conversation in a bundle, as it was in sight: other versions are left out.

    Raises:
        UnsupportedFormatError: key `import_damaged`: it is no bundle of one conversation.
    """
    with Archive(bundle, bundle.name) as archive, ZipFile(bundle) as entries:
        names = [name for name in archive.sizes if name != MANIFEST and not _LEFT_OUT.fullmatch(name)]
        found = [name for name in names if name.endswith("/conversation.json")]
        if len(found) != 1:
            raise problem("import_damaged", file=bundle.name, where=MANIFEST)
        folder = found[0].removesuffix("/conversation.json")
        conversation = json.loads(entries.read(found[0]))
        every = {one["id"]: one for one in map(json.loads, entries.read(f"{folder}/messages.jsonl").splitlines())}
        thread: list[dict[str, Any]] = []
        leaf = every.get(conversation["conversation"]["leaf_id"])
        while leaf is not None:
            thread.insert(0, leaf)
            leaf = every.get(leaf["parent_id"])
        logs: dict[str, list[dict[str, Any]]] = {}
        for run in filter(None, map(_run_of, thread)):
            if (name := f"{folder}/logs/{run}.jsonl") in archive.sizes:
                logs[run] = [json.loads(row) for row in entries.read(name).splitlines()]
        data = {name: entries.read(name) for name in names if _ENTRY.fullmatch(name)}
    # A document that comes along, known by what is in it, draws its pages itself.
    drawn = {one["sha256"] for one in conversation.get("files") or ()}
    pages = [one for one in conversation.get("pages") or () if one["document_id"] not in drawn]
    needed = {one["entry"] for one in pages}
    data = {name: held for name, held in data.items() if not name.startswith("pages/") or name in needed}
    return Recording(about, {**conversation, "pages": pages}, thread, logs, data)


def read_about(path: Path) -> About:
    """The first line of a recording; what it says is not looked at further.

    Raises:
        UnsupportedFormatError: key `import_no_file`, `demo_damaged` or `demo_newer`.
    """
    try:
        with path.open("rb") as file:
            return _about(file.readline(_LONGEST_LINE), path.name)
    except OSError as error:
        is_folder = isinstance(error, IsADirectoryError)
        raise problem("import_folder" if is_folder else "import_no_file", file=path.name) from error


def read_recording(path: Path, name: str = "") -> Recording:
    """Read a recording.

    What it holds is checked where it is taken in (`write_bundle`); here it is made sure that it can be.

    Args:
        path: The file.
        name: What the reader calls it; its own name if left out.

    Raises:
        UnsupportedFormatError: key `import_no_file`, `demo_damaged` (details: `line`), `demo_newer` or
            `demo_too_large`.
    """
    shown = name or path.name
    try:
        if path.stat().st_size > LARGEST:
            raise problem("demo_too_large", file=shown, size=LARGEST >> 20)
        raw = path.read_bytes()
    except OSError as error:
        is_folder = isinstance(error, IsADirectoryError)
        raise problem("import_folder" if is_folder else "import_no_file", file=shown) from error
    return recording_of(raw, shown)


def recording_of(raw: bytes, name: str) -> Recording:
    """As `read_recording`, of what stands in a file.

    Args:
        name: What the reader calls it.
    """
    if len(raw) > LARGEST:
        raise problem("demo_too_large", file=name, size=LARGEST >> 20)
    first, *rest = raw.split(b"\n")
    read = _Reading(name)
    about = _about(first, name)
    for number, text in enumerate(rest, start=2):
        if text.strip():
            try:
                read.take(json.loads(text))
            except _WRONG as error:
                raise _damaged(name, number) from error
    try:
        return read.whole(about, sha256(raw).hexdigest())
    except _WRONG as error:
        raise _damaged(name, 1 + len(rest)) from error


@dataclass(slots=True)
class _Reading:
    """What was read so far. All methods raise what is in `_WRONG`."""

    name: str
    conversation: dict[str, Any] | None = None
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    logs: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    data: dict[str, bytes] = field(default_factory=dict[str, bytes])
    count: Counter[str] = field(default_factory=Counter[str])

    def take(self, one: Any) -> None:
        """Take in a line."""
        kind = one["is"]
        self.count[kind] += 1
        most = {"conversation": 1, "message": _MOST_MESSAGES, "event": _MOST_EVENTS, "data": _MOST_FILES}
        if self.count[kind] > most.get(kind, _MOST_EVENTS):
            raise ValueError(kind)
        match kind:
            case "conversation":
                self.conversation = _object(one["value"])
            case "message":
                message = _object(one["value"])
                if message["role"] != ("user", "assistant")[len(self.messages) % 2]:
                    raise ValueError(message["role"])
                if message["parent_id"] != (self.messages[-1]["id"] if self.messages else None):
                    raise ValueError(message["parent_id"])
                self.messages.append(message)
            case "event":
                self._take_event(str(one["run"]), _object(one["value"]))
            case "data":
                entry = one["name"]
                if entry in self.data or not _ENTRY.fullmatch(entry):
                    raise ValueError(entry)
                self.data[entry] = _unpacked(one)
            case _:
                pass  # of a later version that says something more

    def _take_event(self, run: str, value: dict[str, Any]) -> None:
        at, rows = value["at"], self.logs.setdefault(run, [])
        if not is_id(run) or isinstance(at, bool) or not math.isfinite(at) or not 0 <= at < _LATEST:
            raise ValueError(run)
        if rows and at < rows[-1]["at"]:
            value = {**value, "at": rows[-1]["at"]}  # a clock that was set back
        rows.append(value)

    def whole(self, about: About, digest: str) -> Recording:
        """The recording."""
        if self.conversation is None or not self.messages:
            raise ValueError(self.name)
        if not is_id(_object(self.conversation["conversation"])["id"]):
            raise ValueError(self.name)
        return Recording(about, self.conversation, self.messages, self.logs, self.data, digest)


def _about(raw: bytes, name: str) -> About:
    try:
        told = _object(json.loads(raw))
        if told.get("format") != FORMAT or not isinstance(told.get("version"), int):
            raise _damaged(name, 1)
        if told["version"] > VERSION:
            raise problem("demo_newer", file=name)
        said = [_said(one, _LONGEST_SAID) for one in told.get("said") or ()][:_MOST_SAID]
        lang, made = told.get("lang"), told.get("made", 0.0)
        if lang not in LANGS or isinstance(made, bool) or not 0 <= made < _LATEST:
            raise _damaged(name, 1)
        title, about = _said(told["title"], _LONGEST_TITLE), _said(told.get("about", ""), _LONGEST_SAID)
        return About(title, about, lang, float(made), tuple(said))
    except _WRONG as error:
        raise _damaged(name, 1) from error


def _said(given: Any, longest: int) -> str:
    """A text on one line, cut where it is too long. Raises TypeError."""
    if not isinstance(given, str):
        raise TypeError
    plain = given.encode(errors="replace").decode()
    return " ".join("".join(sign if sign.isprintable() else " " for sign in plain).split())[:longest]


def _packed(content: bytes) -> dict[str, str]:
    """Text as it stands, so that it can be read in the file; anything else in Base64."""
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(content).decode("ascii")}


def _unpacked(one: Mapping[str, Any]) -> bytes:
    if "text" in one:
        return str(one["text"]).encode(errors="replace")
    try:
        return b64decode(one["base64"], validate=True)
    except binascii.Error as error:
        raise ValueError(one.get("name")) from error


def _run_of(message: Mapping[str, Any]) -> str:
    """The id of the run that a turn came of; "" for a question."""
    return str(_run(message).get("id", ""))


def _run(message: Mapping[str, Any]) -> dict[str, Any]:
    run = message.get("run")
    return cast("dict[str, Any]", run) if isinstance(run, dict) else {}


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError
    return cast("dict[str, Any]", value)


def _damaged(name: str, number: int) -> ParlourError:
    return problem("demo_damaged", file=name, line=number)
