"""What Parlours and sandboxes on machines of their own say to each other, and how each proves that it may.

A question is a manifest in JSON, its length before it, and behind it the bytes of the files that go along. An answer is
lines of JSON; the line that says what a cell made is followed by these bytes, and the last line proves the answer.
Neither side sends the secret. A question holds for one start of one sandbox, once, and for ten minutes.
"""

from __future__ import annotations

import hmac
import json
import mimetypes
import secrets
import time
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

from pydantic import BaseModel, ConfigDict, Field

from core.tools.sandbox.box import Limits
from core.tools.sandbox.results import CodeResult, Made
from core.tools.sandbox.work_folder import plain_name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

CELL: Final = "/sandbox/cell"
FORGET: Final = "/sandbox/forget"
STATE: Final = "/sandbox/state"
SCHEME: Final = "Parlour-Sandbox"
LENGTH: Final = 4
"""Bytes before a manifest: its length, the highest first."""
LARGEST_MANIFEST: Final = 4 << 20
LARGEST_FILES: Final = Limits().folder
"""Bytes of all files that a cell finds; the folder in which they lie takes no more."""
LONGEST_CELL: Final = 3600.0
LONGEST_CODE: Final = 500_000
BEAT: Final = 5.0
"""Seconds after which a sandbox that has nothing to say says that it is there."""
MOST_FILES: Final = 500
PIECE: Final = 256 << 10
_APART: Final = 600.0  # seconds between two clocks
_LONGEST_LINE: Final = 4 << 20
_LARGEST_MADE: Final = 128 << 20
_MOST_NONCES: Final = 200_000

Mark = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class SentFile(BaseModel):
    """A file that a cell finds in its folder.

    Args:
        name: Its name there.
        digest: The SHA-256 of its bytes.
    """

    model_config = ConfigDict(frozen=True)

    name: Annotated[str, Field(max_length=1000)]
    digest: Mark
    size: Annotated[int, Field(ge=0, le=LARGEST_FILES)]


class Manifest(BaseModel):
    """What is asked of a sandbox; all but a cell leaves most of it out.

    Args:
        key: Stands for a conversation of an owner; of neither can more be known by it.
        owner: Stands for the owner.
        most: How many kernels the owner may have.
        within: Seconds.
        files: What the cell is to find.
        sends: The digests of those that come along, in this order.
    """

    model_config = ConfigDict(frozen=True)

    key: Mark | None = None
    owner: Mark | None = None
    most: Annotated[int, Field(ge=1, le=10_000)] = 1
    code: Annotated[str, Field(max_length=LONGEST_CODE)] = ""
    within: Annotated[float, Field(gt=0, le=LONGEST_CELL, allow_inf_nan=False)] = 1.0
    files: Annotated[tuple[SentFile, ...], Field(max_length=MOST_FILES)] = ()
    sends: Annotated[tuple[Mark, ...], Field(max_length=MOST_FILES)] = ()

    @property
    def sizes(self) -> dict[str, int]:
        """The bytes of each file, by its digest."""
        return {one.digest: one.size for one in self.files}


def plain(text: str) -> str:
    """A text without what no UTF-8 can hold, such as half a pair of surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


def mark_of(key: bytes, kind: str, *parts: str) -> str:
    """What stands for something of an owner's: the same everywhere, and not to be guessed without the key."""
    return hmac.digest(key, "\n".join((f"parlour.sandbox.{kind}", *parts)).encode("utf-8", "replace"), "sha256").hex()


def _proof(key: bytes, *parts: str) -> str:
    return hmac.digest(key, "\n".join(parts).encode(), "sha256").hex()


def answer_proof(key: bytes, nonce: str, digest: str) -> str:
    """Proves an answer to the question with this nonce; `digest` is the SHA-256 of all bytes before."""
    return _proof(key, "answer", nonce, digest)


def asking(key: bytes, path: str, boot: str, manifest: bytes) -> tuple[str, str]:
    """The header that proves a question, and its nonce."""
    nonce, now = secrets.token_hex(16), str(int(time.time()))
    proof = _proof(key, "question", path, boot, now, nonce, sha256(manifest).hexdigest())
    return f"{SCHEME} {boot or '-'} {now} {nonce} {proof}", nonce


class RefusedError(Exception):
    """A question is not to be answered.

    Args:
        why: `boot` (it is meant for another start of this process), `secret`, `clock` or `again`.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Doorkeeper:
    """Lets in who proves that it knows the key, each question once.

    Args:
        key: What both sides have.
        clock: Seconds since 1970.
    """

    def __init__(self, key: bytes, clock: Callable[[], float] = time.time) -> None:
        self._key, self._clock = key, clock
        self.boot = secrets.token_hex(16)
        """Stands for this start: what was asked of an earlier one, or of another sandbox, is not answered here."""
        self._seen: dict[str, float] = {}

    def check(self, header: str, path: str, manifest: bytes) -> str:
        """The nonce of a question that may be answered. Raises RefusedError."""
        scheme, _, rest = header.partition(" ")
        parts = rest.split(" ")
        if scheme != SCHEME or len(parts) != 4:
            raise RefusedError("secret")
        boot, when, nonce, proof = parts
        if boot != self.boot:
            raise RefusedError("boot")
        expected = _proof(self._key, "question", path, boot, when, nonce, sha256(manifest).hexdigest())
        if not hmac.compare_digest(proof.encode(), expected.encode()):
            raise RefusedError("secret")
        now = self._clock()
        if not when.isascii() or not when.isdigit() or abs(now - int(when)) > _APART:
            raise RefusedError("clock")
        self._forget(now)
        if nonce in self._seen or len(self._seen) >= _MOST_NONCES:
            raise RefusedError("again")
        self._seen[nonce] = now
        return nonce

    def _forget(self, now: float) -> None:
        """Forget questions that are too old to be asked again; they stand in the order in which they came."""
        while self._seen and next(iter(self._seen.values())) < now - 2 * _APART:
            del self._seen[next(iter(self._seen))]


def told(result: CodeResult) -> Iterator[bytes]:
    """A result as it is said: a line, then the bytes of what was made."""
    made = {"pictures": _listed(result.pictures), "files": _listed(result.files)}
    marks = {"failed": result.failed, "lost": result.lost, "fresh": result.fresh}
    yield line({"done": {"text": result.text, **made, **marks}})
    for one in (*result.pictures, *result.files):
        for start in range(0, len(one.data), PIECE):
            yield one.data[start : start + PIECE]


def _listed(made: Sequence[Made]) -> list[list[Any]]:
    return [[one.name, one.media_type, len(one.data)] for one in made]


def line(said: dict[str, Any]) -> bytes:
    """One line of an answer."""
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


class UnreadableError(Exception):
    """An answer is cut short, is not what it should be, or does not prove itself."""


def object_of(value: object) -> dict[str, Any]:
    """What has to be an object. Raises UnreadableError."""
    if not isinstance(value, dict):
        raise UnreadableError("no object")
    return cast("dict[str, Any]", value)


def text_of(said: Mapping[str, Any], name: str) -> str:
    """A text, "" where it is left out. Raises UnreadableError: it is something else, and `str` of that may be deep."""
    value: object = said.get(name, "")
    if not isinstance(value, str):
        raise UnreadableError(f"no text: {name}")
    return value


def texts_of(value: object) -> tuple[str, ...]:
    """What has to be a list of texts. Raises UnreadableError."""
    listed = cast("list[object]", value) if isinstance(value, list) else [None]
    texts = tuple(one for one in listed if isinstance(one, str))
    if len(texts) < len(listed):
        raise UnreadableError("no list of texts")
    return texts


class Answer:
    """Reads an answer as it comes. What stands in it is not trusted further than it has to be.

    Args:
        pieces: Its bytes.
        key: What both sides have.
        nonce: That of the question.
    """

    def __init__(self, pieces: AsyncIterator[bytes], key: bytes, nonce: str) -> None:
        self._pieces, self._key, self._nonce = pieces, key, nonce
        self._rest = bytearray()
        self._read = sha256()

    async def next(self) -> dict[str, Any]:
        """The next line. Raises UnreadableError."""
        while (end := self._rest.find(b"\n")) < 0:
            if len(self._rest) > _LONGEST_LINE:
                raise UnreadableError("a line without end")
            await self._more()
        raw = self._taken(end + 1)
        try:
            said: object = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise UnreadableError("no JSON") from error
        found = object_of(said)
        if "proof" not in found:
            self._read.update(raw)
        return found

    async def finish(self) -> None:
        """Read the last line, which proves all before it. Raises UnreadableError."""
        said = await self.next()
        expected = answer_proof(self._key, self._nonce, self._read.hexdigest())
        if not hmac.compare_digest(text_of(said, "proof").encode("utf-8", "replace"), expected.encode()):
            raise UnreadableError("not proved")

    async def result(self, done: object) -> CodeResult:
        """The result, of which the line is read already. Raises UnreadableError."""
        given = object_of(done)
        room = _LARGEST_MADE
        made: dict[str, list[Made]] = {"pictures": [], "files": []}
        for kind, taken in made.items():
            listed: object = given.get(kind)
            for one in cast("list[object]", listed) if isinstance(listed, list) else []:
                name, size = _named(one)
                room -= size
                if room < 0:
                    raise UnreadableError("more than a cell may make")
                name = plain_name(name)
                media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
                if kind == "pictures":
                    media_type = "image/jpeg" if name.endswith(".jpg") else "image/png"
                taken.append(Made(name, media_type, await self._exactly(size)))
        return CodeResult(
            text_of(given, "text"),
            tuple(made["pictures"]),
            tuple(made["files"]),
            failed=given.get("failed") is True,
            lost=given.get("lost") is True,
            fresh=given.get("fresh") is True,
        )

    async def _exactly(self, size: int) -> bytes:
        while len(self._rest) < size:
            await self._more()
        data = self._taken(size)
        self._read.update(data)
        return data

    async def _more(self) -> None:
        try:
            self._rest += await anext(self._pieces)
        except StopAsyncIteration:
            raise UnreadableError("cut short") from None

    def _taken(self, size: int) -> bytes:
        data = bytes(self._rest[:size])
        del self._rest[:size]
        return data


def _named(one: object) -> tuple[str, int]:
    """The name and the size of something made. Raises UnreadableError."""
    match one:
        case [str() as name, str(), int() as size] if size >= 0:
            return name, size
        case _:
            raise UnreadableError("no list of what was made")
