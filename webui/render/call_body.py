"""The inside of a call's bubble: input, progress and output, with links to the full text of what is cut."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode

from webui.render.citations import one_line, passage_label, passage_lines
from webui.render.documents import file_id, item_html
from webui.render.markdown import fenced
from webui.render.markup import escaped, invisible_in, verbatim

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from core.messages.content import ContentItem
    from core.runs.reply import CallBlock
    from webui.words import Words

# Longer texts are cut; a link opens all of it in a dialog.
LONGEST = 6_000
_UNNAMED = re.compile(r"picture-\d+\.\w+")
_SHOWN = 400  # characters of it: more than its lines hold, so that the page alone cuts it off
_QUOTED = 800  # characters of a passage that are looked at for its quotation
_ONE_LINE = 60
_STEP = 5  # per cent: the widths of the bar are CSS classes, for a reply may have no inline style
_LONGEST_ESCAPE = 6
_BEGUN = re.compile(r'\s*\{\s*"code"\s*:\s*"(.*)\Z', re.DOTALL)
_READS = "read_documents"
_CODE = {"code_interpreter", "python_executor"}
_TABLES = "ask_tables"
# Their pictures and files are what was asked for: they are shown in the answer, not in the bubble.
DRAWING = _CODE | {"image_gen"}
# Notes for the model about them, which the reader does not need.
_TOLD = re.compile(r"\n?^\[\d+ (?:pictures?, shown to the user|files?, handed to the user: [^\n]*)\]$", re.MULTILINE)


def call_body(
    call: CallBlock,
    words: Words,
    message_id: str,
    numbers: Mapping[tuple[Any, ...], int],
    *,
    again: bool,
) -> str:
    """The inside of a bubble.

    Args:
        numbers: The numbers of passages, by `address_of`.
        again: Whether the call can be run again: the reply is over.
    """
    parts = [
        *_input(call, words, message_id),
        *_progress(call, words, message_id),
        *_output(call, words, message_id, numbers),
    ]
    if again and call.state != "asked" and _arguments(call):
        parts += ["", f'<p class="p-more">{_link("rerun", message_id, call, "", words("call.again"))}</p>']
    return "\n".join(parts)


def agent_question(call: CallBlock, words: Words, message_id: str) -> str:
    """The question to an agent; what the agent says and does follows in the same bubble."""
    asked = _arguments(call)
    lines = ['<div class="p-inside"></div>', ""]
    if not isinstance(asked, dict) or list(cast("dict[str, Any]", asked)) != ["question"]:
        return "\n".join([*lines, *_input(call, words, message_id)])
    text = str(cast("dict[str, Any]", asked)["question"])
    more = ["", _Cut(call, "given", message_id, words).line()] if len(text) > LONGEST else []
    quoted = f'<p class="p-question">{verbatim(_short(text.strip(), LONGEST))}</p>'
    return "\n".join([*lines, _caption(words("agents.question")), "", quoted, *more])


def agent_outcome(
    call: CallBlock, words: Words, message_id: str, numbers: Mapping[tuple[Any, ...], int], *, again: bool
) -> str:
    """The outcome of an agent's call, as far as its entries do not show it: why it failed, which files it made.

    Args:
        numbers: The numbers of passages, by `address_of`.
        again: Whether the agent can be asked again.
    """
    lines: list[str] = []
    if call.result is not None and (call.state != "done" or call.inner is None):
        lines = _output(call, words, message_id, numbers)
    elif things := list(_result_things(call, message_id, words)):
        lines = [f'<div class="p-files p-things">{"".join(things)}</div>', ""]
    if again and call.state != "asked" and _arguments(call):
        lines.append(f'<p class="p-more">{_link("rerun", message_id, call, "", words("agents.again"))}</p>')
    return "\n".join(lines)


def answer_things(call: CallBlock, message_id: str, words: Words) -> list[str]:
    """Markup of the pictures and files that a call made for the answer, each once."""
    made = call.name in DRAWING and call.state == "done"
    return list(dict.fromkeys(_result_things(call, message_id, words))) if made else []


def address_of(passage: Mapping[str, Any]) -> tuple[Any, ...]:
    """The key of a passage."""
    return passage.get("document_id"), passage.get("chunk_id"), passage.get("text")


def _arguments(call: CallBlock) -> Any:
    """The arguments as they were sent; None while they are incomplete."""
    if call.edited is not None:
        return call.edited
    try:
        return json.loads(call.arguments)
    except (ValueError, RecursionError):
        return None


# ---- input


def _input(call: CallBlock, words: Words, message_id: str) -> list[str]:
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
    """The readable part of code that is still being written; "" for anything else."""
    begun = _BEGUN.match(call.arguments) if call.name in _CODE else None
    if begun is None:
        return ""
    for cut in range(_LONGEST_ESCAPE + 1):  # the text may end inside an escape
        try:
            return str(json.loads(f'"{begun[1][: len(begun[1]) - cut]}"', strict=False))
        except ValueError:
            continue
    return ""


def _before(call: CallBlock) -> dict[str, Any]:
    """The arguments of the model that the reader changed."""
    try:
        wrote: Any = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(wrote, dict):
        return {}
    edited = call.edited or {}
    return {name: value for name, value in cast("dict[str, Any]", wrote).items() if edited.get(name) != value}


def _values(given: Any, tool: str, caption: str, cut: _Cut) -> list[str]:
    """Arguments as JSON; code and text of several lines get blocks of their own."""
    if not isinstance(given, dict):
        return _block(_json(given), "json", caption, cut)
    named = cast("dict[str, Any]", given)
    apart = {name: value for name, value in named.items() if _is_text(name, value, tool)}
    rest = {name: value for name, value in named.items() if name not in apart}
    lines = _block(_json(rest), "json", caption, cut) if rest else []
    for name, value in apart.items():
        language = _language_of(name, tool)
        under = caption if language and not rest else f"{caption} · {name}"
        lines += _block(value.strip("\n"), language, under, cut)
    return lines


def _is_text(name: str, value: Any, tool: str) -> bool:
    return isinstance(value, str) and bool(value.strip()) and ("\n" in value or bool(_language_of(name, tool)))


def _language_of(name: str, tool: str) -> str:
    """The language of an argument that is code."""
    if tool in _CODE and name == "code":
        return "python"
    return "sql" if tool == _TABLES and name == "query" else ""


def _json(given: Any) -> str:
    short = json.dumps(given, ensure_ascii=False)
    return short if len(short) <= _ONE_LINE else json.dumps(given, ensure_ascii=False, indent=2)


# ---- progress


def _progress(call: CallBlock, words: Words, message_id: str) -> list[str]:
    progress = call.progress
    if progress is None or call.state != "running":
        return []
    bar = ""
    if progress.total and progress.done is not None:
        share = min(max(progress.done / progress.total, 0.0), 1.0)
        bar = f'<span class="p-track"><span class="p-bar p-b{round(share * 100 / _STEP) * _STEP}"></span></span>'
    text = escaped(progress.text.strip() or words("reply.state_running"))
    return [f'<p class="p-going">{text}{bar}</p>', *_enough(call, words, message_id), ""]


def _enough(call: CallBlock, words: Words, message_id: str) -> list[str]:
    """The way to have the answer before all is read."""
    if call.name != _READS:
        return []
    said = escaped(words("reading.answer_now"))
    link = f'<a class="p-do p-word" role="button" href="#do-asknow-{escaped(message_id)}">{said}</a>'
    return [f'<p class="p-enough">{link}</p>']


# ---- output


def _output(call: CallBlock, words: Words, message_id: str, numbers: Mapping[tuple[Any, ...], int]) -> list[str]:
    if call.result is None:
        return []
    extra = call.result.extra or {}
    found: list[dict[str, Any]] = list(extra.get("passages") or ())
    caption = words("reply.failed" if call.state == "failed" else "reply.came_back")
    below = answer_things(call, message_id, words)
    things = [one for one in _result_things(call, message_id, words) if one not in below]
    note = invisible_in(extra, words)
    shown = f'<div class="p-files p-things">{"".join(things)}</div>' if things else ""
    lines = [_caption(caption), "", *([f'<p class="p-note">{escaped(note)}</p>', ""] if note else [])]
    if found:
        kept = [one for one in found if one.get("text") or one.get("document")]  # a copy of what is shared lacks some
        rows = "".join(_passage(passage, words, message_id, numbers.get(address_of(passage))) for passage in kept)
        if lacking := len(found) - len(kept):
            said = words("call.not_here_one") if lacking == 1 else words("call.not_here", n=lacking)
            rows += f'<p class="p-where">{escaped(said)}</p>'
        return [
            *lines,
            f'<div class="p-found">{rows}{_steps(extra, words)}</div>',
            *([shown] if shown else []),
            *_show_all(call, words, message_id),
        ]
    text = call.result.get_text_content()
    text = _TOLD.sub("", text).strip("\n") if call.name in _CODE else text
    if text.strip():
        lines += [*fenced(_short(text, LONGEST), _language(text)), ""]
    elif below:
        lines += [f'<p class="p-none">{escaped(words("call.made_below"))}</p>', ""]
    elif not shown:
        lines += [f'<p class="p-none">{escaped(words("reply.nothing"))}</p>', ""]
    return [*lines, *([shown, ""] if shown else []), *_show_all(call, words, message_id)]


def _result_things(call: CallBlock, message_id: str, words: Words) -> Iterator[str]:
    """Markup of the pictures, sounds and files of a result, stored ones and embedded ones."""
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
        yield _embedded_thing(item, number, call, message_id, told, words) or item_html(item, told, words)


def _embedded_thing(
    item: ContentItem, number: int, call: CallBlock, message_id: str, told: Mapping[str, Any], words: Words
) -> str:
    """A picture or file that is embedded in the result."""
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


def _show_all(call: CallBlock, words: Words, message_id: str) -> list[str]:
    """The link to the full result, where the page or the model got a part of it."""
    if call.result is None:
        return []
    extra = call.result.extra or {}
    size = extra.get("cut_from")
    said = escaped(words("call.cut_from", size=round(size / 1000))) + " " if isinstance(size, int) else ""
    if not said and (extra.get("passages") or len(call.result.get_text_content()) <= LONGEST):
        return []
    return [f'<p class="p-more">{said}{_link("whole", message_id, call, ".result", words("call.whole"))}</p>', ""]


def _steps(extra: Mapping[str, Any], words: Words) -> str:
    """What was read for a figure that was computed from tables."""
    computed = cast("dict[str, Any]", extra.get("computed") or {})
    tables = cast("list[dict[str, Any]]", computed.get("tables") or [])
    told = [
        words(
            "call.computed" if one.get("columns") else "call.computed_rows",
            table=str(one.get("table", "")),
            n=int(one.get("read", 0)),
            columns=words("lang.comma").join(map(str, one.get("columns") or ())),
        )
        for one in tables
    ]
    return "".join(f'<p class="p-where">{escaped(one)}</p>' for one in told)


def _passage(passage: Mapping[str, Any], words: Words, message_id: str, number: int | None) -> str:
    text = str(passage.get("text", ""))[:_QUOTED]
    if passage.get("rows"):  # its first line is the result, and what follows the rows that it was computed from
        text = text.partition("\n")[0]
    text = escaped(_short(one_line(passage_lines(text)), _SHOWN))
    mark = f'<a class="cite" href="#cite-{escaped(message_id)}-{number}">{number}</a> ' if number else ""
    where = f'<span class="p-where">{escaped(passage_label(passage, words))}</span>'
    return f"<p>{mark}{where}<br><span>{text}</span></p>"


# ---- blocks


class _Cut:
    """The link to the full text of something that is cut."""

    def __init__(self, call: CallBlock, what: str, message_id: str, words: Words) -> None:
        self._call, self._what, self._message_id, self._words = call, what, message_id, words

    def line(self) -> str:
        """The line with the link."""
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
