"""Inside the bubble of a call: what went in, how far it is, what came back. What is cut here can be seen whole."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode

from webui.render.evidence import one_line, rows, where
from webui.render.files import file_id, item_html
from webui.render.html import escaped, verbatim
from webui.render.invisible import invisible
from webui.render.markdown import fenced

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from core.messages.content import ContentItem
    from core.runs.reply import CallBlock
    from webui.words import Words

# The page shows the beginning of what is longer, and all of it in a window of its own.
LONGEST = 6_000
_UNNAMED = re.compile(r"picture-\d+\.\w+")
_QUOTED = 800  # letters of a passage that its quotation is made from
_ONE_LINE = 60
_STEP = 5  # per cent: the bar's widths are in the style, for there is no style of its own in a reply
_LONGEST_ESCAPE = 6
_BEGUN = re.compile(r'\s*\{\s*"code"\s*:\s*"(.*)\Z', re.DOTALL)
_CODE = {"code_interpreter", "python_executor"}
# The pictures and files that they make are what was asked for: they stand in the answer, and not in the bubble.
DRAWING = _CODE | {"image_gen"}
# What the model is told of them, which the reader sees.
_TOLD = re.compile(r"\n?^\[\d+ (?:pictures?, shown to the user|files?, handed to the user: [^\n]*)\]$", re.MULTILINE)


def body(
    call: CallBlock,
    words: Words,
    message_id: str,
    numbers: Mapping[tuple[Any, ...], int],
    *,
    again: bool,
) -> str:
    """What is inside.

    Args:
        call: The call.
        words: The reader's.
        message_id: The reply's.
        numbers: The numbers of passages, by `address_of`.
        again: Whether the reply is over, so that it can be made again from here.
    """
    parts = [*_given(call, words, message_id), *_going(call, words), *_came_back(call, words, message_id, numbers)]
    if again and call.state != "asked" and _arguments(call):
        parts += ["", f'<p class="p-more">{_link("rerun", message_id, call, "", words("call.again"))}</p>']
    return "\n".join(parts)


def question(call: CallBlock, words: Words, message_id: str) -> str:
    """What an agent was asked; what it says and does comes below, inside of the same bubble."""
    asked = _arguments(call)
    lines = ['<div class="p-inside"></div>', ""]
    if not isinstance(asked, dict) or list(cast("dict[str, Any]", asked)) != ["question"]:
        return "\n".join([*lines, *_given(call, words, message_id)])
    text = str(cast("dict[str, Any]", asked)["question"])
    more = ["", _Cut(call, "given", message_id, words).line()] if len(text) > LONGEST else []
    quoted = f'<p class="p-question">{verbatim(_short(text.strip(), LONGEST))}</p>'
    return "\n".join([*lines, _caption(words("agents.question")), "", quoted, *more])


def outcome(
    call: CallBlock, words: Words, message_id: str, numbers: Mapping[tuple[Any, ...], int], *, again: bool
) -> str:
    """What an agent came back with, as far as it does not stand above already: why it failed, what it made.

    Args:
        call: The call.
        words: The reader's.
        message_id: The reply's.
        numbers: The numbers of passages, by `address_of`.
        again: Whether it can be asked again.
    """
    lines: list[str] = []
    if call.result is not None and (call.state != "done" or call.inner is None):
        lines = _came_back(call, words, message_id, numbers)
    elif things := list(_things(call, message_id, words)):
        lines = [f'<div class="p-files p-things">{"".join(things)}</div>', ""]
    if again and call.state != "asked" and _arguments(call):
        lines.append(f'<p class="p-more">{_link("rerun", message_id, call, "", words("agents.again"))}</p>')
    return "\n".join(lines)


def answering_things(call: CallBlock, message_id: str, words: Words) -> list[str]:
    """Markup of the pictures and files that a call made for the answer, each once."""
    made = call.name in DRAWING and call.state == "done"
    return list(dict.fromkeys(_things(call, message_id, words))) if made else []


def address_of(passage: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a passage is known by."""
    return passage.get("document_id"), passage.get("chunk_id"), passage.get("text")


def _arguments(call: CallBlock) -> Any:
    """The arguments as values, as they were sent; None while they are not whole."""
    if call.edited is not None:
        return call.edited
    try:
        return json.loads(call.arguments)
    except (ValueError, RecursionError):
        return None


# ---- what went in


def _given(call: CallBlock, words: Words, message_id: str) -> list[str]:
    given = _arguments(call)
    if given == {}:
        return []
    cut = _Cut(call, "given", message_id, words)
    if given is None:
        begun = _begun_code(call)
        written, language = (begun, "python") if begun else (call.arguments, "json")
        return _block(written, language, words("reply.given"), cut)
    if call.edited is None:
        return _values(given, call.name, words("reply.given"), cut)
    lines = _values(given, call.name, words("call.changed"), cut)
    before = _before(call)
    return [*lines, *_values(before, call.name, words("call.before"), cut)] if before else lines


def _begun_code(call: CallBlock) -> str:
    """Code that is still being written, as far as it can be read; nothing where it is none."""
    begun = _BEGUN.match(call.arguments) if call.name in _CODE else None
    if begun is None:
        return ""
    for cut in range(_LONGEST_ESCAPE + 1):  # the end may stand in the middle of an escape
        try:
            return str(json.loads(f'"{begun[1][: len(begun[1]) - cut]}"', strict=False))
        except ValueError:
            continue
    return ""


def _before(call: CallBlock) -> dict[str, Any]:
    """What the model had written, where it was changed."""
    try:
        wrote: Any = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(wrote, dict):
        return {}
    edited = call.edited or {}
    return {name: value for name, value in cast("dict[str, Any]", wrote).items() if edited.get(name) != value}


def _values(given: Any, tool: str, caption: str, cut: _Cut) -> list[str]:
    """Arguments as JSON; text of several lines, and code, in blocks of their own."""
    if not isinstance(given, dict):
        return _block(_json(given), "json", caption, cut)
    named = cast("dict[str, Any]", given)
    apart = {name: value for name, value in named.items() if _is_text(name, value, tool)}
    rest = {name: value for name, value in named.items() if name not in apart}
    lines = _block(_json(rest), "json", caption, cut) if rest else []
    for name, value in apart.items():
        is_code = tool in _CODE and name == "code"
        under = caption if is_code and not rest else f"{caption} · {name}"
        lines += _block(value.strip("\n"), "python" if is_code else "", under, cut)
    return lines


def _is_text(name: str, value: Any, tool: str) -> bool:
    return isinstance(value, str) and bool(value.strip()) and ("\n" in value or (tool in _CODE and name == "code"))


def _json(given: Any) -> str:
    short = json.dumps(given, ensure_ascii=False)
    return short if len(short) <= _ONE_LINE else json.dumps(given, ensure_ascii=False, indent=2)


# ---- how far it is


def _going(call: CallBlock, words: Words) -> list[str]:
    progress = call.progress
    if progress is None or call.state != "running":
        return []
    bar = ""
    if progress.total and progress.done is not None:
        share = min(max(progress.done / progress.total, 0.0), 1.0)
        bar = f'<span class="p-track"><span class="p-bar p-b{round(share * 100 / _STEP) * _STEP}"></span></span>'
    text = escaped(progress.text.strip() or words("reply.state_running"))
    return [f'<p class="p-going">{text}{bar}</p>', ""]


# ---- what came back


def _came_back(call: CallBlock, words: Words, message_id: str, numbers: Mapping[tuple[Any, ...], int]) -> list[str]:
    if call.result is None:
        return []
    extra = call.result.extra or {}
    found: list[dict[str, Any]] = list(extra.get("passages") or ())
    caption = words("reply.failed" if call.state == "failed" else "reply.came_back")
    below = answering_things(call, message_id, words)
    things = [one for one in _things(call, message_id, words) if one not in below]
    note = invisible(extra, words)
    shown = f'<div class="p-files p-things">{"".join(things)}</div>' if things else ""
    lines = [_caption(caption), "", *([f'<p class="p-note">{escaped(note)}</p>', ""] if note else [])]
    if found:
        rows = "".join(_passage(passage, words, message_id, numbers.get(address_of(passage))) for passage in found)
        return [
            *lines,
            f'<div class="p-found">{rows}</div>',
            *([shown] if shown else []),
            *_whole(call, words, message_id),
        ]
    text = call.result.get_text_content()
    text = _TOLD.sub("", text).strip("\n") if call.name in _CODE else text
    if text.strip():
        lines += [*fenced(_short(text, LONGEST), _language(text)), ""]
    elif below:
        lines += [f'<p class="p-none">{escaped(words("call.made_below"))}</p>', ""]
    elif not shown:
        lines += [f'<p class="p-none">{escaped(words("reply.nothing"))}</p>', ""]
    return [*lines, *([shown, ""] if shown else []), *_whole(call, words, message_id)]


def _things(call: CallBlock, message_id: str, words: Words) -> Iterator[str]:
    """Pictures, sounds and files of a result: those in the store by their address there, those in it by ours."""
    if call.result is None:
        return
    extra = call.result.extra or {}
    known = cast("list[dict[str, Any]]", extra.get("files") or [])
    about = {str(one.get("id")): one for one in known}
    pictures = 0
    items = call.result.items
    for number, item in enumerate(items):
        if item.type == "text" or (extra.get("whole") and number == len(items) - 1):
            continue
        pictures += item.type == "image"
        told = {
            "name": words("call.picture", n=pictures) if item.type == "image" else "",
            **about.get(file_id(item), {}),
        }
        if item.type == "image" and _UNNAMED.fullmatch(str(told["name"])):
            told["name"] = words("call.picture", n=pictures)
        yield _held(item, number, call, message_id, told, words) or item_html(item, told, words)


def _held(
    item: ContentItem, number: int, call: CallBlock, message_id: str, told: Mapping[str, Any], words: Words
) -> str:
    """A picture or file that stands in the result itself."""
    if not isinstance(item.value, str) or not item.value.startswith("data:"):
        return ""
    address = escaped("./calls/item?" + urlencode({"message": message_id, "call": call.call_id, "n": number}))
    name = escaped(str(told.get("name") or words("reply.file")))
    match item.type:
        case "image":
            return f'<a class="p-pic" href="{address}" title="{name}"><img src="{address}" alt="{name}"></a>'
        case "audio" | "video":
            return f'<{item.type} controls preload="metadata" src="{address}" title="{name}"></{item.type}>'
        case _:
            return f'<a class="p-chip" href="{address}"><span class="p-name">{name}</span></a>'


def _whole(call: CallBlock, words: Words, message_id: str) -> list[str]:
    """The way to all of a result that is shown in part, here or to the model."""
    if call.result is None:
        return []
    extra = call.result.extra or {}
    size = extra.get("cut_from")
    said = escaped(words("call.cut_from", size=round(size / 1000))) + " " if isinstance(size, int) else ""
    if not said and (extra.get("passages") or len(call.result.get_text_content()) <= LONGEST):
        return []
    return [f'<p class="p-more">{said}{_link("whole", message_id, call, ".result", words("call.whole"))}</p>', ""]


def _passage(passage: Mapping[str, Any], words: Words, message_id: str, number: int | None) -> str:
    text = escaped(_short(one_line(rows(str(passage.get("text", ""))[:_QUOTED])), 160))
    mark = f'<a class="cite" href="#cite-{escaped(message_id)}-{number}">{number}</a> ' if number else ""
    return f'<p>{mark}<span>{text}</span> <span class="p-where">{escaped(where(passage, words))}</span></p>'


# ---- blocks


class _Cut:
    """Where all of a text can be seen that is cut."""

    def __init__(self, call: CallBlock, what: str, message_id: str, words: Words) -> None:
        self._call, self._what, self._message_id, self._words = call, what, message_id, words

    def line(self) -> str:
        """A line with the way there."""
        label = self._words("call.whole")
        return f'<p class="p-more">{_link("whole", self._message_id, self._call, f".{self._what}", label)}</p>'


def _block(text: str, language: str, caption: str, cut: _Cut) -> list[str]:
    if not text.strip():
        return []
    lines = [_caption(caption), "", *fenced(_short(text, LONGEST), language), ""]
    return [*lines, cut.line(), ""] if len(text) > LONGEST else lines


def _link(act: str, message_id: str, call: CallBlock, what: str, label: str) -> str:
    address = f"#do-{act}-{escaped(f'{message_id}.{call.address}{what}')}"
    return f'<a class="p-do p-word" role="button" href="{address}">{escaped(label)}</a>'


def _language(text: str) -> str:
    if text.lstrip()[:1] not in {"{", "["}:
        return ""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return "json"


def _caption(text: str) -> str:
    return f'<p class="p-cap">{escaped(text)}</p>'


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
