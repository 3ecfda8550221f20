"""A case for a suite, made of a stored reply that was found right: a file that `parlour eval` takes as it is."""

from __future__ import annotations

import json
import re
from io import StringIO
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from core.agents.reply import Reply
from core.errors import NotFoundError
from core.judging.cases import case_of
from core.messages.message import USER, Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.export.redaction import Redaction
    from core.languages import Lang
    from core.storage.base import StoredMessage

CaseForm: TypeAlias = Literal["yaml", "json"]
_SHORTEST: Final = 12  # letters of a message's id that name the case
_NOTES: Final = {
    "en": (
        "A task made of a reply that was right. Change or leave out checks that do not matter.",
        "Put these files beside this one: {files}",
        "The question was not the first of its conversation: write it so that it can be understood alone.",
    ),
    "zh": (
        "由一条正确的回答做成的任务。无关紧要的检查可以修改或删去。",
        "请把这些文件放在本文件旁边：{files}",
        "这不是对话的第一个问题：请把它写得单独也能看懂。",
    ),
}


def case_from_turn(
    message: StoredMessage, question: StoredMessage, files: Sequence[str], redaction: Redaction
) -> dict[str, Any]:
    """A task of a suite, made of a reply.

    Args:
        message: The reply.
        question: What it answers.
        files: The names of the documents that it could read.
        redaction: Takes keys out.

    Raises:
        NotFoundError: Nothing was asked or answered that makes a case (key `no_case`).
    """
    said = "\n\n".join(one.get_text_content() for one in question.parts)
    reply = Reply(output="", messages=message.parts, asked=[Message(USER, said)])
    if not said.strip() or not reply.text.strip() or message.status != "complete":
        raise NotFoundError("Only a whole reply with a text makes a case.", key="no_case")
    case = case_of(reply, f"reply-{re.sub('[^A-Za-z0-9]', '', message.id)[:_SHORTEST].lower()}")
    made = cast("dict[str, Any]", redaction.value(case, machine=False))
    return {**made, **({"files": list(files)} if files else {})}


def case_file(case: dict[str, Any], form: CaseForm, lang: Lang = "en", *, goes_on: bool = False) -> bytes:
    """A suite with one task, as a file.

    Args:
        case: As `case_from_turn` makes it.
        lang: Of the notes in a file of YAML.
        goes_on: Whether something was said before the question.
    """
    suite = {"name": case["id"], "tasks": [case]}
    if form == "json":
        return (json.dumps(suite, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "replace")
    import yaml  # asked for seldom

    what, beside, alone = _NOTES[lang]
    notes = [what]
    if files := cast("list[str]", case.get("files") or []):
        notes.append(beside.format(files=", ".join(json.dumps(one, ensure_ascii=False) for one in files)))
    notes += [alone] if goes_on else []
    written = StringIO("".join(f"# {note}\n" for note in notes))
    written.seek(0, 2)
    yaml.safe_dump(suite, written, allow_unicode=True, sort_keys=False, width=100)
    return written.getvalue().encode("utf-8", "replace")
