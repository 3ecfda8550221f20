"""The rows above the composer: messages that wait for the end of the reply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webui.render.markup import escaped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.workspace.queue import Waiting
    from webui.words import Words

_SHOWN = 300  # letters of a message: the row cuts what is wider than it


def queue_html(waiting: Sequence[Waiting], words: Words, *, coming: bool) -> str:
    """Markup for `#queue`; nothing where nothing waits.

    Args:
        waiting: The next one first.
        coming: Whether they are sent by themselves: a reply is being written, or one of them is on its way.
    """
    if not waiting:
        return ""
    several = len(waiting) > 1
    rows = "".join(_row(one, number, words, coming=coming, moves=several) for number, one in enumerate(waiting, 1))
    return (
        f'<section class="p-queue" role="group" aria-label="{escaped(words("queue.label"))}"><ol>{rows}</ol></section>'
    )


def _row(one: Waiting, number: int, words: Words, *, coming: bool, moves: bool) -> str:
    message = one.message
    said = escaped(message.text.strip()[:_SHOWN])
    files = words("attach.comma").join(file.name for file in one.files)
    place = words("queue.next") if number == 1 else str(number)
    when = ""
    if number == 1:
        said_when = escaped(words("queue.when" if coming else "queue.waits"))
        when = f'<span class="p-when{"" if coming else " p-beside-word"}">{said_when}</span>'
        when += "" if coming else _button("sendqueued", message.id, words("queue.send"), worded=True)
    return (
        f'<li class="p-next" data-row="{escaped(message.id)}">'
        + (_button("movequeued", message.id, words("queue.move", place=place)) if moves else "")
        + f'<span class="p-place">{escaped(place)}</span>'
        f'<span class="p-said" dir="auto">{said}</span>'
        + (f'<span class="p-with">{escaped(files)}</span>' if files else "")
        + when
        + _button("requeue", message.id, words("queue.change"))
        + _button("unqueue", message.id, words("queue.remove"))
        + "</li>"
    )


def _button(act: str, message_id: str, label: str, *, worded: bool = False) -> str:
    shape, text, name = ("p-word", escaped(label), "") if worded else ("p-icon", "", f' aria-label="{escaped(label)}"')
    title = "" if worded else f' title="{escaped(label)}"'
    return (
        f'<button type="button" class="{shape} p-{act}" data-do="{act}" data-id="{escaped(message_id)}"{name}{title}>'
        f"{text}</button>"
    )
