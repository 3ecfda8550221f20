"""A reply: what was thought, which tools were called, the text, and how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from core.runs.reply import CallBlock, ItemBlock, ReasoningBlock, TextBlock
from webui.render.calls import call_entries
from webui.render.claims import notes_of, summary
from webui.render.entries import bubble, said
from webui.render.evidence import citing
from webui.render.files import item_html
from webui.render.html import escaped
from webui.render.markdown import markdown
from webui.render.reading import left_out, waiting_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.runs.reply import Block, Reply
    from core.storage.base import RunStatus, StoredMessage
    from webui.render.entries import Entry
    from webui.render.inline import Cite
    from webui.render.reading import Waiting
    from webui.words import Words

_BRIEF = 0.5
_LOOKED_UP = "ask_documents"  # before the model is asked at all
# A file that cannot be read: asking again would end the same way.
_FOR_GOOD = frozenset(
    f"document_{what}"
    for what in (
        "unsupported",
        "broken",
        "locked",
        "empty",
        "scanned",
        "no_text",
        "not_a_file",
        "not_what_it_says",
        "password_asked",
        "password_wrong",
        "cancelled",
        "too_large",
    )
)

# What the reader can mend in the dialog about models.
_MENDED_IN_SETTINGS = frozenset(
    f"model_{what}" for what in ("key_wrong", "key_missing", "unknown", "unreachable", "html", "quota", "not_named")
) | {"key_unreadable", "weights_unreachable"}


def reply_entries(
    message: StoredMessage, reply: Reply | None, words: Words, *, last: bool, waiting: Waiting | None = None
) -> list[Entry]:
    """The entries of a reply.

    Args:
        message: The turn it is stored as.
        reply: What is known of it; without one the stored text is shown.
        words: The reader's.
        last: Whether it is the last turn: only that one can be continued or written anew.
        waiting: The documents that it waits for, if any.
    """
    if reply is None:
        text = "\n\n".join(part.get_text_content() for part in message.parts if part.role == "assistant")
        foot = _foot(message, message.status, words, last=last, begun=bool(text.strip()))
        return [said("assistant", markdown(text, words)), foot]
    entries = _block_entries(reply, words, message.id)
    if reply.status == "running":
        if waiting is not None and not entries:
            return [said("assistant", waiting_line(waiting, message.id, words))]
        return [*entries, *_still(reply, words)]
    if reply.status == "error" and reply.error is not None:
        entries.append(said("assistant", _error(reply.error, words)))
    elif reply.status == "complete" and not entries:
        entries.append(said("assistant", f'<p class="p-none">{escaped(words("reply.empty"))}</p>'))
    hopeless = reply.error is not None and reply.error.get("key") in _FOR_GOOD
    if not hopeless:
        by, checked, begun = _by(reply.model, words), summary(reply, words), _begun(reply)
        entries.append(_foot(message, reply.status, words, last=last, begun=begun, after=checked + by))
    return entries


def _begun(reply: Reply) -> bool:
    """Whether there is anything of an answer that could go on: what was looked up beforehand is none."""
    return any(
        bool(block.text.strip()) if isinstance(block, TextBlock) else isinstance(block, ItemBlock) or _is_done(block)
        for block in reply.blocks
    )


def _is_done(block: Block) -> bool:
    return isinstance(block, CallBlock) and block.state == "done" and block.name != _LOOKED_UP


def _left_out(block: Block) -> list[dict[str, Any]]:
    """The documents that a search could not look into."""
    result = block.result if isinstance(block, CallBlock) else None
    return list((result.extra or {}).get("left_out") or ()) if result is not None else []


def _block_entries(reply: Reply, words: Words, message_id: str) -> list[Entry]:
    cite = citing(reply.passages, message_id, words)
    entries: list[Entry] = []
    at = 0
    blocks = reply.blocks
    while at < len(blocks):
        block = blocks[at]
        if isinstance(block, CallBlock):
            calls = _together(blocks, at)
            entries += call_entries(calls, reply, words, message_id)
            missing = [one for call in calls for one in _left_out(call)]
            if missing and not any(map(_left_out, blocks[:at])):
                entries.append(said("assistant", left_out(missing, words)))
            at += len(calls)
            continue
        notes = (
            notes_of(reply, at, block.text, words, message_id, cite) if cite and isinstance(block, TextBlock) else ()
        )
        entries += _block_entry(block, words, cite, notes, over=reply.status != "running")
        at += 1
    return entries


def _block_entry(
    block: TextBlock | ReasoningBlock | ItemBlock,
    words: Words,
    cite: Cite | None,
    notes: Sequence[tuple[int, str]],
    *,
    over: bool,
) -> list[Entry]:
    match block:
        case TextBlock():
            if not block.text.strip():
                return []
            name = f'<p class="p-speaker">{escaped(block.name)}</p>\n\n' if block.name else ""
            return [said("assistant", name + markdown(block.text, words, cite, growing=not over, notes=notes))]
        case ReasoningBlock():
            return [_thought(block, words, over=over)]
        case ItemBlock():
            return [said("assistant", f'<div class="p-files">{item_html(block.item, {}, words)}</div>')]
        case _:
            assert_never(block)


def _thought(block: ReasoningBlock, words: Words, *, over: bool) -> Entry:
    thinking = block.seconds is None and not over
    if thinking:
        title = words("reply.thinking")
    elif block.seconds is None or block.seconds < _BRIEF:
        title = words("reply.thought_briefly")
    else:
        title = words("reply.thought", seconds=words.seconds(block.seconds, whole=True))
    text = f'<div class="p-thoughts"></div>\n\n{markdown(block.text, words, growing=not over)}'
    return bubble(f'<span class="p-think">{escaped(title)}</span>', text, "pending" if thinking else "done")


def _together(blocks: Sequence[Block], at: int) -> list[CallBlock]:
    """The calls from `at` on that were made at once; one that began after another ended was made later."""
    calls: list[CallBlock] = []
    for block in blocks[at:]:
        if not isinstance(block, CallBlock) or any(_ended_before(call, block) for call in calls):
            break
        calls.append(block)
    return calls


def _ended_before(earlier: CallBlock, later: CallBlock) -> bool:
    if earlier.started_at is None or earlier.seconds is None:
        # Without times (an old reply) each is taken for itself.
        return earlier.state in {"done", "failed"}
    end = earlier.started_at + earlier.seconds
    return later.started_at is None or later.started_at >= end


def _still(reply: Reply, words: Words) -> list[Entry]:
    """A ring while nothing grows: before the first word, and after a tool."""
    last = reply.blocks[-1] if reply.blocks else None
    growing = isinstance(last, TextBlock | ReasoningBlock) or (
        isinstance(last, CallBlock) and last.state in {"waiting", "running"}
    )
    if growing:
        return []
    return [
        said("assistant", f'<p class="p-wait"><span class="p-st p-run"></span>{escaped(words("reply.writing"))}</p>')
    ]


def _error(error: dict[str, object], words: Words) -> str:
    happened, remedy = words.error_parts(error)
    then = f'<p class="p-remedy">{escaped(remedy)}</p>' if remedy else ""
    if error.get("key") in _MENDED_IN_SETTINGS:
        settings = escaped(words("models.settings"))
        then += f'<p class="p-remedy"><a class="p-do" role="button" href="#do-models">{settings}</a></p>'
    return f'<div class="p-error"><p class="p-what">{escaped(happened)}</p>{then}</div>'


def _foot(
    message: StoredMessage, status: RunStatus, words: Words, *, last: bool, begun: bool, after: str = ""
) -> Entry:
    """How it ended, what can be done with it, and what is said of it."""
    note = words(f"reply.{status}") if status in {"stopped", "interrupted"} else ""
    cut = status in {"stopped", "interrupted", "error"}
    acts = [act for act, offered in (("continue", last and cut and begun), ("regenerate", last)) if offered]
    acts = [*acts, "copy"] if cut else ["copy", *acts]
    links = " ".join(_act(act, message.id, words, worded=cut) for act in acts)
    said_first = f'<span class="p-note">{escaped(note)}</span> ' if note else ""
    return said("assistant", f'<p class="p-acts">{said_first}{links}{after}</p>')


def _by(model: str, words: Words) -> str:
    return f' <span class="p-by">{escaped(words.model(model))}</span>' if model else ""


def _act(act: str, message_id: str, words: Words, *, worded: bool) -> str:
    form = f"p-do p-{act} p-word" if worded and act != "copy" else f"p-do p-{act}"
    label = escaped(words(f"reply.{act}"))
    return f'<a class="{form}" role="button" href="#do-{act}-{escaped(message_id)}" title="{label}">{label}</a>'
