"""A moderation service that speaks OpenAI's protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import httpx2
import openai
from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError

from core.errors import ModelMisbehavedError, SettingsError
from core.llm.backends.openai.service import OFFICIAL, VENDOR_ERRORS, Translator, address_of, client_pool, default_key

if TYPE_CHECKING:
    from collections.abc import Mapping

_SECONDS: Final = 10.0


class _Config(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    base_url: str | None = None
    api_key: SecretStr | None = None
    model: str = "omni-moderation-latest"


class ModerationService:
    """Asks a moderation service about a text.

    Args:
        cfg: `base_url`, `api_key` and `model`, OpenAI's by default. Its environment's key goes nowhere else.

    Raises:
        SettingsError: A value is wrong, or a name unknown.
    """

    def __init__(self, cfg: Mapping[str, Any]) -> None:
        try:
            self._config = _Config.model_validate(dict(cfg))
        except ValidationError as error:
            wrong = error.errors(include_input=False)[0]
            name = ".".join(map(str, wrong["loc"]))
            hint = "Correct it in the model's settings."
            raise SettingsError(f"The moderation's {name!r} is wrong: {wrong['msg']}.", hint=hint) from None
        key = self._config.api_key
        self._key = key.get_secret_value() if key else None
        self._base_url = address_of(self._config.base_url)
        address = self._base_url or OFFICIAL
        self.host = urlsplit(address).hostname or address
        self._translator = Translator(address, self._key or "", self._config.model)

    async def look(self, text: str, side: str) -> str | None:
        """The categories under which the service flags a text; `None` if it does not.

        Raises:
            ModelServiceError: It cannot be asked, or its answer cannot be read.
        """
        del side  # the service does not distinguish
        try:
            client = await client_pool().client(self, ("moderation", self._base_url, self._key), self._make_client)
            self._translator.learn(client.api_key)
            body = {"model": self._config.model, "input": text}
            answer = await client.post("/moderations", cast_to=httpx2.Response, body=body, options=_OPTIONS)
            return _reason(answer.json())
        except openai.APIStatusError as error:
            raise self._translator.translated(error) from None
        except VENDOR_ERRORS as error:
            raise self._translator.translated(error) from error
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ModelMisbehavedError(
                None,
                None,
                f"{self.host} did not answer as a moderation service.",
                hint="Check the address of the moderation.",
            ) from error

    def _make_client(self, http: httpx2.AsyncClient) -> openai.AsyncOpenAI:
        key = default_key(self._base_url, http) if self._key is None else self._key
        return openai.AsyncOpenAI(
            base_url=self._base_url, api_key=key, max_retries=0, http_client=http, timeout=_SECONDS
        )


_OPTIONS: Final[Any] = {"max_retries": 0}


def _reason(answer: Any) -> str | None:
    flagged = [result for result in answer["results"] if result["flagged"]]
    named = (cast("Mapping[str, Any]", result.get("categories") or {}) for result in flagged)
    categories = sorted({name for each in named for name, true in each.items() if true is True})
    return (", ".join(categories) or "flagged") if flagged else None
