"""What serves an agent: it knows web servers, which agents do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.registry import Entry, Registry

if TYPE_CHECKING:
    from collections.abc import Callable

SERVERS: Registry[Callable[..., Any]] = Registry("server", {"agent": Entry("webui.agent_doors.app:serve_agent")})
