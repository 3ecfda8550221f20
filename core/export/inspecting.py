"""What stands behind a reply: its model calls, what each was given, sent, received and made of it, without keys."""

from __future__ import annotations

import json
from asyncio import to_thread
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from core.errors import NotFoundError
from core.export.redaction import Redaction
from core.export.reply_trace import traced_reply
from core.messages.message import Usage
from core.runs.call_stages import unpacked

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from core.export.cases import CaseForm
    from core.export.traces import Traced
    from core.languages import Lang
    from core.runs.log import ModelCalled
    from core.runs.manager import OwnerRuns
    from core.storage.base import StoredMessage
    from core.storage.stores import OwnerStores

STAGES: Final = ("given", "sent", "received", "parsed")
Change: TypeAlias = Literal["same", "added", "left_out"]
_MOST_LINES: Final = 3_000  # of a request: a longer one is not compared
_LONGEST_LINE: Final = 2_000
_SCHEMA: Final = 1


@dataclass(frozen=True, slots=True)
class Piece:
    """A text as it is kept: the pieces of it, and how many bytes were cut out between them."""

    texts: tuple[str, ...] = ()
    cut: int = 0

    @classmethod
    def of(cls, kept: object, redaction: Redaction) -> Piece:
        """From what the log keeps, without keys."""
        body = _dict(kept)
        texts: list[Any] = body.get("text") or []
        return cls(tuple(redaction.said(str(text)) for text in texts), int(body.get("cut") or 0))


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a call, or of one of its tries.

    Args:
        head: What went before the body: method, address and headers of a request; the status of a reply.
        size: Bytes on the wire; 0 where nothing went over one.
    """

    body: Piece = field(default_factory=Piece)
    head: tuple[str, ...] = ()
    size: int = 0


@dataclass(frozen=True, slots=True)
class InspectedCall:
    """A model call with its stages.

    Args:
        line: Its line in the account.
        stages: By their names, each with one item for each try; none where they were pruned.
        left_out: Whether they were not kept, because those of other calls of the reply took all the room.
    """

    line: ModelCalled
    stages: Mapping[str, Sequence[Stage]] = field(default_factory=dict[str, "Sequence[Stage]"])
    left_out: bool = False


class Inspecting:
    """Looks behind replies of one owner.

    Args:
        runs: The owner's.
        secrets: What is known to be one, of the owner and the installation.
        stores: The owner's.
    """

    def __init__(self, runs: OwnerRuns, secrets: Callable[[], Awaitable[list[str]]], stores: OwnerStores) -> None:
        self._runs = runs
        self._stores = stores
        self._secrets = secrets

    async def lines(self, message: StoredMessage) -> list[ModelCalled]:
        """The model calls of a reply that are over, in order of time. Raises NotFoundError."""
        return list((await self._runs.reply(message)).model_calls)

    async def calls(self, message: StoredMessage, only: str | None = None) -> list[InspectedCall]:
        """The calls of a reply with their stages.

        Args:
            message: The reply.
            only: The call whose stages are wanted; all by default.

        Raises:
            NotFoundError: The reply is gone, or somebody else's.
            StorageError: It cannot be read.
        """
        lines = await self.lines(message)
        kept = await self._runs.stages(message.run_id) if message.run_id else {}
        redaction = Redaction(await self._secrets())

        def read() -> list[InspectedCall]:
            return [
                _inspected(one, kept.get(one.call_id), redaction) if only in {None, one.call_id} else InspectedCall(one)
                for one in lines
            ]

        return await to_thread(read)

    async def trace(self, message: StoredMessage) -> tuple[Traced, ...]:
        """What was done for a reply, as trees in the order in which they began. Raises as `calls`."""
        logged = await self._runs.events(message.run_id) if message.run_id else []
        redaction = Redaction(await self._secrets())
        return await to_thread(traced_reply, logged, message.created_at, redaction)

    async def case(self, message: StoredMessage, form: CaseForm, lang: Lang = "en") -> bytes:
        """A file of a suite with one task that is made of a reply.

        Args:
            message: The reply.
            form: How it is written.
            lang: Of the notes in it.

        Raises:
            NotFoundError: It is no whole reply (key `no_case`).
        """
        from core.export.cases import case_file, case_from_turn  # asked for seldom

        if message.parent_id is None:
            raise NotFoundError("Only a whole reply with a text makes a case.", key="no_case")
        question = await self._stores.conversations.message(message.parent_id)
        files = [one.name for one in await self._stores.documents.list(message.conversation_id)]
        case = case_from_turn(message, question, files, Redaction(await self._secrets()))
        return case_file(case, form, lang, goes_on=question.parent_id is not None)

    async def as_json(self, message: StoredMessage) -> bytes:
        """All calls of a reply as a file. Raises as `calls`."""
        calls, trace = await self.calls(message), await self.trace(message)
        told = {"schema": _SCHEMA, "message": message.id, "calls": [_plain(one) for one in calls]}
        told["trace"] = [one.as_dict() for one in trace]
        return json.dumps(told, ensure_ascii=False, indent=1).encode("utf-8", "replace")


def total(lines: Iterable[ModelCalled]) -> Usage:
    """What calls took together; the cost is `None` where that of one is not known."""
    counted = [one for one in lines if one.usage is not None]
    usage = sum((one.usage for one in counted if one.usage is not None), Usage())
    known = all(cost_of(one) is not None for one in counted)
    return usage.model_copy(update={"cost": sum(cost_of(one) or 0.0 for one in counted) if known else None})


def cost_of(line: ModelCalled) -> float | None:
    """What a call cost: nothing on this machine and from the cache; `None` where the price is not known."""
    if line.here or line.cached:
        return 0.0
    return line.usage.cost if line.usage is not None else 0.0


# ---- as lines, to be compared


def compared(given: Stage, sent: Stage) -> list[tuple[Change, str]]:
    """A request as lines, each with whether Parlour added it to what was given, or left it out; [] where it is no JSON.

    Args:
        given: What the conversation asked for.
        sent: What went to the service.
    """
    before, after = request_lines(given.body), request_lines(sent.body)
    if not before or not after or len(before) + len(after) > _MOST_LINES:
        return [("same", line) for line in after[:_MOST_LINES]]
    told: list[tuple[Change, str]] = []
    for what, i, j, k, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if what == "equal":
            told += _all("same", after[k:end])
        else:
            told += [*_all("left_out", before[i:j]), *_all("added", after[k:end])]
    return told


def _all(change: Change, lines: Sequence[str]) -> list[tuple[Change, str]]:
    return [(change, line) for line in lines]


def request_lines(body: Piece) -> list[str]:
    """A request as a person reads it: who says what, how many tools, which settings; [] where it is no JSON."""
    try:
        read: Any = json.loads("".join(body.texts)) if not body.cut else None
    except ValueError:
        return []
    if not isinstance(read, dict):
        return []
    asked = cast("dict[str, Any]", read)
    inner: dict[str, Any] = {**asked, **_dict(asked.get("input")), **_dict(asked.get("parameters"))}
    lines: list[str] = []
    for message in cast("list[Any]", inner.get("messages") or []):
        lines += _message_lines(_dict(message))
    names = [_name(tool) for tool in cast("list[Any]", inner.get("tools") or [])]
    lines += [f"tools: {', '.join(names)}"] if names else []
    known = {"messages", "tools", "input", "parameters", "settings", "model"}
    settings = {name: value for name, value in inner.items() if name not in known} | _dict(asked.get("settings"))
    lines += [f"{name}: {json.dumps(value, ensure_ascii=False)}"[:_LONGEST_LINE] for name, value in settings.items()]
    return lines


def _message_lines(message: dict[str, Any]) -> list[str]:
    lines = [_role(str(message.get("role", "")))]
    for name in ("reasoning_content", "content"):
        lines += [line[:_LONGEST_LINE] for line in _text(message.get(name)).splitlines()]
    calls: list[Any] = [message.get("function_call"), *(message.get("tool_calls") or [])]
    for call in calls:
        made = _dict(_dict(call).get("function")) or _dict(call)
        if made:
            lines.append(f"{made.get('name', '')} {made.get('arguments', '')}"[:_LONGEST_LINE])
    return lines


def _role(role: str) -> str:
    """Services call the result of a tool by another name."""
    return "tool" if role == "function" else role


def _text(content: object) -> str:
    if isinstance(content, list):
        parts = [_dict(part) for part in cast("list[Any]", content)]
        return "\n".join(
            str(part["text"]) if "text" in part else json.dumps(part, ensure_ascii=False) for part in parts
        )
    return content if isinstance(content, str) else ""


def _name(tool: object) -> str:
    about = _dict(tool)
    return str((_dict(about.get("function")) or about).get("name", ""))


def _dict(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


# ---- from what is kept


def _inspected(line: ModelCalled, packed: str | None, redaction: Redaction) -> InspectedCall:
    kept = unpacked(packed) if packed else {}
    if not kept or kept.get("left_out"):
        return InspectedCall(line, left_out=bool(kept))
    given, parsed = [_dict(kept.get("given"))], [_dict(kept.get("parsed"))]
    sent = [_dict(one) for one in cast("list[Any]", kept.get("sent") or [])]
    received = [_dict(one) for one in cast("list[Any]", kept.get("received") or [])]
    stages = {"given": given, "sent": sent, "received": received, "parsed": parsed}
    return InspectedCall(line, {name: [_stage(one, redaction) for one in tries] for name, tries in stages.items()})


def _stage(kept: dict[str, Any], redaction: Redaction) -> Stage:
    head: list[str] = []
    if kept.get("method"):
        head.append(f"{kept['method']} {redaction.said(str(kept.get('address', '')))}")
        head += [f"{name}: {redaction.said(str(value))}" for name, value in kept.get("headers") or ()]
    elif "status" in kept:
        head.append("" if kept["status"] is None else f"HTTP {kept['status']}")
    return Stage(Piece.of(kept.get("body"), redaction), tuple(head), int(kept.get("size") or 0))


def _plain(call: InspectedCall) -> dict[str, Any]:
    line = asdict(call.line)
    line["usage"] = call.line.usage.model_dump() if call.line.usage is not None else None
    line["cost"] = cost_of(call.line)
    del line["kind"]
    stages = {name: [asdict(one) for one in tries] for name, tries in call.stages.items()}
    return {**line, "stages": stages, "left_out": call.left_out}
