"""Variants of the OpenAI back end: Azure, Qwen's multimodal models, and addresses typed by strangers."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, cast
from urllib.parse import urlsplit

import openai
from pydantic import AliasChoices, Field, SecretStr

from core.errors import SettingsError
from core.llm.backends.amazon import bedrock_address, is_amazon, region_of
from core.llm.backends.http_clients import HttpPool, public_client
from core.llm.backends.openai.model import OpenAIModel
from core.llm.backends.openai.service import DASHSCOPE, NO_KEY, ClientPool, OpenAIConfig, address_of
from core.settings import named_key

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    import httpx2

    from core.llm.request import ChatRequest
    from core.llm.wire.openai import Json
    from core.llm.wire.tools import ToolNames


class AzureConfig(OpenAIConfig):
    """Azure's settings, beside those of every OpenAI-compatible service."""

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
    service_address: ClassVar[str] = ""
    always_native: ClassVar[bool] = True

    def _address(self, config: OpenAIConfig) -> str | None:
        """The endpoint, without the path that is often copied along."""
        address = address_of(config.base_url)
        if address is None or _is_v1(address):
            return address
        parts = urlsplit(address)
        return f"{parts.scheme}://{parts.netloc}{parts.path.partition('/openai')[0]}"

    def _client_key(self) -> Hashable:
        config = cast("AzureConfig", self._config)
        return "azure", super()._client_key(), config.azure_deployment or self.model, config.api_version, self._token()

    def _token(self) -> str | None:
        given = cast("AzureConfig", self._config).azure_ad_token
        token = given.get_secret_value() if given else None
        self._translator.learn(token or "")
        return token

    def _make_client(self, http: httpx2.AsyncClient) -> openai.AsyncOpenAI:
        config = cast("AzureConfig", self._config)
        if self._base_url and _is_v1(self._base_url):
            return super()._make_client(http)
        try:
            return openai.AsyncAzureOpenAI(
                azure_endpoint=cast("str", self._base_url),  # `None` leaves it to the SDK's environment variable
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


def _is_v1(address: str) -> bool:
    """Whether it is Azure's v1 API: `…/openai/v1`, without deployments and dated versions."""
    return urlsplit(address).path.rstrip("/").endswith("/openai/v1")


class BedrockConfig(OpenAIConfig):
    """Amazon Bedrock's settings, beside those of every OpenAI-compatible service."""

    region: str | None = Field(default=None, validation_alias=AliasChoices("region", "aws_region", "region_name"))


class BedrockModel(OpenAIModel):
    """A model that Amazon Bedrock serves, by its OpenAI-compatible form.

    Thoughts, kept prompts and documents are had by Bedrock's own protocol, `model_type` `bedrock_converse`; those of
    Claude also by Anthropic's, `anthropic` with the address `https://bedrock-mantle.<region>.api.aws/anthropic`.

    Args:
        cfg: As for OpenAI's services, and `region` in place of an address, such as `us-east-1` (else `AWS_REGION`).
            `api_key` is a Bedrock API key; without it `AWS_BEARER_TOKEN_BEDROCK` counts.

    Raises:
        SettingsError: A value is wrong, or there is neither a region nor an address.
    """

    model_type = "bedrock"
    default_model = "openai.gpt-oss-120b-1:0"
    config_class = BedrockConfig
    service_address: ClassVar[str] = ""
    always_native: ClassVar[bool] = True

    def _address(self, config: OpenAIConfig) -> str | None:
        """The one that is given, else that of the region."""
        if config.base_url:
            return address_of(config.base_url)
        return f"{bedrock_address(region_of(cast('BedrockConfig', config).region))}/openai/v1"

    def _default_key(self) -> str | None:
        """The key of Amazon's variable, for Amazon's own addresses alone."""
        return named_key("AWS_BEARER_TOKEN_BEDROCK") if is_amazon(self._base_url or "") else NO_KEY


class VisionModel(OpenAIModel):
    """A model that sees pictures and watches videos, whatever its name; with `audio: true` it hears as well.

    Pictures, videos (or their frames as a list) and recordings of this machine travel inside the request.
    """

    model_type = "qwenvl_oai"
    default_model = "qwen-vl-max"
    always_sees: ClassVar[bool] = True


class OmniModel(OpenAIModel):
    """A model that takes text, pictures, recordings and videos, and answers in text and speech.

    The reply's recording is an item of its own, after the text. `generate_cfg` chooses the voice:
    `{"audio": {"voice": "Ethan", "format": "wav"}}`, or text alone: `{"modalities": ["text"]}`.
    The service is DashScope's where no address is given.
    """

    model_type = "qwenomni_oai"
    default_model = "qwen-omni-turbo"
    support_multimodal_output = True
    service_address: ClassVar[str] = DASHSCOPE
    always_sees: ClassVar[bool] = True
    always_hears: ClassVar[bool] = True
    defaults: ClassVar[Mapping[str, Any]] = {
        "modalities": ["text", "audio"],
        "audio": {"voice": "Cherry", "format": "wav"},
    }

    def _address(self, config: OpenAIConfig) -> str | None:
        return address_of(config.base_url or DASHSCOPE)

    async def _body(self, request: ChatRequest, names: ToolNames) -> Json:
        body = await super()._body(request, names)
        if "audio" not in body["modalities"]:
            del body["audio"]  # the service refuses a voice for a reply without speech
        return body


@cache
def public_pool() -> ClientPool:
    """The pool of this process for such services."""
    return ClientPool(HttpPool(public_client))


class PublicOpenAIModel(OpenAIModel):
    """As `openai`, for an address typed by somebody who must not reach this machine's network."""

    model_type = "openai_public"
    service_address: ClassVar[str] = ""

    pool = staticmethod(public_pool)

    def _default_key(self) -> str | None:
        """Never this machine's own key: whoever typed the address would get it."""
        return NO_KEY
