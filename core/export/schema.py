"""A conversation as a file: what `parlour.conversation`, version 1, holds.

The file is one JSON object. Times are ISO 8601 in UTC. Nothing in it is a secret: keys are replaced by "…" before they
come here. Of files it has names, types, sizes and hashes, never the bytes. A later version may add fields, which an
earlier reader passes over; it changes its number only if what is there means something else.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_serializer

from core.errors import UnsupportedFormatError
from core.messages.message import Message, Usage

FORMAT: Final = "parlour.conversation"
VERSION: Final = 1

State: TypeAlias = Literal["waiting", "asked", "running", "done", "failed", "refused", "stopped"]
Status: TypeAlias = Literal["running", "complete", "paused", "stopped", "error", "interrupted"]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ExportedConversation(_Value):
    """Which conversation it is; `leaf_id` is the last turn of the branch that was in sight."""

    id: str
    title: str
    created_at: datetime
    updated_at: datetime
    leaf_id: str | None = None


class ExportedFile(_Value):
    """A file by what is known of it. Messages name it by its address, which is `/files/` and its id, or by its hash.

    What stood in a message itself, without being stored, has no name, and `sha256:` and its hash for an id.
    """

    id: str
    name: str
    media_type: str
    size: int = Field(description="bytes")
    sha256: str
    created_at: datetime | None = None


class ExportedDocument(_Value):
    """A document of the conversation: a file that was read."""

    id: str
    file_id: str
    name: str
    status: str
    pages: int | None = None


class ExportedCall(_Value):
    """A tool call of a turn.

    Args:
        id: What ties it to its result.
        arguments: What it was called with; text where that is no JSON.
        state: How it ended; `failed` names the error of one that failed or was refused.
        message: The index of the message that makes it, among those of its turn.
        result: The index of the message that answers it; `None` where none does.
    """

    id: str
    name: str
    arguments: Any = None
    state: State
    failed: str | None = None
    message: int
    result: int | None = None


class ExportedInner(_Value):
    """What an agent said and did that was called as a tool.

    Args:
        calls: The call that it answers; before it, the calls that this one was made in, from the outermost.
        messages: As those of a turn.
    """

    calls: tuple[str, ...]
    messages: tuple[Message, ...] = ()

    @field_serializer("messages")
    def _plainly(self, messages: tuple[Message, ...]) -> list[dict[str, Any]]:
        return _dumped(messages)


class ExportedThought(_Value):
    """A step of a reply: what was thought, what was called with what, what came of it; `position` counts from 1."""

    id: str
    message_id: str
    thought: str
    tool_name: str | None = None
    tool_input: Any = None
    observation: str | None = None
    position: int
    created_at: datetime | None = None


class ExportedCitation(_Value):
    """A passage that a reply was given: what `[number]` in its text points to.

    `cited` says whether its text does so; `page` counts from 1; `rectangles` are the places of the passage on it, in
    points from its top left corner.
    """

    number: int
    document: str
    document_id: str = ""
    page: int | None = None
    heading: str = ""
    url: str = ""
    text: str
    cited: bool = False
    rectangles: tuple[tuple[float, float, float, float], ...] = ()


class ExportedDoubt(_Value):
    """A sentence of a reply that its passages do not clearly bear out.

    Args:
        text: The sentence.
        verdict: `weak` where a passage resembles it loosely, `unsupported` where none does.
        words: Its name, number or denial that the passages do not have; "" where it is the sentence as a whole.
        instead: What a passage says in the place of these words; "" where nothing stands there.
    """

    text: str
    verdict: Literal["weak", "unsupported"]
    words: str = ""
    instead: str = ""


class ExportedReason(_Value):
    """What speaks against a sentence: its words, and what the passage of a number says instead (0 for none)."""

    kind: Literal["amount", "date", "name", "role", "denial", "opposite", "extent", "condition", "mark"]
    words: str
    instead: str = ""
    passage: int = 0


class ExportedClaim(_Value):
    """A sentence of a reply that was held against its passages.

    Args:
        text: The sentence.
        verdict: `supported` where they bear it out; else as of `ExportedDoubt`.
        numbers: The passages that bear it out.
        reasons: What the rules found against it.
        judged: Whether a model found it borne out; `None` where it was not asked, or did not say.
    """

    text: str
    verdict: Literal["supported", "weak", "unsupported"]
    numbers: tuple[int, ...] = ()
    reasons: tuple[ExportedReason, ...] = ()
    judged: bool | None = None


class ExportedRun(_Value):
    """The work that a reply came of; `error` is `{"key", "message", "hint", "details"}`."""

    id: str
    model: str
    status: Status
    error: dict[str, Any] | None = None
    usage: Usage | None = None
    started_at: datetime
    finished_at: datetime | None = None


class ExportedTurn(_Value):
    """A turn: a question, or a whole reply. Turns with the same `parent_id` and role are versions of each other.

    Args:
        shown: Whether it is on the branch that was in sight.
        beside: Whether it is one of two replies that were shown side by side; of these, only one is `shown`.
        status: `running` of a reply that was still being written: it is here as far as it had come.
        messages: What was said, called and answered, as an agent takes it; in `extra["passages"]` of a result stand
            numbers of `citations` in place of the passages.
        edited: Whether the reader wrote the answer that stands in the reply, in place of its model's.
        rating: What the reader thinks of the reply.
        rated_for: Why.
        judged_by: The model that judged the sentences of the reply, if one did.
        checked: How many of its sentences were held against its passages.
        claims: Each of them.
        doubted: Those of them that the passages do not clearly bear out.
        left_out: Sentences of its passages that limit what it says, and that it does not mention.
        computed: Sentences that were counted or computed by program for it, and whose figures it does not tell.
        uncounted: Whether a sentence of it tells figures of several rows of a table that no program counted.
    """

    id: str
    parent_id: str | None = None
    role: Literal["user", "assistant"]
    status: Status
    shown: bool
    beside: bool = False
    created_at: datetime
    messages: tuple[Message, ...] = ()
    calls: tuple[ExportedCall, ...] = ()
    inner: tuple[ExportedInner, ...] = ()
    thoughts: tuple[ExportedThought, ...] = ()
    citations: tuple[ExportedCitation, ...] = ()
    run: ExportedRun | None = None
    edited: bool = False
    rating: Literal["up", "down"] | None = None
    rated_for: str = ""
    judged_by: str = ""
    checked: int = 0
    claims: tuple[ExportedClaim, ...] = ()
    doubted: tuple[ExportedDoubt, ...] = ()
    left_out: tuple[str, ...] = ()
    computed: tuple[str, ...] = ()
    uncounted: bool = False

    @field_serializer("messages")
    def _plainly(self, messages: tuple[Message, ...]) -> list[dict[str, Any]]:
        return _dumped(messages)


def _dumped(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    return [message.model_dump(mode="json", fallback=str) for message in messages]


class ExportHead(_Value):
    """What stands before the turns."""

    format: Literal["parlour.conversation"] = FORMAT
    version: int = VERSION
    exported_at: datetime
    conversation: ExportedConversation
    documents: tuple[ExportedDocument, ...] = ()


class ConversationExport(ExportHead):
    """All of an exported conversation, with every version of every turn, in the order in which they came.

    `running` says that a reply was still being written.
    """

    turns: tuple[ExportedTurn, ...] = ()
    files: tuple[ExportedFile, ...] = ()
    running: bool = False


def read_export(source: Path | str | bytes) -> ConversationExport:
    """Read an exported conversation: a file, or its text.

    Raises:
        UnsupportedFormatError: It is none, or of a version that is newer than this program.
        OSError: The file cannot be read.
    """
    raw = source.read_bytes() if isinstance(source, Path) else source
    try:
        head: Any = json.loads(raw)
        known = cast("dict[str, Any]", head) if isinstance(head, dict) else {}
        if known.get("format") != FORMAT:
            raise UnsupportedFormatError("This is no exported conversation.")
        if not isinstance(known.get("version"), int) or known["version"] > VERSION:
            raise UnsupportedFormatError("A newer Parlour exported this conversation.", hint="Read it with that one.")
        return ConversationExport.model_validate_json(raw)
    except (ValidationError, ValueError, TypeError, RecursionError) as error:  # TypeError: a message has no role
        raise UnsupportedFormatError("This is no exported conversation, or not all of it.") from error
