"""What DashScope's refusals are in Parlour's errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.llm.backends import translator
from core.llm.backends.dashscope_meanings import meaning, status_of
from core.llm.backends.meanings import INSPECTED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.errors import ModelServiceError


class Translator(translator.Translator):
    """Translates for a service of DashScope's own protocol."""

    protocol = "DashScope"
    ending = "/api/v1"

    def refusal(
        self, status: int, said: Mapping[str, Any], retry_after: float | None = None, *, spoke: bool = False
    ) -> ModelServiceError:
        """The error for what the service says is wrong.

        Args:
            status: HTTP status; 0 where an event of the stream did not bring it.
            said: `code`, `message` and `request_id`, each where there is one.
            retry_after: Seconds that the service asks to wait.
            spoke: Whether part of the reply had come.
        """
        code = str(said.get("code") or said.get("type") or "")
        message = self.redacted(str(said.get("message") or f"HTTP status {status}"))
        status = status or status_of(code)
        found = meaning(status, code, message, spoke=spoke)
        # A model's name is no secret, a request's id helps the service's support.
        known = {"service_code": code, "request_id": str(said.get("request_id") or "")}
        shown = code if found is INSPECTED and code else str(status or code)
        return self.meant(found, shown, message, retry_after, known)
