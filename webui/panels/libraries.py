"""Named libraries: the chip above the conversation, and the data of the dialog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.reading.intake import is_locked
from webui.render.citations import passage_label
from webui.render.documents import DocumentState, share_of, state_line
from webui.render.markup import escaped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from core.rag.attached import Attached
    from core.rag.document import Passage, ReadingProgress
    from core.reading.libraries import OpenedLibrary
    from core.reading.preparing import Made
    from core.storage.base import NamedLibrary
    from core.storage.lending import LentLibrary
    from webui.words import Words


def uses_html(libraries: Sequence[NamedLibrary], words: Words, called: Mapping[str, str] | None = None) -> str:
    """The chip with the libraries of a conversation; empty where it uses none.

    Args:
        called: What they are called, by id, with whoever shares them; left out, by their names.
    """
    if not libraries:
        return ""
    names = [(called or {}).get(one.id, one.name) for one in libraries]
    first, more = names[0], len(libraries) - 1
    label = words("libraries.more", name=first, n=more) if more else first
    said = escaped(words("libraries.uses", names=", ".join(names)))
    ids = escaped(" ".join(one.id for one in libraries))
    return (
        f'<button type="button" class="p-uses" data-do="libraries" data-uses="{ids}" aria-haspopup="dialog" '
        f'aria-label="{said}" title="{said}"><span class="p-name" dir="auto">{escaped(label)}</span>'
        f'<span class="p-many">{len(libraries)}</span></button>'
    )


def libraries_data(libraries: Sequence[NamedLibrary], words: Words) -> list[dict[str, Any]]:
    """The list of libraries, for the dialog."""
    return [listed_data(one, words) for one in libraries]


def listed_data(library: NamedLibrary, words: Words, lent: LentLibrary | None = None) -> dict[str, Any]:
    """One of them; of one that somebody else shares, whose it is and whether it may be changed."""
    if library.documents:
        said = words(_number("libraries.documents", library.documents), n=library.documents)
    else:
        said = words("libraries.empty")
    told: dict[str, Any] = {"id": library.id, "name": library.name, "said": said, "reading": bool(library.reading)}
    if lent is not None:
        whose = words("lending.of_writes" if lent.writes else "lending.of", lender=lent.lender)
        told |= {"whose": whose, "said": f"{said} · {lent.lender}", "writes": lent.writes}
    return told


def library_data(
    opened: OpenedLibrary,
    progress: Callable[[str], ReadingProgress | None],
    words: Words,
    preparing: Mapping[str, Made] | None = None,
    lent: LentLibrary | None = None,
    held_up: str = "",
) -> dict[str, Any]:
    """A library with its documents, for the dialog.

    Args:
        progress: Gives the progress of a document that is being read.
        preparing: Progress of documents without all embeddings yet, by id.
        lent: Who shares it, where it is somebody else's: its files are not handed out.
        held_up: Why these get no more, as of `DocumentState`.
    """
    documents: list[dict[str, Any]] = []
    for record in opened.documents:
        come = progress(record.id) if record.status == "reading" else None
        made = (preparing or {}).get(record.id)
        documents.append(
            {
                "id": record.id,
                "name": record.name,
                "file": record.file_id if lent is None else "",
                "state": record.status,
                "said": state_line(DocumentState(record, come, made, held_up), words) or words("reading.waits"),
                "moves": record.status == "reading" or made is not None,
                "noted": words.error(record.error) if record.status == "ready" and record.error else "",
                "locked": is_locked(record),
                "stopped": record.status == "cancelled" and record.library_id is not None,
                "share": share_of(come) if come is not None else None,
            }
        )
    return {**listed_data(opened.library, words, lent), "documents": documents}


def _nothing(unsearched: Sequence[Attached], words: Words) -> str:
    if not unsearched:
        return words("libraries.found_nothing")
    first, more = unsearched[0].name, len(unsearched) - 1
    if more:
        return words("libraries.found_nothing_yet_more", name=first, n=more)
    return words("libraries.found_nothing_yet", name=first)


def found_data(passages: Sequence[Passage], words: Words, unsearched: Sequence[Attached] = ()) -> dict[str, Any]:
    """The passages that a question found, with their scores, absolute and relative to the best.

    Args:
        unsearched: Documents that could not be searched completely.
    """
    if not passages:
        return {"found": [], "said": _nothing(unsearched, words)}
    best = max(passage.score for passage in passages)
    found = [
        {
            "where": passage_label(passage.as_dict(), words),
            "heading": passage.heading,
            "text": passage.text,
            "score": f"{passage.score:.2f}",
            "share": max(passage.score / best, 0.0) if best > 0 else 0.0,
        }
        for passage in passages
    ]
    return {"found": found, "said": words(_number("libraries.found", len(found)), n=len(found))}


def _number(key: str, number: int) -> str:
    return f"{key}_one" if number == 1 else key
