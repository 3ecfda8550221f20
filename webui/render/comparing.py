"""Two replies to one question, side by side: the head of each column, and the choice below it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webui.render.entries import message_entry
from webui.render.markup import escaped
from webui.render.reply import speed_said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.runs.reply import Reply
    from core.storage.base import StoredMessage
    from webui.render.entries import Entry
    from webui.words import Words

_SHAPES = {"running": "p-run", "complete": "p-ok", "error": "p-bad"}


@dataclass(frozen=True, slots=True)
class Compared:
    """A second reply, to be shown beside the first.

    Args:
        question: What both answer.
        message: Its own place.
        reply: What there is of it.
    """

    question: str
    message: StoredMessage
    reply: Reply

    def is_beside(self, message: StoredMessage) -> bool:
        """Whether a turn is the reply that it stands beside."""
        return message.role == "assistant" and message.parent_id == self.question and message.id != self.message.id


def between(words: Words) -> Entry:
    """What parts the two columns: replies of one turn would be one message else. It is not seen."""
    return message_entry("user", f'<span class="p-versus p-sr">{escaped(words("compare.beside"))}</span>')


def column(
    message: StoredMessage, reply: Reply | None, entries: Sequence[Entry], words: Words, side: int
) -> list[Entry]:
    """One column: who writes, the reply, and how to go on with it.

    Args:
        side: 1 for the left one, 2 for the right one.
    """
    return [_head(reply, words, side), *entries, *_foot(message, reply, words)]


def _head(reply: Reply | None, words: Words, side: int) -> Entry:
    status = reply.status if reply is not None else "complete"
    name = escaped(words.model(reply.model) if reply is not None and reply.model else words("compare.unnamed"))
    told = escaped(_account(reply, words)) if reply is not None else ""
    shape = f'<span class="p-st {_SHAPES.get(status, "p-off")}"></span>'
    # Where there is no room for two columns, one of them is shown.
    show = f'<a class="p-do p-show" role="button" href="#do-column-{side}">{escaped(words("compare.show"))}</a>'
    markup = f'{shape}<span class="p-name">{name}</span><span class="p-told">{told}</span>{show}'
    return message_entry("assistant", f'<p class="p-column p-column-{side}">{markup}</p>')


def _account(reply: Reply, words: Words) -> str:
    """How long its model worked, and what that took, once it is over; how fast it writes until then."""
    if reply.status == "running":
        return speed_said(reply, words) if reply.speed else ""
    calls = [call for call in reply.model_calls if call.purpose in {"answer", "step"}]
    if not calls:
        return ""
    taken = words.seconds(sum(call.seconds for call in calls))
    tokens = sum(call.usage.completion_tokens for call in calls if call.usage is not None)
    return words("compare.account", seconds=taken, n=f"{tokens:,}") if tokens else taken


def _foot(message: StoredMessage, reply: Reply | None, words: Words) -> list[Entry]:
    if reply is not None and reply.status == "running":
        return []
    label, to = escaped(words("compare.prefer")), f"#do-prefer-{escaped(message.id)}"
    link = f'<a class="p-do p-prefer" role="button" href="{to}">{label}</a>'
    return [message_entry("assistant", f'<p class="p-goes-on">{link}</p>')]
