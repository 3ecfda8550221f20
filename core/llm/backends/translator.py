"""What goes wrong between this machine and a service, translated once into Parlour's errors."""

from __future__ import annotations

from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

import httpx2

from core.errors import ModelMisbehavedError, ModelRefusedError, ModelServiceError, ModelUnavailableError
from core.llm.backends.meanings import FOREIGN, Meaning
from core.llm.wire.refusals import without_keys

HTTP_ERRORS: Final = (httpx2.RequestError, httpx2.StreamError, httpx2.InvalidURL, TimeoutError)
"""What the HTTP layer and a timeout raise."""

_PROTOCOL_ERRORS: Final = (httpx2.RemoteProtocolError, httpx2.ConnectError)


class Translator:
    """Knows the service it translates for, so that errors can name it and never its key.

    A subclass knows its protocol: what the service's own refusals mean.

    Args:
        address: Of the service; only its host is shown.
        api_key: Taken out of everything that the service says.
        model: Name of the model.
    """

    protocol: ClassVar[str] = ""
    ending: ClassVar[str] = ""
    """How an address of such a service most often ends."""

    def __init__(self, address: str, api_key: str, model: str) -> None:
        self.host = urlsplit(address).netloc.rpartition("@")[2] or address
        self.about: dict[str, Any] = {"host": self.host, "model": model}
        """What the page's sentences name."""
        self._keys = {api_key} if api_key else set[str]()

    def learn(self, api_key: str) -> None:
        """Take this key out of messages too: the vendor's package may have found it by itself."""
        self._keys.add(api_key)  # one too short to be a key hides nothing

    def redacted(self, text: str) -> str:
        """The text, short and without anything that looks like a key."""
        return without_keys(text, *self._keys)

    def translated(self, error: Exception, *, spoke: bool = False) -> ModelServiceError:
        """Parlour's error for one of `HTTP_ERRORS`.

        Args:
            error: What was raised.
            spoke: Whether part of the reply had come, so that an end of the connection cuts it off.
        """
        reason = str(error) if isinstance(error, _PROTOCOL_ERRORS) else ""
        if isinstance(error, httpx2.ConnectTimeout):
            return self.cut_off(spoke=False)
        if isinstance(error, httpx2.TimeoutException | TimeoutError):
            return self.slow()
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            return self.untrusted()
        if FOREIGN.search(reason) and not spoke:
            return self.foreign()
        return self.cut_off(spoke=spoke)

    def slow(self) -> ModelServiceError:
        """The service takes too long."""
        said, hint = f"{self.host} took too long to answer.", "Ask again, or set request_timeout higher."
        return self.made(ModelUnavailableError, said, hint, "model_slow")

    def html(self, code: str | None = None) -> ModelServiceError:
        """The service talks HTML: most often its address is a web page's, or its end is missing."""
        said = f"{self.host} answered with a web page, not as a model service."
        hint = f"Check the service's address; it often ends in {self.ending}."
        return self.made(ModelMisbehavedError, said, hint, "model_html", code)

    def untrusted(self) -> ModelServiceError:
        """Nobody vouches for the service's certificate: asking again cannot help."""
        said = f"The certificate of {self.host} is not trusted."
        hint = "Check the address; for a server of your own, name its authority's file in SSL_CERT_FILE."
        return self.made(ModelRefusedError, said, hint, "model_unreachable")

    def foreign(self) -> ModelServiceError:
        """Something else answers there."""
        said = f"{self.host} answered, but not as a model service of the {self.protocol} protocol."
        hint = f"Check the service's address and its model_type; the address often ends in {self.ending}."
        return self.made(ModelMisbehavedError, said, hint)

    def cut_off(self, *, spoke: bool) -> ModelServiceError:
        """The connection ended before the reply was whole, or never stood."""
        if not spoke:
            said, hint = f"{self.host} cannot be reached.", "Check the address, and that the service runs."
            return self.made(ModelUnavailableError, said, hint, "model_unreachable")
        said = f"{self.host} cut the reply off."
        return self.made(ModelMisbehavedError, said, "Continue the reply, or ask again.", "model_cut_off")

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
        return self.made(ModelUnavailableError, said, "Ask again.", "model_cut_off")

    def keyless(self, hint: str) -> ModelServiceError:
        """There is no key to show."""
        return self.made(ModelRefusedError, "There is no API key for the service.", hint, "model_key_missing")

    def meant(
        self, meaning: Meaning, code: str, message: str, retry_after: float | None, known: dict[str, Any]
    ) -> ModelServiceError:
        """The error for a refusal of the service's own.

        Args:
            meaning: What it means to a user.
            code: The status, or the service's own code.
            message: In the service's words, without keys.
            retry_after: Seconds that the service asks to wait.
            known: What else a program may want to know; it holds no secret.
        """
        kind, key, hint = meaning
        error = kind(None, code, message, {**known, **self.about}, hint=hint, retry_after=retry_after, key=key)
        error.details |= {"seconds": retry_after, **self.about}
        return error

    def made(
        self, kind: type[ModelServiceError], said: str, hint: str, key: str = "", code: str | None = None
    ) -> ModelServiceError:
        """An error that names the service."""
        error = kind(None, code, said, self.about, hint=hint, key=key)
        error.details |= self.about
        return error
