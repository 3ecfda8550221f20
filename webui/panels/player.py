"""The player of a recording beside its transcript: it stands at the second at which what is cited is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.rag.parsers.transcript import told_time
from core.storage.base import FILE_ADDRESS
from webui.render.markup import escaped

if TYPE_CHECKING:
    from webui.words import Words


def player_html(file: str, seconds: int, document: str, words: Words, *, moving: bool) -> str:
    """A player that stands at a second and plays once it is told to.

    Args:
        file: The id of the stored recording.
        moving: Whether it is a video.
    """
    tag, at = ("video" if moving else "audio"), told_time(seconds)
    label = escaped(words("evidence.play", document=document, at=at))
    return (
        f'<figure class="p-player"><{tag} controls preload="metadata" '
        f'src=".{FILE_ADDRESS}{escaped(file)}#t={seconds}" aria-label="{label}"></{tag}>'
        f"<figcaption>{label}</figcaption></figure>"
    )
