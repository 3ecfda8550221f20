"""What DashScope and the HTTP layer below it report, translated once into Parlour's errors."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx2

from core.errors import ModelMisbehavedError, ModelRefusedError, ModelServiceError, ModelUnavailableError
from core.llm.backends import meanings
from core.llm.backends.meanings import FOREIGN, Meaning
from core.llm.wire.refusals import without_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

HTTP_ERRORS: Final = (httpx2.RequestError, httpx2.StreamError, httpx2.InvalidURL, TimeoutError)
"""What the HTTP layer and a timeout raise."""


_PROTOCOL_ERRORS: Final = (httpx2.RemoteProtocolError, httpx2.ConnectError)


_OTHER_SERVICE: Final = Meaning(
    ModelRefusedError,
    "",
    "Models of text are of the type qwen_dashscope; those that see or hear of qwenvl_dashscope or qwenaudio_dashscope.",
)

NO_CALLS: Final = re.compile(
    r"(?:tool|function)[_ ]?(?:call|calling|choice|s)?\b.{0,30}not support|not support.{0,30}(?:tool|function)"
    r"|tool_choice is one of",
    re.IGNORECASE,
)
"""How models without calls of their own say so, or without a choice among them while they think."""

# The codes say more than the status does, and the words sometimes more than the code: the first that is found counts.
_WORDS: Final = tuple(
    (re.compile(words, re.IGNORECASE), meaning)
    for words, meaning in (
        (r"data_?inspection_?failed|inappropriate content|content_filter", meanings.INSPECTED),
        (
            r"range of input length|context[_ ](?:length|size|window)|prompt is too long|too many tokens",
            meanings.TOO_LONG,
        ),
        (
            r"arrearage|good standing|overdue|free_?tier|free (?:\w+ )?quota|not_?purchased|unpurchased",
            meanings.USED_UP,
        ),
        (r"insufficient_?\w*quota", meanings.USED_UP),
        (r"^throttling|limit_?requests|rate ?limit|ratequota", meanings.BUSY),
        (r"invalid_?api_?key|invalid api-?key|incorrect api key", meanings.KEY),
        (r"url error, please check url", _OTHER_SERVICE),
        (r"model_?not_?found|model not exist|model .{0,60}(?:does )?not exist|no such model", meanings.UNKNOWN),
        (NO_CALLS.pattern, meanings.NO_CALLS),
    )
)
# A model's own refusal, passed on by the service as a failure of its own: asking again would not help.
_INNER: Final = re.compile(r"(?:<|Error code: )([45]\d\d)\b")
# In a stream an older service leaves the status out: the code's beginning tells it.
_BEGINNINGS: Final = {
    "internalerror": 500,
    "systemerror": 500,
    "requesttimeout": 408,
    "serviceunavailable": 503,
    "modelserving": 503,
    "modelunavailable": 503,
    "throttling": 429,
    "invalidapikey": 401,
    "accessdenied": 403,
    "model": 404,
    "invalid": 400,
    "badrequest": 400,
    "datainspection": 400,
    "arrearage": 400,
}


@dataclass(slots=True)
class Translator:
    """Knows the service it translates for, so that errors can name it and never its key.

    Args:
        address: Of the service; only its host is shown.
        api_key: Taken out of everything that the service says.
        model: Name of the model.
    """

    address: str
    api_key: str = field(repr=False)
    model: str

    @property
    def host(self) -> str:
        """The service's host, and its port where it has one."""
        return urlsplit(self.address).netloc.rpartition("@")[2] or self.address

    @property
    def about(self) -> dict[str, Any]:
        """What the page's sentences name."""
        return {"host": self.host, "model": self.model}

    def translated(self, error: Exception, *, spoke: bool = False) -> ModelServiceError:
        """Parlour's error for one of `HTTP_ERRORS`.

        Args:
            error: What was raised.
            spoke: Whether part of the reply had come, so that an end of the connection cuts it off.
        """
        if isinstance(error, httpx2.ConnectTimeout):
            return self.cut_off(spoke=False)
        if not spoke and isinstance(error, _PROTOCOL_ERRORS) and FOREIGN.search(str(error)):
            return self.foreign()
        if isinstance(error, httpx2.TimeoutException | TimeoutError):
            said, hint = f"{self.host} took too long to answer.", "Ask again, or set request_timeout higher."
            return self._made(ModelUnavailableError, said, hint, "model_slow")
        return self.cut_off(spoke=spoke)

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
        message = without_keys(str(said.get("message") or f"HTTP status {status}"), self.api_key)
        plain = code.lower().replace("_", "")
        status = status or next((known for start, known in _BEGINNINGS.items() if plain.startswith(start)), 0)
        meaning = _meaning(status, code, message, spoke=spoke)
        # A model's name is no secret, a request's id helps the service's support.
        extra = {"service_code": code, "request_id": str(said.get("request_id") or ""), **self.about}
        shown = code if meaning is meanings.INSPECTED and code else str(status or code)
        error = meaning.kind(None, shown, message, extra, hint=meaning.hint, retry_after=retry_after, key=meaning.key)
        error.details |= {"seconds": retry_after, **self.about}
        return error

    def html(self) -> ModelServiceError:
        """The service talks HTML: most often its address is a web page's."""
        said = f"{self.host} answered with a web page, not as a model service."
        return self._made(ModelMisbehavedError, said, "Check the service's address; it ends in /api/v1.", "model_html")

    def foreign(self) -> ModelServiceError:
        """Something else answers there."""
        said = f"{self.host} answered, but not as a model service of the DashScope protocol."
        hint = "Check the service's address and its model_type; the address ends in /api/v1."
        return self._made(ModelMisbehavedError, said, hint, "")

    def cut_off(self, *, spoke: bool) -> ModelServiceError:
        """The connection ended before the reply was whole, or never stood."""
        if not spoke:
            said, hint = f"{self.host} cannot be reached.", "Check the address, and that the service runs."
            return self._made(ModelUnavailableError, said, hint, "model_unreachable")
        said = f"{self.host} cut the reply off."
        return self._made(ModelMisbehavedError, said, "Continue the reply, or ask again.", "model_cut_off")

    def ended_early(self, *, spoke: bool, foreign: bool) -> ModelServiceError:
        """The connection ended in good order, but not the reply.

        Args:
            spoke: Whether part of it had come.
            foreign: Whether something had come that is none of the protocol's.
        """
        if spoke:
            return self.cut_off(spoke=True)
        if foreign:
            return self.foreign()
        said = f"{self.host} ended the reply before it began."
        return self._made(ModelUnavailableError, said, "Ask again.", "model_cut_off")

    def keyless(self, hint: str) -> ModelServiceError:
        """There is no key to show."""
        return self._made(ModelRefusedError, "There is no API key for the service.", hint, "model_key_missing")

    def _made(self, kind: type[ModelServiceError], said: str, hint: str, key: str) -> ModelServiceError:
        error = kind(None, None, said, self.about, hint=hint, key=key)
        error.details |= self.about
        return error


def _meaning(status: int, code: str, message: str, *, spoke: bool) -> Meaning:
    about = f"{code} {message}"
    for words, meaning in _WORDS:
        if words.search(about):
            return meaning
    inner = _INNER.match(message)
    if inner and status not in range(400, 500):
        status = int(inner[1])
    if status:
        return meanings.by_status(status)
    return Meaning(ModelMisbehavedError if spoke else ModelUnavailableError, "", "Ask again.")
