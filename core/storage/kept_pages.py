"""Pictures of pages whose documents did not come along with a conversation: where they are, in its settings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from core.storage.base import is_id

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGES: Final = "pages"
"""In a conversation's settings, what is known of each picture."""
_WIDEST: Final = 100_000.0  # points


@dataclass(frozen=True, slots=True)
class PagePlace:
    """A picture of a page.

    Args:
        document_id: Of the document in the index that it was drawn from.
        page: From 1.
        file: The id of the picture among the files of the conversation.
        width: Of the page, in points.
        height: The same.
    """

    document_id: str
    page: int
    file: str
    width: float
    height: float

    @classmethod
    def read(cls, given: Mapping[str, Any], file: str) -> PagePlace:
        """The place as JSON has it, with the id of its picture. Raises KeyError, TypeError or ValueError."""
        document, page = given["document_id"], given["page"]
        sides = (float(given["width"]), float(given["height"]))
        is_number = isinstance(page, int) and not isinstance(page, bool) and page > 0
        is_size = all(math.isfinite(side) and 0 < side < _WIDEST for side in sides)
        if not (isinstance(document, str) and document and is_number and is_size and is_id(file)):
            raise ValueError(page)
        return cls(document, page, file, *sides)


def kept_pages(settings: Mapping[str, Any]) -> dict[tuple[str, int], PagePlace]:
    """The pictures that a conversation has, by document and page; what cannot be read is left out."""
    found: dict[tuple[str, int], PagePlace] = {}
    listed: Any = settings.get(PAGES)
    for one in cast("list[Any]", listed) if isinstance(listed, list) else ():
        try:
            place = PagePlace.read(one, one["file"])
        except (KeyError, TypeError, ValueError):
            continue
        found[place.document_id, place.page] = place
    return found
