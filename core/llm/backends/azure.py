"""Models that Azure serves: an endpoint of one's own, a deployment with a name of its own, a dated version."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast
from urllib.parse import urlsplit

import openai
from pydantic import AliasChoices, Field, SecretStr

from core.errors import SettingsError
from core.llm.backends.openai import OpenAIModel
from core.llm.backends.openai_config import OpenAIConfig, address_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    import httpx2


class AzureConfig(OpenAIConfig):
    """The keys of Azure, beside those of every OpenAI-compatible service."""

    base_url: str | None = Field(
        default=None, validation_alias=AliasChoices("azure_endpoint", "base_url", "model_server", "api_base")
    )
    api_version: str = "2024-10-21"
    azure_deployment: str | None = Field(default=None, validation_alias=AliasChoices("azure_deployment", "deployment"))
    azure_ad_token: SecretStr | None = None


class AzureModel(OpenAIModel):
    """A model that Azure serves.

    Args:
        cfg: As for OpenAI's services, and `azure_endpoint` (`https://<name>.openai.azure.com`), `api_version`,
            `azure_deployment` (the `model` where it is left out), `azure_ad_token` in place of `api_key`.
            `AZURE_OPENAI_API_KEY` and `AZURE_OPENAI_ENDPOINT` count where they are left out.

    Raises:
        SettingsError: A value is wrong.
    """

    model_type = "azure"
    default_model = "gpt-4o"
    config_class = AzureConfig
    usual_address: ClassVar[str] = "https://openai.azure.com"
    always_native: ClassVar[bool] = True

    def _place(self, config: OpenAIConfig) -> str | None:
        """The endpoint, without what people copy along with it."""
        address = address_of(config.base_url)
        if address is None or _is_new(address):
            return address
        parts = urlsplit(address)
        return f"{parts.scheme}://{parts.netloc}{parts.path.partition('/openai')[0]}"

    def _kept_apart(self) -> Hashable:
        config = cast("AzureConfig", self._config)
        return "azure", super()._kept_apart(), config.azure_deployment or self.model, config.api_version, self._token()

    def _token(self) -> str | None:
        given = cast("AzureConfig", self._config).azure_ad_token
        token = given.get_secret_value() if given else None
        self._translator.learn(token or "")
        return token

    def _made(self, http: httpx2.AsyncClient) -> openai.AsyncOpenAI:
        config = cast("AzureConfig", self._config)
        if self._base_url and _is_new(self._base_url):
            return super()._made(http)
        try:
            return openai.AsyncAzureOpenAI(
                azure_endpoint=cast("str", self._base_url),  # `None` leaves it to the SDK's variable
                azure_deployment=config.azure_deployment or self.model,
                api_version=config.api_version,
                api_key=self._api_key,
                azure_ad_token=self._token(),
                max_retries=0,
                http_client=http,
            )
        except ValueError as error:
            said = "Azure needs the endpoint of your resource."
            hint = "Set azure_endpoint, such as https://<name>.openai.azure.com."
            raise SettingsError(said, hint=hint) from error


def _is_new(address: str) -> bool:
    """The form without deployments and versions: `…/openai/v1`, spoken like OpenAI's own."""
    return urlsplit(address).path.rstrip("/").endswith("/openai/v1")
