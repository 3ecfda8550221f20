"""What handlers work with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.engine import Engine
    from webui.uploads import Uploads
    from webui.views import Views


@dataclass(frozen=True, slots=True)
class Desk:
    """The engine, what was sent up, and the open tabs."""

    engine: Engine
    uploads: Uploads
    views: Views
