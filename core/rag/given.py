"""What a caller of a library gave, checked: one sentence names the argument, what was given, and what to write."""

from __future__ import annotations

import os
from collections.abc import Collection
from math import isfinite
from pathlib import Path
from typing import Any, cast

from core.errors import NotFoundError, SettingsError, shown
from core.rag.document import Document, Passage
from core.rag.parsers.process import Limits
from core.rag.search.base import SEARCHER_REGISTRY

_TEXTS: tuple[set[type], ...] = ({str}, set())
_MOST = 2**63 - 1  # that SQLite knows
_OF_A_SHELF = ("documents", "passages", "quick_words", "close")  # a part of what `Shelf` has, enough to tell one


def check_question(given: Any, name: str = "question") -> None:
    """Raises SettingsError: it is no text."""
    if not isinstance(given, str):
        raise _wrong(name, "a text", given, 'Write the question in words, such as find("How do I reset it?").')


def check_count(given: Any) -> None:
    """Raises SettingsError: `k` is no whole number from 0."""
    is_number = isinstance(given, int) and not isinstance(given, bool)
    if given is not None and not (is_number and 0 <= given <= _MOST):
        raise _wrong("k", "a whole number from 0", given, "Write how many passages you want, such as k=5.")


def check_kind(given: Any) -> None:
    """Raises SettingsError: `retrieval_type` is no name; a name that is not known is refused where it is looked up."""
    if given is not None and not isinstance(given, str):
        known = ", ".join(map(repr, sorted(SEARCHER_REGISTRY)))
        raise _wrong("retrieval_type", "a name", given, f"Write one of {known}, or leave it out.")


def check_ids(given: Any) -> None:
    """Raises SettingsError: `documents` is no collection of ids."""
    hint = "Write a list of ids, such as documents=[document.id], or leave it out to search in all."
    if given is None:
        return
    if isinstance(given, str | bytes) or not isinstance(given, Collection):
        raise _wrong("documents", "a list of ids", given, hint)
    ids = cast("Collection[object]", given)
    if (kinds := set(map(type, ids))) not in _TEXTS and not all(issubclass(kind, str) for kind in kinds):
        stray = next(one for one in ids if not isinstance(one, str))
        raise SettingsError(f"documents is a list of ids, and {shown(stray)} is none.", hint=hint, name="documents")


def check_passage(given: Any) -> None:
    """Raises SettingsError: `passage` is none."""
    if not isinstance(given, Passage):
        hint = "Write one that find gave, such as page_picture(library.find(question)[0])."
        if isinstance(given, str):
            hint += " For a page of a document by its id there is page_image(document_id, page)."
        raise _wrong("passage", "a Passage", given, hint)


def check_page(given: Any) -> None:
    """Raises SettingsError: `page` is no whole number."""
    if not isinstance(given, int) or isinstance(given, bool):
        raise _wrong("page", "a whole number from 1", given, "Write the number of the page, such as page=1.")


def check_page_of(document: Document, page: int) -> None:
    """Raises NotFoundError: the document has no such page; it says how many there are."""
    if document.pages and document.status in {"ready", "no_text"} and not 1 <= page <= document.pages:
        one = document.pages == 1
        there = f"{document.name!r} has {document.pages:,} page{'' if one else 's'}"
        hint = "Write page=1." if one else f"Write page=1 to page={document.pages}."
        raise NotFoundError(f"There is no page {page}: {there}.", hint=hint)


def check_zoom(given: Any) -> None:
    """Raises SettingsError: `zoom` is no number above 0."""
    if not isinstance(given, int | float) or isinstance(given, bool) or not isfinite(given) or given <= 0:
        hint = "Write the pixels for each point (1/72 inch), such as zoom=2.0."
        raise _wrong("zoom", "a number above 0", given, hint)


def check_parts(limits: Any, shelf: Any, fetch: Any) -> None:
    """Raises SettingsError: one of these arguments of `Library.open` is not what it has to be."""
    if limits is not None and not isinstance(limits, Limits):
        raise _wrong("limits", "a Limits", limits, "Write limits=Limits(seconds=60), or leave it out.")
    if shelf is not None and not all(hasattr(shelf, name) for name in _OF_A_SHELF):
        hint = "Leave it out: the passages are then kept in a file of the folder."
        raise _wrong("shelf", "a Shelf", shelf, hint)
    if fetch is not None and not callable(fetch):
        hint = "Write a function of a document's SHA-256 and a path, or leave it out."
        raise _wrong("fetch", "a function", fetch, hint)


def check_folder(given: str) -> None:
    """Raises SettingsError: a folder of this name cannot be."""
    if not _is_path(given):
        raise _wrong("folder", "a path", given, 'Write the path of a folder, such as "my-library".')
    if os.path.isfile(given):  # noqa: PTH113 - a `Path` raises where this cannot be known
        hint = "Write the path of a folder; a file goes into a library with library.add(path)."
        raise SettingsError(f"folder must be a folder, not the file {Path(given).name!r}.", hint=hint, name="folder")


def _wrong(name: str, wanted: str, given: Any, hint: str) -> SettingsError:
    return SettingsError(f"{name} must be {wanted}, not {shown(given)}.", hint=hint, name=name)


def _is_path(given: str) -> bool:
    """Whether the system can have something of this name."""
    try:
        return bool(given.strip()) and b"\0" not in os.fsencode(given)
    except UnicodeEncodeError:
        return False
