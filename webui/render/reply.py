"""A reply as entries: what was thought, said and called, by whom, inside called agents too, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from core.agents.compat.outline import how_far
from core.runs.reply import CallBlock, ItemBlock, ReasoningBlock, TextBlock
from webui.render.calls import CallDrawing, adjacent_calls
from webui.render.citations import beyond_html, cite_marks, claim_notes, claims_summary, computed_html
from webui.render.coverage import coverage_line, coverage_note
from webui.render.documents import item_html, missing_notes, named_note, partly_read_notes, waiting_line
from webui.render.entries import bubble, inside_bubble, message_entry, speaker, time_html
from webui.render.judging import judging_html
from webui.render.markdown import markdown
from webui.render.markup import escaped
from webui.render.refused import refusal_text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from core.readiness import Part
    from core.runs.log import ModelAsked
    from core.runs.reply import Block, Reply
    from core.storage.base import RunStatus, StoredMessage
    from webui.render.documents import Waiting
    from webui.render.entries import Entry
    from webui.render.judging import Judging
    from webui.render.markdown import Cite
    from webui.words import Words

_SEARCH = "ask_documents"
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

# Errors that the reader can correct in the dialog of model settings.
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
    judging: Judging | None = None,
    model: Part | None = None,
) -> list[Entry]:
    """The entries of a reply.

    Args:
        message: The turn it is stored as.
        reply: The reply, where there is one; else the stored text is shown.
        last: Whether it is the last turn: only that one can be continued.
        waiting: The documents that it waits for, if any.
        versions: Markup of the links to its other versions.
        cast: The names of all who may speak in the conversation.
        judging: How far its judgement by a model has come; `None` where no model judges.
        model: How far the model is that writes it, where that is known.
    """
    if reply is None:
        text = "\n\n".join(part.get_text_content() for part in message.parts if part.role == "assistant")
        foot = _foot(message, message.status, words, last=last, begun=bool(text.strip()), versions=versions)
        return [message_entry("assistant", markdown(text, words)), foot]
    entries = _block_entries(reply, words, message.id, cast)
    before = [_summary(reply.summary, words)] if reply.summary else []
    if reply.status == "running":
        if waiting is not None and not entries and not waits_for(reply):
            return [message_entry("assistant", waiting_line(waiting, message.id, words))]
        begun = entries or reply.under_way or waits_for(reply)
        if model is not None and model.state == "loading" and not begun:
            return [*before, _ring(_model_line(model, words))]
        return [*before, *entries, *_waiting_entries(reply, words, message.created_at)]
    if reply.status in {"error", "interrupted"} and reply.error is not None:
        entries.append(message_entry("assistant", _error(reply.error, words)))
    elif reply.status == "paused":
        entries.append(message_entry("assistant", _paused(message.id, reply.error or {}, words, last=last)))
    elif reply.status == "complete" and not entries:
        entries.append(message_entry("assistant", f'<p class="p-none">{escaped(words("reply.empty"))}</p>'))
    hopeless = reply.error is not None and reply.error.get("key") in _FOR_GOOD
    if not hopeless:
        by, checked, begun = (
            _by(reply, message.created_at, words),
            claims_summary(reply, words),
            _has_begun(reply),
        )
        foot = _foot(
            message,
            reply.status,
            words,
            last=last,
            begun=begun,
            cut_short=reply.cut_short,
            versions=versions,
            rated=_rated(message, reply, words),
            after=coverage_line(reply, words) + checked + by,
            below=coverage_note(reply, words)
            + computed_html(reply, words, message.id)
            + beyond_html(reply, words, message.id)
            + judging_html(reply, words, message.id, judging),
        )
        entries.append(foot)
    elif versions:
        entries.append(message_entry("assistant", f'<p class="p-acts">{versions}</p>'))
    return [*before, *entries]


def _summary(text: str, words: Words) -> Entry:
    """The summary that the model was given in place of the oldest turns, as a folded line."""
    what = f'<p class="p-none">{escaped(words("reply.summarised_what"))}</p>'
    title = f'<span class="p-think">{escaped(words("reply.summarised"))}</span>'
    return bubble(title, f'<div class="p-thoughts"></div>\n\n{what}\n\n{markdown(text, words)}', "done")


def _has_begun(reply: Reply) -> bool:
    """Whether there is an answer to continue; the search before the first model call is none."""
    return any(_is_answer(block) or _is_done(block) for block in reply.blocks)


def _is_done(block: Block) -> bool:
    return isinstance(block, CallBlock) and block.state == "done" and block.name != _SEARCH


def _waiting_entries(reply: Reply, words: Words, began: float) -> list[Entry]:
    """What goes on: how much is read, and since when (before the first word, after a tool); how fast a text grows.

    Args:
        began: When the reply began, in Unix seconds.
    """
    if waits := waits_for(reply):
        return [_ring(words(waits))]
    if reply.outdated:
        return [_reading(reply, words, began)]
    last = reply.blocks[-1] if reply.blocks else None
    growing = isinstance(last, TextBlock | ReasoningBlock) or (
        isinstance(last, CallBlock) and (last.state in {"waiting", "running"} or reply.asking)
    )
    if not growing:
        return [_reading(reply, words, began)]
    if reply.is_said and isinstance(last, TextBlock):
        return _after_the_last_word(reply, words, began)
    number, chapters = _chapter(reply)
    if number:
        return [_ring(words("reply.chapter", n=number, total=chapters))]
    return [_ring(speed_said(reply, words))] if isinstance(last, TextBlock) and reply.speed else []


def speed_said(reply: Reply, words: Words) -> str:
    """How fast the reply is being written."""
    return words("reply.speed_one") if reply.speed == 1 else words("reply.speed", n=reply.speed)


def _model_line(model: Part, words: Words) -> str:
    """What a reply waits for whose model is being fetched or loaded."""
    if not model.total:
        return words("reply.model")
    return words("reply.model_at", done=model.done // _MB, total=model.total // _MB)


_MB = 1_000_000
_UNWRITTEN = {
    ("nobody", False): "reply.nobody",
    ("nobody", True): "reply.nobody_left",
    ("busy", False): "reply.all_busy",
    ("busy", True): "reply.all_busy_left",
}
_SPEAKING = frozenset({"answer", "agent"})


def _after_the_last_word(reply: Reply, words: Words, began: float) -> list[Entry]:
    """What goes on when a text is whole: somebody else is asked to speak, or its sentences are checked."""
    if any(call.purpose in _SPEAKING for _, call in reply.under_way.values()):
        return [_reading(reply, words, began)]
    has_passages = any(passage.get("text") for passage in reply.passages)
    return [_ring(words("reply.checking"))] if has_passages and not reply.claims else []


def waits_for(reply: Reply) -> str:
    """The key of the sentence that says what a reply waits for that nobody writes; "" where it is written."""
    if reply.unwritten:
        return _UNWRITTEN[reply.unwritten, _has_begun(reply)]
    return "reply.queued" if reply.queued else ""


def _reading(reply: Reply, words: Words, began: float) -> Entry:
    """What the model is doing before its first word; the page adds the seconds, once a second."""
    at, call = next(reversed(reply.under_way.values()), (0.0, None))
    if call is None:
        return _ring(words("reply.writing"))
    since = datetime.fromtimestamp(began + at, UTC).isoformat(timespec="seconds")
    return _ring(_read_so_far(call, words), f'<span class="p-since" title="{since}"></span>')


def _read_so_far(call: ModelAsked, words: Words) -> str:
    """How much the model has to read, how much of it is read, and how fast, as far as each is known."""
    done, total = f"{call.done:,}", f"{call.tokens:,}"
    if call.speed:
        return words(
            "reply.reading_at_one" if call.speed == 1 else "reply.reading_at", done=done, n=total, speed=call.speed
        )
    if call.done:
        return words("reply.reading_part", done=done, n=total)
    return words("reply.reading", n=total) if call.tokens else words("reply.writing")


def _ring(text: str, after: str = "") -> Entry:
    line = f'<p class="p-wait"><span class="p-st p-run"></span>{escaped(text)}{after}</p>'
    return message_entry("assistant", line)


def _chapter(reply: Reply) -> tuple[int, int]:
    """The chapter of an article that is being written, and how many are planned; (0, 0) for anything else."""
    text, *before = reversed(reply.blocks)
    plan = next((block for block in before if isinstance(block, ReasoningBlock)), None)
    return how_far(plan.text, text.text) if plan and isinstance(text, TextBlock) else (0, 0)


def _error(error: dict[str, object], words: Words) -> str:
    happened, remedy = words.error_parts(error)
    then = f'<p class="p-remedy">{escaped(remedy)}</p>' if remedy else ""
    beside = cast("dict[str, Any]", error.get("details") or {}).get("beside")
    if beside:  # several files, each with its reason
        first, *others = refusal_text([error, *beside], words).split("\n")
        happened, then = first, "".join(f'<p class="p-what">{escaped(one)}</p>' for one in others)
    if error.get("key") in _MENDED_IN_SETTINGS:
        settings = escaped(words("models.settings"))
        then += f'<p class="p-remedy"><a class="p-do" role="button" href="#do-models">{settings}</a></p>'
    return f'<div class="p-error"><p class="p-what">{escaped(happened)}</p>{then}</div>'


def _paused(message_id: str, error: dict[str, object], words: Words, *, last: bool) -> str:
    """The limit that was reached, and the link that goes on."""
    known = error.get("key") in {"call_limit", "time_limit", "length_limit", "cost_limit"}
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
    cut_short: bool = False,
    versions: str = "",
    rated: str = "",
    after: str = "",
    below: str = "",
) -> Entry:
    """The last line: how the reply ended, its actions, and the notes after them."""
    how = status if status in {"stopped", "interrupted"} else "longest" if cut_short and status == "complete" else ""
    before = "_before" if how == "interrupted" and not begun else ""
    note = words(f"reply.{how}{before}") if how else ""
    cut = bool(how) or status == "error"
    acts = ["continue", "regenerate"] if last and cut and begun else ["regenerate"]
    acts = [*acts, "copy"] if cut else ["copy", *acts]
    acts += ["rewrite", "fork", "speak"] if begun else ["rewrite", "fork"]
    acts += ["inspect"] if message.run_id else []
    made = [_act(act, message.id, words, worded=cut) for act in acts]
    if cut:  # beside words the icons stay together: none stands alone on the next line
        icons = acts.index("copy")
        made = [*made[:icons], f'<span class="p-icons">{" ".join(made[icons:])}</span>']
    links = " ".join(made)
    said_first = f'<span class="p-note">{escaped(note)}</span> ' if note else ""
    return message_entry("assistant", f'<p class="p-acts">{said_first}{versions}{links}{rated}{after}</p>{below}')


def _rated(message: StoredMessage, reply: Reply, words: Words) -> str:
    """What the reader thinks of a whole reply: two links, the chosen one filled."""
    if message.run_id is None or reply.status != "complete":
        return ""
    made: list[str] = []
    for mark in ("up", "down"):
        on = reply.rating == mark
        said = words(f"reply.{mark}_on" if on else f"reply.{mark}", reason=reply.rated_for)
        if on and reply.rated_for:
            said = words("reply.down_for", reason=reply.rated_for)
        label, form = escaped(said), f"p-do p-{mark}{' p-on' if on else ''}"
        made.append(
            f' <a class="{form}" role="button" href="#do-{mark}-{escaped(message.id)}" title="{label}">'
            f'<span class="p-sr">{label}</span></a>'
        )
    return "".join(made)


def _by(reply: Reply, at: float, words: Words) -> str:
    """When it was written, which the page tells in the reader's own time, and by whom."""
    model = _models(reply, words)
    said = words("reply.edited_from", model=model) if model and reply.edited else model
    if reply.edited and not model:
        said = words("reply.edited")
    # A program's own agent may have no model to name after the time.
    return f' <span class="p-by">{time_html(at, then=bool(said))}{escaped(said)}</span>'


def _models(reply: Reply, words: Words) -> str:
    """Which model wrote it; where several agents spoke, whose models differ, which one each has."""
    if len(set(reply.writers.values())) < 2:
        return words.model(next(iter(reply.writers.values()), reply.model))
    each = ((name, words.model(label)) for name, label in reply.writers.items())
    return "; ".join(words("reply.of_model", name=name, model=label) if name else label for name, label in each)


def _act(act: str, message_id: str, words: Words, *, worded: bool) -> str:
    label = escaped(words(f"reply.{act}"))
    form, text = f"p-do p-{act}", f'<span class="p-sr">{label}</span>'
    if worded and act in {"continue", "regenerate"}:
        form, text = f"{form} p-word", label
    return f'<a class="{form}" role="button" href="#do-{act}-{escaped(message_id)}" title="{label}">{text}</a>'


_BRIEF = 0.5


def _block_entries(reply: Reply, words: Words, message_id: str, cast: Collection[str] = ()) -> list[Entry]:
    """The entries of all blocks of a reply.

    Args:
        cast: The names of all who may speak in the conversation.
    """
    several = len({*cast, *reply.speakers}) > 1
    return _Drawing(reply, words, message_id, frozenset(cast), cite_marks(reply.passages, message_id, words)).entries(
        reply, several=several
    )


def _is_answer(block: Block) -> bool:
    """Whether a block is part of the answer itself."""
    return isinstance(block, ItemBlock) or (isinstance(block, TextBlock) and bool(block.text.strip()))


@dataclass(frozen=True, slots=True)
class _Drawing:
    """Renders the blocks of a reply, those of nested agents too.

    Args:
        cast: The names of all who may speak.
        cite: Makes the marks of its passages, where it has any.
    """

    reply: Reply
    words: Words
    message_id: str
    cast: frozenset[str]
    cite: Cite | None

    def entries(self, reply: Reply, parent: str = "", *, several: bool) -> list[Entry]:
        """The entries of the whole reply, or of a nested agent's.

        Args:
            reply: The whole reply, or the nested agent's.
            parent: The bubble of the call that the agent answers.
            several: Whether speakers are named.
        """
        entries: list[Entry] = []
        blocks, at, spoke = reply.blocks, 0, ""
        while at < len(blocks):
            block = blocks[at]
            if several and block.speaker and block.speaker != spoke and _is_seen(block):
                spoke = block.speaker
                entries.append(_placed(speaker(spoke), parent))
            if isinstance(block, CallBlock):
                at = self._calls(entries, reply, at, parent)
                continue
            entries += self._entry(reply, at, parent, named=not several and not parent)
            at += 1
        return entries

    def _calls(self, entries: list[Entry], reply: Reply, at: int, parent: str) -> int:
        """Add the adjacent calls from here; returns the index of the next block."""
        drawing = CallDrawing(self.reply, self.words, self.message_id, self.cast, self._thought, self._inner)
        together, after = adjacent_calls(reply.blocks, at, drawing.is_agent)
        closed = reply.status != "running" or any(map(_is_answer, reply.blocks[after:]))
        entries += drawing.entries(together, parent, closed=closed)
        told = [_left_out(one) for one in together]
        missing = next((one for one in told if one), None)
        if missing and not any(map(_left_out, reply.blocks[:at])):
            entries.append(_placed(missing_notes(missing, self.words), parent))
        parts = [part for one in together for part in _search_extra(one, "read")]
        if parts:
            entries.append(_placed(partly_read_notes(parts, self.words), parent))
        named = next((names for one in together if (names := _search_extra(one, "only"))), None)
        if named and not any(_search_extra(one, "only") for one in reply.blocks[:at]):
            entries.append(_placed(named_note(named, self.words), parent))
        return after

    def _inner(self, call: CallBlock, parent: str) -> list[Entry]:
        """The entries of the agent that was called."""
        return self.entries(call.inner, parent, several=len(call.inner.speakers) > 1) if call.inner is not None else []

    def _entry(self, reply: Reply, at: int, parent: str, *, named: bool) -> list[Entry]:
        block, over = reply.blocks[at], reply.status != "running"
        if isinstance(block, ReasoningBlock):
            return [self._thought(block, parent, over=over)]
        if isinstance(block, ItemBlock):
            return [_placed(f'<div class="p-files">{item_html(block.item, {}, self.words)}</div>', parent)]
        if not isinstance(block, TextBlock) or not block.text.strip():
            return []
        if _is_users_turn(block.text):
            key = "reply.your_turn" if block.name else "reply.your_turn_unnamed"
            turn = self.words(key, name=block.name)
            return [_placed(f'<p class="p-none">{escaped(turn)}</p>', parent)]
        name = f'<p class="p-speaker">{escaped(block.name)}</p>\n\n' if named and block.name else ""
        return [_placed(name + self._text(reply, at, block.text, over=over), parent)]

    def _text(self, reply: Reply, at: int, text: str, *, over: bool) -> str:
        claimed = self.cite is not None and reply is self.reply  # claims of nested agents are not checked
        notes: Sequence[tuple[int, str]] = ()
        if claimed and self.cite is not None:
            notes = claim_notes(reply, at, text, self.words, self.message_id, self.cite)
        return markdown(text, self.words, self.cite, growing=not over, notes=notes)

    def _thought(self, block: ReasoningBlock, parent: str = "", *, over: bool | None = None) -> Entry:
        words = self.words
        over = self.reply.status != "running" if over is None else over
        thinking = block.seconds is None and not over
        if thinking:
            title = words("reply.thinking")
        elif block.seconds is None or block.seconds < _BRIEF:
            title = words("reply.thought_briefly")
        else:
            title = words("reply.thought", seconds=words.seconds(block.seconds, whole=True))
        text = f'<div class="p-thoughts"></div>\n\n{markdown(block.text, words, growing=not over)}'
        head = f'<span class="p-think">{escaped(title)}</span>'
        return bubble(head, text, "pending" if thinking else "done", parent_id=parent)


def _placed(markup: str, parent: str) -> Entry:
    """An entry of the reply itself, or inside a bubble."""
    return inside_bubble(markup, parent) if parent else message_entry("assistant", markup)


def _is_seen(block: Block) -> bool:
    """Whether anything of a block is shown, so that its speaker is named."""
    return not isinstance(block, TextBlock) or (bool(block.text.strip()) and not _is_users_turn(block.text))


def _left_out(block: Block) -> list[dict[str, Any]]:
    """The documents that a search could not read."""
    return _search_extra(block, "left_out")


def _search_extra(block: Block, what: str) -> list[Any]:
    """A list in the extra data of a search."""
    result = block.result if isinstance(block, CallBlock) and block.name == _SEARCH else None
    found: object = (result.extra or {}).get(what) if result is not None else None
    return cast("list[Any]", found) if isinstance(found, list) else []


def _is_users_turn(text: str) -> bool:
    """Whether a group of agents waits for the user, who answers with the next question."""
    if not text.startswith("<!--"):
        return False
    from core.agents.hub import PENDING_USER_INPUT  # imports the models, which a page need not wait for

    return text.strip() == PENDING_USER_INPUT
