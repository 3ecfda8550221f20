"""Models on Amazon Bedrock by its own protocol, Converse: thoughts, kept prompts, documents, for all of them alike."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast
from urllib.parse import quote

from pydantic import AliasChoices, Field, SecretStr

from core.errors import SettingsError
from core.llm.backends.amazon import (
    ProfileKeys,
    bedrock_address,
    checked_key,
    is_amazon,
    key_from_variables,
    region_of,
    signed_headers,
)
from core.llm.backends.native.model import NativeModel
from core.llm.backends.native.service import NativeConfig, Sent
from core.llm.request import call_ids, is_off, named_choice
from core.llm.service import account_mark
from core.llm.wire.anthropic import can_stop_thinking, version_of
from core.llm.wire.converse import Asking, ConverseReader, body_json, is_claude, keeps_prompts
from core.settings import named_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.llm.backends.amazon import AccessKey
    from core.llm.parameters import Efforts
    from core.llm.request import ChatRequest
    from core.llm.wire.reading import EndingReader
    from core.llm.wire.tools import ToolNames
    from core.messages.content import ContentItem

_HOST: Final = re.compile(r"bedrock[\w-]*\.([a-z0-9-]+)\.")
_ENDING: Final = re.compile(r"(?:/openai)?(?:/v1)?/*\Z")
_SEES: Final = re.compile(
    r"claude-(?!2|instant)|nova-(?!micro|sonic)|llama3-2-[19]|llama4|pixtral|-vl|vision", re.IGNORECASE
)
_READS: Final = re.compile(r"claude-(?!2|instant)|nova-(?!micro|sonic|canvas|reel)", re.IGNORECASE)
_WATCHES: Final = re.compile(r"nova-(?:lite|pro|premier|2)", re.IGNORECASE)


class ConverseConfig(NativeConfig):
    """The settings of this back end."""

    region: str | None = Field(default=None, validation_alias=AliasChoices("region", "aws_region", "region_name"))
    aws_access_key_id: str | None = None
    aws_secret_access_key: SecretStr | None = None
    aws_session_token: SecretStr | None = None
    profile: bool | str | None = Field(default=None, validation_alias=AliasChoices("profile", "aws_profile"))
    citations: bool = True


class ConverseModel(NativeModel):
    """A model on Amazon Bedrock, asked by the Converse API.

    `generate_cfg` takes `temperature`, `top_p`, `max_tokens`, `stop`, `reasoning_effort`, `response_format`, and the
    service's own fields (`guardrailConfig`, `performanceConfig`, `serviceTier`, `requestMetadata` …); what this
    protocol does not know is the model's own (`additionalModelRequestFields`).

    Args:
        cfg: `model`, `region` (else `AWS_REGION`) or `base_url`; `api_key` (a Bedrock API key, else
            `AWS_BEARER_TOKEN_BEDROCK`), or `aws_access_key_id`, `aws_secret_access_key` and `aws_session_token` (else
            Amazon's variables), or `profile`: a name, or true for what the botocore package finds. `prompt_caching` is
            true, false, `5m` or `1h`; `citations` is false where Claude is not to cite the documents of a question.

    Raises:
        SettingsError: A value is wrong; the message names it and never shows a key.
    """

    model_type = "bedrock_converse"
    default_model = "amazon.nova-lite-v1:0"
    service_address: ClassVar[str] = ""
    config_class: ClassVar[type[NativeConfig]] = ConverseConfig
    protocol: ClassVar[str] = "Converse"
    key_variables: ClassVar[tuple[str, ...]] = ("AWS_BEARER_TOKEN_BEDROCK",)
    connect_path: ClassVar[str] = "/"
    statuses: ClassVar[Mapping[str, int]] = {
        "validationException": 400,
        "throttlingException": 429,
        "modelStreamErrorException": 424,
        "internalServerException": 500,
        "serviceUnavailableException": 503,
    }
    wire_names: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "response_format": ("outputConfig", "textFormat", "schema"),
        "reasoning_effort": ("thinking", "reasoningConfig", "effort"),
        "max_tokens": ("maxTokens",),
        "top_p": ("topP",),
        "stop": ("stopSequences",),
    }

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        config = self._own
        if config.prompt_caching not in {True, False, "5m", "1h"}:
            said = f"prompt_caching cannot be {config.prompt_caching!r}."
            raise SettingsError(said, hint="Give true, false, 5m or 1h.", name="prompt_caching")
        self._forces, self._cites = True, config.citations and is_claude(self.model)
        asked = str(config.prompt_caching) if isinstance(config.prompt_caching, str) else "default"
        known = isinstance(config.prompt_caching, str) or keeps_prompts(self.model)
        self._keeps = asked if config.prompt_caching and known else ""
        self._access = None if self._key else self._given_access(config)
        if self._access is not None:
            told = _HOST.search(self._address) if is_amazon(self._address) else None
            self._region = region_of(config.region or (told[1] if told else None))
            self._http = self._http.signing(self._signature)
            for secret in self._secrets(self._access):
                self._translator.learn(secret)

    @property
    def _own(self) -> ConverseConfig:
        return cast("ConverseConfig", self._config)

    @property
    def efforts(self) -> Efforts:
        """As for every model; those of Claude by its generation."""
        if not is_claude(self.model) or version_of(self.model) < (3, 7):
            return {}
        off = {"off": {"reasoning_effort": "none"}} if can_stop_thinking(self.model) else {}
        return {**off, "short": {"reasoning_effort": "low"}, "long": {"reasoning_effort": "high"}}

    async def account(self) -> str:
        """As for every model, with the id of the key that requests are signed with."""
        if isinstance(self._access, ProfileKeys):
            return account_mark(self._address, (await asyncio.to_thread(self._access.now)).id)
        return account_mark(self._address, self._access.id if self._access is not None else self._key)

    def _given_address(self) -> str:
        return (self._config.base_url or "").strip() or bedrock_address(region_of(self._own.region))

    def _placed(self, address: str) -> str:
        return _ENDING.sub("", address)

    def _usual_key(self) -> str:
        config = self._own
        is_told = config.profile or config.aws_access_key_id or config.aws_secret_access_key
        return named_key(self.key_variables[0]) if is_amazon(self._address) and not is_told else ""

    def _given_access(self, config: ConverseConfig) -> AccessKey | ProfileKeys | None:
        secrets = {
            "aws_access_key_id": config.aws_access_key_id,
            "aws_secret_access_key": _shown(config.aws_secret_access_key),
            "aws_session_token": _shown(config.aws_session_token),
        }
        if (given := checked_key(secrets)) is not None:
            return given
        if config.profile:
            return ProfileKeys(config.profile if isinstance(config.profile, str) else "")
        return key_from_variables() if is_amazon(self._address) else None

    @staticmethod
    def _secrets(access: AccessKey | ProfileKeys) -> tuple[str, ...]:
        return () if isinstance(access, ProfileKeys) else tuple(filter(None, (access.secret, access.token)))

    async def _signature(self, address: str, body: bytes) -> Mapping[str, str]:
        access = self._access
        key = await asyncio.to_thread(access.now) if isinstance(access, ProfileKeys) else access
        if key is None:  # asked only where there is one
            return {}
        for secret in self._secrets(key):
            self._translator.learn(secret)
        return signed_headers(key, self._region, address, body)

    def _check_key(self) -> None:
        if not self._key and self._access is None:
            raise self._translator.keyless("Set api_key, AWS_BEARER_TOKEN_BEDROCK, or Amazon's access keys.")

    def _senses(self) -> None:
        config = self._config
        self.support_multimodal_input = bool(_SEES.search(self.model)) if config.vision is None else config.vision
        self.support_document_input = bool(_READS.search(self.model)) if config.documents is None else config.documents
        self.support_video_input = bool(_WATCHES.search(self.model)) if config.video is None else config.video
        self.support_audio_input = False

    def _takes(self, item: ContentItem) -> bool:
        """As for every such model; the service fetches nothing from the web."""
        if not isinstance(item.value, str) or item.value.startswith(("http://", "https://")):
            return False
        return super()._takes(item)

    def _headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _sent(self, request: ChatRequest, names: ToolNames) -> Sent:
        manner = Asking(self._keeps, self._forces, self._cites)
        verb = "converse" if is_off(request.generate.get("stream")) else "converse-stream"
        body = body_json(self.model, request, self._takes, names, manner)
        return Sent(f"/model/{quote(self.model, safe='')}/{verb}", body, {"Accept": "*/*"})

    def _learn(self, refusal: str, asked: ChatRequest, if_taken: tuple[str, ...]) -> bool:
        """As for every such model: what a model on Bedrock does not know its service says."""
        told = refusal.lower()
        if self._cites and "citation" in told:
            self._cites = False
            return True
        if self._keeps and ("cachepoint" in told or "prompt caching" in told):
            self._keeps = ""
            return True
        if self._forces and ("toolchoice" in told or "tool_choice" in told) and named_choice(asked):
            self._forces = False
            return True
        return super()._learn(refusal, asked, if_taken)

    def _reader(self, request: ChatRequest, names: ToolNames) -> EndingReader:
        return ConverseReader(call_ids(request.messages), names, model=self.model)


def _shown(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret else ""
