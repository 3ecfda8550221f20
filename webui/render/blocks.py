"""The blocks of a reply as entries: who speaks, what is thought, said and called; of called agents within the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from core.runs.reply import CallBlock, ItemBlock, ReasoningBlock, TextBlock
from webui.render.calls import CallDrawing, gathered
from webui.render.claims import notes_of
from webui.render.entries import bubble, said, within
from webui.render.evidence import citing
from webui.render.faces import speaker
from webui.render.files import item_html
from webui.render.html import escaped
from webui.render.markdown import markdown
from webui.render.reading import left_out, read_parts

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from core.runs.reply import Block, Reply
    from webui.render.entries import Entry
    from webui.render.inline import Cite
    from webui.words import Words

_BRIEF = 0.5
_SEARCH = "ask_documents"


def block_entries(reply: Reply, words: Words, message_id: str, cast: Collection[str] = ()) -> list[Entry]:
    """The entries of all blocks of a reply.

    Args:
        reply: The whole reply.
        words: The reader's.
        message_id: The reply's.
        cast: The names of all who may speak in the conversation.
    """
    several = len({*cast, *reply.speakers}) > 1
    return _Drawing(reply, words, message_id, frozenset(cast), citing(reply.passages, message_id, words)).entries(
        reply, several=several
    )


def is_said(block: Block) -> bool:
    """Whether it is part of an answer."""
    return isinstance(block, ItemBlock) or (isinstance(block, TextBlock) and bool(block.text.strip()))


@dataclass(frozen=True, slots=True)
class _Drawing:
    """What the blocks of a reply are drawn with, those of agents within it too.

    Args:
        reply: The whole reply.
        words: The reader's.
        message_id: The reply's.
        cast: The names of all who may speak.
        cite: Makes the marks of its passages, where it has any.
    """

    reply: Reply
    words: Words
    message_id: str
    cast: frozenset[str]
    cite: Cite | None

    def entries(self, reply: Reply, parent: str = "", *, several: bool) -> list[Entry]:
        """The entries of the whole reply, or of an agent's within it.

        Args:
            reply: Which of the two.
            parent: The bubble of the call that the agent answers.
            several: Whether who speaks is told.
        """
        entries: list[Entry] = []
        blocks, at, spoke = reply.blocks, 0, ""
        while at < len(blocks):
            block = blocks[at]
            if several and block.speaker and block.speaker != spoke and _is_seen(block):
                spoke = block.speaker
                entries.append(_put(speaker(spoke), parent))
            if isinstance(block, CallBlock):
                at = self._calls(entries, reply, at, parent)
                continue
            entries += self._entry(reply, at, parent, named=not several and not parent)
            at += 1
        return entries

    def _calls(self, entries: list[Entry], reply: Reply, at: int, parent: str) -> int:
        """Add the calls that stand together from here; returns where the next block is."""
        drawing = CallDrawing(self.reply, self.words, self.message_id, self.cast, self._thought, self._inner)
        together, after = gathered(reply.blocks, at, drawing.is_agent)
        closed = reply.status != "running" or any(map(is_said, reply.blocks[after:]))
        entries += drawing.entries(together, parent, closed=closed)
        told = [_left_out(one) for one in together]
        missing = next((one for one in told if one), None)
        if missing and not any(map(_left_out, reply.blocks[:at])):
            entries.append(_put(left_out(missing, self.words), parent))
        parts = [part for one in together for part in _told(one, "read")]
        if parts:
            entries.append(_put(read_parts(parts, self.words), parent))
        return after

    def _inner(self, call: CallBlock, parent: str) -> list[Entry]:
        """What the agent says and does that was called."""
        return self.entries(call.inner, parent, several=len(call.inner.speakers) > 1) if call.inner is not None else []

    def _entry(self, reply: Reply, at: int, parent: str, *, named: bool) -> list[Entry]:
        block, over = reply.blocks[at], reply.status != "running"
        if isinstance(block, ReasoningBlock):
            return [self._thought(block, parent, over=over)]
        if isinstance(block, ItemBlock):
            return [_put(f'<div class="p-files">{item_html(block.item, {}, self.words)}</div>', parent)]
        if not isinstance(block, TextBlock) or not block.text.strip():
            return []
        if is_a_persons_turn(block.text):
            key = "reply.your_turn" if block.name else "reply.your_turn_unnamed"
            turn = self.words(key, name=block.name)
            return [_put(f'<p class="p-none">{escaped(turn)}</p>', parent)]
        name = f'<p class="p-speaker">{escaped(block.name)}</p>\n\n' if named and block.name else ""
        return [_put(name + self._text(reply, at, block.text, over=over), parent)]

    def _text(self, reply: Reply, at: int, text: str, *, over: bool) -> str:
        claimed = self.cite is not None and reply is self.reply  # nobody holds an inner agent's words against passages
        notes: Sequence[tuple[int, str]] = ()
        if claimed and self.cite is not None:
            notes = notes_of(reply, at, text, self.words, self.message_id, self.cite)
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


def _put(markup: str, parent: str) -> Entry:
    """In the reply itself, or inside a bubble."""
    return within(markup, parent) if parent else said("assistant", markup)


def _is_seen(block: Block) -> bool:
    """Whether anything of it is shown that somebody must be named for."""
    return not isinstance(block, TextBlock) or (bool(block.text.strip()) and not is_a_persons_turn(block.text))


def _left_out(block: Block) -> list[dict[str, Any]]:
    """The documents that a search could not look into."""
    return _told(block, "left_out")


def _told(block: Block, what: str) -> list[dict[str, Any]]:
    """What a search says besides its passages."""
    result = block.result if isinstance(block, CallBlock) and block.name == _SEARCH else None
    found: object = (result.extra or {}).get(what) if result is not None else None
    return cast("list[dict[str, Any]]", found) if isinstance(found, list) else []


def is_a_persons_turn(text: str) -> bool:
    """Whether a group of agents waits for a person, who answers by asking next."""
    if not text.startswith("<!--"):
        return False
    from core.agents.user_agent import PENDING_USER_INPUT  # brings the models with it, which a page need not wait for

    return text.strip() == PENDING_USER_INPUT
