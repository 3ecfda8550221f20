"""How long to wait for a service's reply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from core.llm.request import ChatRequest

FIRST_BYTE_SECONDS: Final = 60.0
_FIRST_BYTE_HERE_SECONDS: Final = 600.0  # a server on this machine may load a model or read a long prompt first
_IDLE_SECONDS: Final = 30.0
AFTER_END_SECONDS: Final = 0.2
"""For the few bytes after a reply, so that the connection can serve the next question."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds to wait for the first bytes of the reply, and for more of it later."""

    first: float
    idle: float

    @classmethod
    def of(cls, request: ChatRequest, *, here: bool) -> Limits:
        """`generate_cfg["request_timeout"]` for both, else the usual ones.

        Args:
            request: What is asked.
            here: Whether the service runs on this machine.
        """
        if asked := request.generate.get("request_timeout"):
            return cls(float(asked), float(asked))
        return cls(_FIRST_BYTE_HERE_SECONDS if here else FIRST_BYTE_SECONDS, _IDLE_SECONDS)
