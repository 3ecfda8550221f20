"""What the searches of the web have in common: the service that the user chose, and how many results are wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.tools.base import BaseTool, whole_number
from core.tools.web.catalog import service_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.tools.web.base import SearchService

MOST = 20  # results


class AsksSearchService(BaseTool):
    """A tool that asks a search service."""

    steady = True
    reaches_out = True

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        self._count = whole_number(self.cfg, "count", 8, 1, MOST)

    @property
    def _service(self) -> SearchService:
        """The one that the user chose. Raises SettingsError."""
        return service_of({**self.cfg, **self.credentials})

    def addresses(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """None: it asks the service that the user chose, and fetches no more than what the service names."""
        del arguments
        return ()

    def validate_credentials(self, credentials: Mapping[str, Any]) -> None:
        """Whether the service can be asked with these: `provider`, `api_key`, `base_url`; nothing is sent.

        Raises:
            SettingsError: There is no such service, or its key or address is missing.
        """
        service_of({**self.cfg, **credentials})
