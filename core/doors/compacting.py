"""What was said, in short: a summary that a program sends back in the place of it, and that nobody else can read."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, cast

from core.agents.conversation import language_of
from core.agents.summarize import summarize, summary_turn
from core.doors.asked import BadRequestError
from core.doors.responses import usage_json
from core.errors import LimitReachedError, ModelUnavailableError, StorageError
from core.llm.layers.fit_context import DEFAULT_MAX_INPUT_TOKENS, max_input_of
from core.llm.ledger import recorded_by
from core.messages.message import ASSISTANT, SYSTEM, USER
from core.runs.account import Account
from core.tools.taint import Taint

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from core.doors.asked import Asked
    from core.doors.door import Door
    from core.messages.message import Message

_PLACE: Final = "compaction"
_LONGEST_SAID: Final = 20_000  # characters of what the user said that stay word for word, the newest


async def compacted(door: Door, asked: Asked, items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A summary of what was said, in the form of a compacted response.

    Args:
        asked: All that was said, and whose model writes the summary.
        items: What was said and what the request says; what the user said in it stays.

    Raises:
        BadRequestError: Nothing was said.
        ModelUnavailableError: The model made no summary.
        LimitReachedError: The model was not ready, or the summary not made, in the time that a reply may take.
        ParlourError: The model cannot be had, or too many replies of the owner wait for their turn.
    """
    said = [one for one in asked.messages if one.role != SYSTEM]
    if not said:
        raise BadRequestError("There is nothing to sum up: input has no messages.", param="input")
    account, seconds = Account(), door.doors.services.settings.reply_seconds
    slot = door.doors.services.runs.at_once.take(door.owner)
    try:
        await slot.wait()
        with recorded_by(account):
            async with asyncio.timeout(seconds):  # getting the model ready takes of it, too
                text = await _summary(door, asked.model, said)
    except TimeoutError as error:
        said_so = f"The summary has taken {seconds:g} seconds and was ended."
        raise LimitReachedError(said_so, hint="Try again later, or send less.", key="time_limit") from error
    finally:
        slot.release()
        usage = await account.usage()
        door.note(usage, questions=1)
    if not text:
        said_so = "The model made no summary of what was said."
        raise ModelUnavailableError(said_so, hint="Try again, or send less.")
    secret = door.doors.sealer.seal(json.dumps([text, Taint.of(said).private]), _PLACE, door.owner)
    item = {"type": "compaction", "id": f"cmp_{token_hex(12)}", "encrypted_content": secret}
    about = {"id": f"resp_{token_hex(16)}", "object": "response.compaction", "created_at": int(time.time())}
    return {**about, "output": [*_kept(items), item], "usage": usage_json(usage)}


def said_before(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """What the user said in earlier responses, as items; a question that only stands before a summary is nobody's."""
    asks = summary_turn("", (), "en")[0].get_text_content()
    texts = [one.get_text_content() for one in messages if one.role == USER]
    return [{"role": "user", "content": text} for text in texts if text != asks]


def expanded(door: Door, items: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], set[str]]:
    """The items of a request, with what each summary says in its place; and what those say that hold something private.

    Raises:
        BadRequestError: A summary was not made here, or for somebody else.
    """
    found: list[dict[str, Any]] = []
    secrets: set[str] = set()
    for at, item in enumerate(items):
        if item.get("type") != "compaction":
            found.append(item)
            continue
        try:
            told = door.doors.sealer.open(str(item.get("encrypted_content") or ""), _PLACE, door.owner)
        except StorageError as error:
            hint = "Send encrypted_content as POST /v1/responses/compact gave it, with a key of the same owner."
            raise BadRequestError(
                "This compaction was not made here.", param=f"input[{at}].encrypted_content", hint=hint
            ) from error
        text, private = json.loads(told)
        found += [{"role": one.role, "content": one.get_text_content()} for one in summary_turn(text, (), "en")]
        secrets |= {text} if private else set()
    return found, secrets


def with_private(asked: Asked, summaries: Collection[str]) -> Asked:
    """The question, with the summaries marked that hold something private."""
    marked = [
        one.model_copy(update={"extra": {**(one.extra or {}), "files": ["summary"]}})
        if one.role == ASSISTANT and one.get_text_content() in summaries
        else one
        for one in asked.messages
    ]
    return replace(asked, messages=marked) if summaries else asked


async def _summary(door: Door, model_id: str, said: Sequence[Message]) -> str:
    async with door.opened() as workspace:
        offered = await door.found(workspace, model_id)
        loader = await workspace.models.loader(offered.model)
        with loader.in_use():
            model = await loader.ready()
            room = max_input_of(model.generate_cfg)
            room = room if room > 0 else DEFAULT_MAX_INPUT_TOKENS
            return await summarize(said, model, language_of(said), room)


def _kept(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What the user said, word for word, as far back as there is room for it."""
    kept: list[dict[str, Any]] = []
    room = _LONGEST_SAID
    for item in reversed(items):
        text = _text_of(item.get("content"))
        if item.get("type", "message") != "message" or item.get("role") != "user" or not text:
            continue
        room -= len(text)
        if room < 0:
            break
        part = {"type": "input_text", "text": text}
        about = {"type": "message", "id": f"msg_{token_hex(12)}", "status": "completed", "role": "user"}
        kept.append({**about, "content": [part]})
    return kept[::-1]


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    texts = [cast("dict[str, Any]", one).get("text") for one in parts if isinstance(one, dict)]
    return "\n".join(one for one in texts if isinstance(one, str))
