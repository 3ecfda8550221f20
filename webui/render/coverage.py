"""The line under a reply that says how much of the documents it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from core.rag.coverage import coverage_in, is_begun, untaken_of
from core.runs.reply import CallBlock
from webui.render.markup import escaped

if TYPE_CHECKING:
    from core.rag.coverage import Coverage
    from core.runs.reply import Reply
    from webui.words import Words

_DASHES: Final = 6


def coverage_line(reply: Reply, words: Words) -> str:
    """How much was read, for the last line of a reply; "" where documents were only searched for a passage."""
    coverage = _coverage_of(reply)
    if coverage is None or not coverage.counts():
        return ""
    counts = [
        words(f"coverage.{of}{'' if total > 1 else '_one'}", read=read, total=total)
        for of, (read, total, _) in coverage.counts().items()
    ]
    empty = sum(one.empty for one in coverage.documents)
    said = words("coverage.part" if coverage.part else "coverage.read", counts=words("coverage.and").join(counts))
    if empty and not coverage.part:
        said += words("coverage.empty" if empty > 1 else "coverage.empty_one", n=empty)
    if coverage.shortened:
        said += words("coverage.shortened")
    filled = _filled(coverage)
    bar = "".join(f'<i class="p-dash{" p-full" if at < filled else ""}"></i>' for at in range(_DASHES))
    doubt = "" if coverage.complete and not coverage.shortened else " p-doubt"
    return f' <span class="p-checked p-covered{doubt}"><span class="p-dashes">{bar}</span>{escaped(said)}</span>'


def coverage_note(reply: Reply, words: Words) -> str:
    """What was not read and why, and why notes were cut, below the last line; "" where neither is so."""
    coverage = _coverage_of(reply)
    if coverage is None:
        return ""
    said = [_left_out(coverage, words), words(f"coverage.cut_{coverage.shortened}") if coverage.shortened else ""]
    return "".join(f'<p class="p-note p-uncovered">{escaped(one)}</p>' for one in said if one)


def _left_out(coverage: Coverage, words: Words) -> str:
    if coverage.complete:
        return ""
    if coverage.why == "searched":
        return words("coverage.why_searched")
    places = [
        words(f"coverage.missed_{one.of}{'' if last > first else '_one'}", name=one.name, first=first, last=last)
        for one in coverage.documents
        for first, last in one.missed
    ]
    for one in coverage.unread:
        name = str(one.get("name", ""))
        if n := untaken_of(one):
            places.append(words("coverage.untaken" if n > 1 else "coverage.untaken_one", n=n, names=name))
        else:
            places.append(words("coverage.rest_of", name=name) if is_begun(one) else name)
    if not places:
        return ""
    return words(f"coverage.why_{coverage.why or 'unread'}", places=words("coverage.and").join(places))


def _coverage_of(reply: Reply) -> Coverage | None:
    return coverage_in(one.result for one in reply.blocks if isinstance(one, CallBlock) and one.result is not None)


def _filled(coverage: Coverage) -> int:
    """How many of the dashes are full: all of them only where all was read."""
    if coverage.complete:
        return _DASHES
    read = sum(one.read + one.empty for one in coverage.documents)
    total = max(1, sum(one.total for one in coverage.documents))
    return min(_DASHES - 1, _DASHES * read // total)
