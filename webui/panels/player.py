"""The player of a recording beside its transcript: it stands at the second at which what is cited is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.rag.attribution import words_of
from core.rag.document import seconds_in
from core.rag.parsers.transcript import told_time
from core.storage.base import FILE_ADDRESS
from webui.render.markup import escaped

if TYPE_CHECKING:
    from webui.words import Words

_AS_MUCH = 0.75  # of the words that the best line shares: what is said over several lines is heard from the first on


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


def second_of(said: str, transcript: str) -> int:
    """The second at which a sentence is said in a passage of a transcript; of its first line where none is like it."""
    timed = [(times[0], line) for line in transcript.split("\n") if (times := seconds_in(line)) is not None]
    if not timed:
        return 0
    wanted = set(words_of(said))
    shared = [len(wanted & set(words_of(line.partition(" ")[2]))) for _, line in timed]
    best = max(shared)
    return next(second for (second, _), many in zip(timed, shared, strict=True) if many >= best * _AS_MUCH)
