"""What every part of the page is given: the engine, the settings, and the words of a reader's language."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from webui.page_look import Look

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.engine import Engine
    from core.settings import Settings
    from webui.words import Words


@dataclass(frozen=True, slots=True)
class WebContext:
    """Built once per process, after the port is bound.

    Args:
        engine: Stores, model, library and runs; already entered.
        settings: The settings it was built from.
        words: Gives the words for an `Accept-Language` header: `Words.of`.
        look: What a program chose of the page.
    """

    engine: Engine
    settings: Settings
    words: Callable[[str], Words]
    look: Look = field(default_factory=Look)
