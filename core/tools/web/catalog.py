"""The search services there are. One that is new is one more file and one more line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.registry import Entry, Registry
from core.tools.web.base import Account, SearchService

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT = "ddgs"
"""The one that needs no key."""

SEARCH_SERVICES: Registry[type[SearchService]] = Registry(
    "search service",
    {
        DEFAULT: Entry("core.tools.web.metasearch:Metasearch"),
        "serper": Entry("core.tools.web.serper:Serper"),
        "tavily": Entry("core.tools.web.tavily:Tavily"),
        "searxng": Entry("core.tools.web.searxng:SearXNG"),
        "brave": Entry("core.tools.web.brave:Brave"),
    },
)


def service_of(cfg: Mapping[str, object]) -> SearchService:
    """The service that a tool's options name.

    Args:
        cfg: `provider` is a name of `SEARCH_SERVICES`, the free one by default; the rest as for `Account.of`.

    Raises:
        SettingsError: There is no such service, or a key or address is missing or wrong.
    """
    service = SEARCH_SERVICES[str(cfg.get("provider") or DEFAULT)](Account.of(cfg))
    service.check()
    return service
