"""What a model is told when a call was not made, or failed: one sentence, never a traceback or a place in our code."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import BadArgumentsError, ParlourError, ToolError
from core.tools.base import Lang, ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.tools.approval import Why

_LONGEST = 600  # characters of an error that the model reads
_HERE = Path(__file__).resolve().parents[2]
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
    "timeout": (
        "refused_timeout",
        {
            "en": "This call needs the user's permission, and the user did not answer in time.",
            "zh": "这次调用需要用户允许，而用户没有及时答复。",
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


def tried_to_end(name: str) -> ToolError:
    """Of a tool that called `sys.exit`, as `argparse` does: the model can do without this one."""
    return ToolError(f"The tool {name!r} tried to end the program.", tool=name)
