"""A reply: what was thought, which tools were called, the text, and how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.agents.written_so_far import how_far
from core.runs.reply import CallBlock, ReasoningBlock, TextBlock
from webui.render.blocks import block_entries, is_said
from webui.render.claims import summary
from webui.render.entries import bubble, said
from webui.render.html import escaped
from webui.render.markdown import markdown
from webui.render.reading import waiting_line

if TYPE_CHECKING:
    from collections.abc import Collection

    from core.runs.reply import Block, Reply
    from core.storage.base import RunStatus, StoredMessage
    from webui.render.entries import Entry
    from webui.render.reading import Waiting
    from webui.words import Words

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


def reply_entries(  # noqa: PLR0913 - each is a part of the page, by name
    message: StoredMessage,
    reply: Reply | None,
    words: Words,
    *,
    last: bool,
    waiting: Waiting | None = None,
    versions: str = "",
    cast: Collection[str] = (),
) -> list[Entry]:
    """The entries of a reply.

    Args:
        message: The turn it is stored as.
        reply: What is known of it; without one the stored text is shown.
        words: The reader's.
        last: Whether it is the last turn: only that one can be continued or written anew.
        waiting: The documents that it waits for, if any.
        versions: Markup of the way to its other versions.
        cast: The names of all who may speak in the conversation.
    """
    if reply is None:
        text = "\n\n".join(part.get_text_content() for part in message.parts if part.role == "assistant")
        foot = _foot(message, message.status, words, last=last, begun=bool(text.strip()), versions=versions)
        return [said("assistant", markdown(text, words)), foot]
    entries = block_entries(reply, words, message.id, cast)
    before = [_summary(reply.summary, words)] if reply.summary else []
    if reply.status == "running":
        if waiting is not None and not entries and not reply.queued:
            return [said("assistant", waiting_line(waiting, message.id, words))]
        return [*before, *entries, *_still(reply, words)]
    if reply.status == "error" and reply.error is not None:
        entries.append(said("assistant", _error(reply.error, words)))
    elif reply.status == "paused":
        entries.append(said("assistant", _paused(message.id, reply.error or {}, words, last=last)))
    elif reply.status == "complete" and not entries:
        entries.append(said("assistant", f'<p class="p-none">{escaped(words("reply.empty"))}</p>'))
    hopeless = reply.error is not None and reply.error.get("key") in _FOR_GOOD
    if not hopeless:
        by, checked, begun = _by(reply.model, words), summary(reply, words), _begun(reply)
        foot = _foot(message, reply.status, words, last=last, begun=begun, versions=versions, after=checked + by)
        entries.append(foot)
    elif versions:
        entries.append(said("assistant", f'<p class="p-acts">{versions}</p>'))
    return [*before, *entries]


def _summary(text: str, words: Words) -> Entry:
    """What the model was given in place of the oldest turns: a quiet line that opens."""
    what = f'<p class="p-none">{escaped(words("reply.summarised_what"))}</p>'
    title = f'<span class="p-think">{escaped(words("reply.summarised"))}</span>'
    return bubble(title, f'<div class="p-thoughts"></div>\n\n{what}\n\n{markdown(text, words)}', "done")


def _begun(reply: Reply) -> bool:
    """Whether there is anything of an answer that could go on: what was looked up beforehand is none."""
    return any(is_said(block) or _is_done(block) for block in reply.blocks)


def _is_done(block: Block) -> bool:
    return isinstance(block, CallBlock) and block.state == "done" and block.name != _LOOKED_UP


def _still(reply: Reply, words: Words) -> list[Entry]:
    """A ring while nothing grows, before the first word and after a tool, or that says how far a long text is."""
    if reply.queued:
        return [_ring(words("reply.queued"))]
    last = reply.blocks[-1] if reply.blocks else None
    growing = isinstance(last, TextBlock | ReasoningBlock) or (
        isinstance(last, CallBlock) and (last.state in {"waiting", "running"} or reply.asking)
    )
    if not growing:
        return [_ring(words("reply.writing"))]
    number, chapters = _chapter(reply)
    return [_ring(words("reply.chapter", n=number, total=chapters))] if number else []


def _ring(text: str) -> Entry:
    return said("assistant", f'<p class="p-wait"><span class="p-st p-run"></span>{escaped(text)}</p>')


def _chapter(reply: Reply) -> tuple[int, int]:
    """Which chapter is being written, and how many are planned: an article takes minutes. 0 of anything else."""
    text, *before = reversed(reply.blocks)
    plan = next((block for block in before if isinstance(block, ReasoningBlock)), None)
    return how_far(plan.text, text.text) if plan and isinstance(text, TextBlock) else (0, 0)


def _error(error: dict[str, object], words: Words) -> str:
    happened, remedy = words.error_parts(error)
    then = f'<p class="p-remedy">{escaped(remedy)}</p>' if remedy else ""
    if error.get("key") in _MENDED_IN_SETTINGS:
        settings = escaped(words("models.settings"))
        then += f'<p class="p-remedy"><a class="p-do" role="button" href="#do-models">{settings}</a></p>'
    return f'<div class="p-error"><p class="p-what">{escaped(happened)}</p>{then}</div>'


def _paused(message_id: str, error: dict[str, object], words: Words, *, last: bool) -> str:
    """What was reached, and the way on."""
    known = error.get("key") in {"call_limit", "time_limit", "cost_limit"}
    reached = escaped(words.error_parts(error)[0] if known else words("paused.other"))
    kept = escaped(words("paused.kept"))
    label = escaped(words("paused.go_on"))
    on = f'<a class="p-do p-go-on" role="button" href="#do-continue-{escaped(message_id)}">{label}</a>' if last else ""
    return f'<div class="p-paused"><p class="p-what">{reached}</p><p class="p-remedy">{kept}</p>{on}</div>'


def _foot(  # noqa: PLR0913 - each is a part of the line, by name
    message: StoredMessage,
    status: RunStatus,
    words: Words,
    *,
    last: bool,
    begun: bool,
    versions: str = "",
    after: str = "",
) -> Entry:
    """How it ended, what can be done with it, and what is said of it."""
    note = words(f"reply.{status}") if status in {"stopped", "interrupted"} else ""
    cut = status in {"stopped", "interrupted", "error"}
    acts = [act for act, offered in (("continue", last and cut and begun), ("regenerate", last)) if offered]
    acts = [*acts, "copy"] if cut else ["copy", *acts]
    links = " ".join(_act(act, message.id, words, worded=cut) for act in acts)
    said_first = f'<span class="p-note">{escaped(note)}</span> ' if note else ""
    return said("assistant", f'<p class="p-acts">{said_first}{versions}{links}{after}</p>')


def _by(model: str, words: Words) -> str:
    return f' <span class="p-by">{escaped(words.model(model))}</span>' if model else ""


def _act(act: str, message_id: str, words: Words, *, worded: bool) -> str:
    label = escaped(words(f"reply.{act}"))
    form, text = f"p-do p-{act}", f'<span class="p-sr">{label}</span>'
    if worded and act != "copy":
        form, text = f"{form} p-word", label
    return f'<a class="{form}" role="button" href="#do-{act}-{escaped(message_id)}" title="{label}">{text}</a>'
