"""From what a tool returned, refused or failed with to the message that a model reads, cut where it is too long."""

from __future__ import annotations

import json
import re
import sys
from base64 import b64encode
from binascii import a2b_base64
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import to_jsonable_python

from core.errors import BadArgumentsError, ParlourError, ToolError
from core.llm.media import kind_of
from core.messages.content import ContentItem
from core.messages.invisible import without_invisible
from core.messages.message import FUNCTION, Message
from core.tools.base import ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.languages import Lang
    from core.tools.approval import Why


_LARGEST_WHOLE = 24 * 1024 * 1024  # bytes: a longer result is not kept beside its ends
_NO_FILE_NAME = str.maketrans(dict.fromkeys('/\\:*?"<>| ', "_"))


def as_result(returned: object) -> ToolResult:
    """Whatever a tool returns, in one form."""
    match returned:
        case ToolResult():
            return returned
        case None:
            return ToolResult()
        case str():
            return ToolResult(returned)
        case list() if found := _items(cast("list[object]", returned)):
            text = "\n".join(item.text for item in found if item.text)
            return ToolResult(text, tuple(item for item in found if item.type != "text"))
        case _:
            return ToolResult(_json(returned))


def _json(value: object) -> str:
    """JSON that every reader takes: what no number of JSON is stands there as text."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, default=str, allow_nan=False)
    except ValueError:  # NaN, an infinity, or a circle
        written = json.dumps(value, ensure_ascii=False, default=str)
        read = json.loads(written, parse_constant=str)
        return json.dumps(read, ensure_ascii=False, indent=2)


def as_message(name: str, result: ToolResult, limit: int, **about: Any) -> Message:
    """The result as a message. A text that is too long is cut to its ends, and is there whole as its last item.

    Args:
        limit: The most bytes of text that a model is shown.
        about: For `extra`, over what the result brings along. There too: `cut_from`, the bytes that a cut text had,
            `whole`, what the file with all of it is called, and `invisible`, how many invisible characters were taken
            out of it.
    """
    seen, removed = without_invisible(result.text)
    text, size = truncate_middle(seen, limit)
    items = [_as_it_is(item) for item in result.items]
    extra = {**_plain(result.extra), **about}
    if result.data is not None:
        extra["data"] = _kept(result.data)
    if result.passages:
        extra["passages"] = list(result.passages)
    if removed:
        extra["invisible"] = removed
    if size:
        extra["cut_from"] = size
    if 0 < size <= _LARGEST_WHOLE:
        extra["whole"] = f"{name.translate(_NO_FILE_NAME)}.txt"
        raw = b64encode(seen.encode("utf-8", "replace")).decode()
        items.append(ContentItem(file=f"data:text/plain;charset=utf-8;base64,{raw}"))
    if not items:
        return Message(FUNCTION, text, name=name, extra=extra)
    shown = [ContentItem(text=text)] if text else []
    return Message(FUNCTION, [*shown, *items], name=name, extra=extra)


def _as_it_is(item: ContentItem) -> ContentItem:
    """The item; what calls itself a picture and is none that models see is a file, or no model would go on with it."""
    address = item.image or ""
    if item.type != "image" or not address.startswith("data:"):
        return item
    head, _, data = address.partition(",")
    try:
        begins = a2b_base64(data[:24]) if head.endswith(";base64") else b""
    except ValueError:
        begins = b""
    return item if kind_of(begins) else ContentItem(file=address)


def _plain(extra: Mapping[str, Any]) -> dict[str, Any]:
    """The same as JSON values, since the result is stored; what is none becomes text."""
    try:
        return json.loads(json.dumps(dict(extra), default=str))
    except (TypeError, ValueError, RecursionError):  # keys that are no text, circles
        return {str(key): str(value) for key, value in extra.items()}


def _kept(data: object) -> Any:
    """What a tool gave the program, as JSON; what is none becomes text."""
    try:
        return to_jsonable_python(data, fallback=str)
    except (ValueError, RecursionError):  # circles
        return str(data)


def _items(returned: list[object]) -> list[ContentItem]:
    """The same list, if it is one of content items alone."""
    found = [item for item in returned if isinstance(item, ContentItem)]
    return found if len(found) == len(returned) else []


def truncate_middle(text: str, limit: int) -> tuple[str, int]:
    """The text, or its beginning and end with a line between that says how much is missing.

    Args:
        limit: The most bytes (UTF-8) that may stay, the line between included.

    Returns:
        The text, and the bytes it had before if it was cut, else 0. No character is torn.
    """
    if len(text) * 4 <= limit:
        return text, 0
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return text, 0
    notice = f"\n\n[… {len(raw)} bytes in all; the middle is left out …]\n\n"
    room = max(limit - len(notice.encode()), 0)
    head = raw[: room - room // 2].decode("utf-8", "ignore")
    tail = raw[len(raw) - room // 2 :].decode("utf-8", "ignore")
    return f"{head}{notice}{tail}", len(raw)


_LONGEST = 600  # characters of an error that the model reads
_HERE = Path(__file__).resolve().parents[__name__.count(".")]
_OURS = re.compile(
    "|".join(re.escape(str(place)) for place in sorted({_HERE, Path(sys.prefix), Path(sys.base_prefix)}, reverse=True))
    + r"|\S*site-packages"
)
# Libraries put whole addresses and headers into their errors.
_SECRET = re.compile(
    r"((?:key|token|secret|password|passwd|signature)[\"']?\s?[=:]\s?[\"']?|\b(?:bearer|basic)\s)[^\s&'\",;)]+",
    re.IGNORECASE,
)
_REFUSED: Mapping[Why, tuple[str, Mapping[Lang, str]]] = {
    "user": ("refused", {"en": "The user did not allow this call.", "zh": "用户没有允许这次调用。"}),
    "rule": (
        "refused_rule",
        {"en": "A rule of the user's does not allow this call.", "zh": "用户的规则不允许这次调用。"},
    ),
    "unattended": (
        "refused_unattended",
        {
            "en": "This call needs the user's permission, and nobody is there to give it.",
            "zh": "这次调用需要用户允许，而现在没有人可以询问。",
        },
    ),
    "compared": (
        "refused_compared",
        {
            "en": "This call needs the user's permission, which is not asked for while two models answer side by side. "
            "Say that it can be made once the user goes on with one of them.",
            "zh": "这次调用需要用户允许，而两个模型并排回答时不会询问用户。请说明：用户选定其中一个继续后即可执行。",
        },
    ),
    "timeout": (
        "refused_timeout",
        {
            "en": "This call needs the user's permission, and the user did not answer in time.",
            "zh": "这次调用需要用户允许，而用户没有及时答复。",
        },
    ),
    "made": (
        "interrupted",
        {
            "en": "This call was allowed and made before with these arguments. It is not made again; go on from there.",
            "zh": "这次调用先前已获允许，并以这些参数执行过，不会再次执行。请从这里继续。",
        },
    ),
}
_EDITED: Mapping[Lang, str] = {
    "en": "(The user changed the arguments to {arguments}.)",
    "zh": "（用户已将参数改为 {arguments}。）",
}


def refusal(why: Why, lang: Lang) -> ToolResult:
    """The result of a call that was not allowed; `extra["failed"]` says by what."""
    key, words = _REFUSED.get(why, _REFUSED["rule"])
    return ToolResult(words[lang], extra={"failed": key})


def with_note(result: ToolResult, arguments: Mapping[str, Any], lang: Lang) -> ToolResult:
    """The result of a call whose arguments the user edited: the model must not report what it had wanted."""
    words = _EDITED[lang].format(arguments=json.dumps(dict(arguments), ensure_ascii=False))
    return replace(result, text=f"{words}\n{result.text}")


def failure(name: str, error: Exception) -> ToolResult:
    """The result of a call that failed; `extra["failed"]` names the error."""
    if isinstance(error, ParlourError):
        key, text = error.words_key, str(error)
    else:
        first = next(iter(str(error).strip().splitlines()), "")
        said = _SECRET.sub(r"\1…", _OURS.sub("…", first))
        key = ToolError.key
        text = f"The tool {name!r} failed: {type(error).__name__}{f': {said}' if said else ''}"
    if isinstance(error, BadArgumentsError):
        text += " Call it again with corrected arguments."
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}…"
    return ToolResult(text, extra={"failed": key})


def exit_refused(name: str) -> ToolError:
    """Of a tool that called `sys.exit`, as `argparse` does: the model can do without this one."""
    return ToolError(f"The tool {name!r} tried to end the program.", tool=name)
