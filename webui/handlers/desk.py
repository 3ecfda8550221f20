"""What handlers work with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.engine import Engine
    from core.net.addresses import Reach
    from webui.uploads import Uploads
    from webui.views import Views


@dataclass(frozen=True, slots=True)
class Desk:
    """The engine, what was sent up, the open tabs, and how far what is asked to be read may be fetched from.

    Args:
        reach: The open internet, where nothing else is said.
    """

    engine: Engine
    uploads: Uploads
    views: Views
    reach: Reach | None = None
