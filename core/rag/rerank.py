"""Reranking by a service: `POST /rerank` as in vLLM and many gateways, or DashScope's text-rerank."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr, ValidationError

from core.errors import SettingsError
from core.rag.json_service import JsonService

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Reranker(Protocol):
    """Scores each passage together with the question: slow and good, so only for the best hits of a search."""

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """How well each text answers the question; higher is better.

        Raises:
            ModelServiceError: It cannot say now.
        """
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


def reranker(chosen: Mapping[str, Any] | None) -> Reranker | None:
    """The one that settings name: a service with `model`, `base_url` and `api_key`.

    Raises:
        SettingsError: A field is missing, unknown or out of range.
    """
    if chosen is None:
        return None
    from core.rag.rerank import ServiceReranker

    return ServiceReranker(chosen)


_LONGEST = 8_000  # letters of a text
_DASHSCOPE_PATH = "/services/rerank/text-rerank/text-rerank"


class RerankConfig(BaseModel):
    """Where the service is.

    Args:
        model: Its name there, such as `gte-rerank-v2` or `bge-reranker-v2-m3`.
        base_url: The address that ends in `/v1` or the like, or the whole one that ends in `rerank` or `reranks`.
        api_key: Sent as a bearer token.
        style: How it wants to be asked; by its address where nothing is said.
        timeout: Seconds for an answer: somebody waits, and the order of the search is there already.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(min_length=1)
    base_url: str = Field(min_length=1, validation_alias=AliasChoices("base_url", "model_server", "api_base"))
    api_key: SecretStr = SecretStr("")
    style: Literal["openai", "dashscope"] | None = None
    timeout: float = Field(default=10.0, gt=0, le=120)


class ServiceReranker:
    """A service.

    Args:
        cfg: As `RerankConfig` says.

    Raises:
        SettingsError: A field is missing, unknown or out of range.
    """

    def __init__(self, cfg: Mapping[str, Any]) -> None:
        try:
            config = RerankConfig.model_validate(dict(cfg))
        except ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            raise SettingsError(f"The reranking service is not set up right: {wrong}.") from None
        address = config.base_url.rstrip("/")
        self._nested = _is_dashscope(config, address)
        if not address.endswith(("/rerank", "/reranks", "/text-rerank")):
            address += _DASHSCOPE_PATH if self._nested else "/rerank"
        self._model = config.model
        key = config.api_key.get_secret_value()
        self._service = JsonService("reranking service", address, key, config.timeout)

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """One for each text; what the service leaves out is the least.

        Raises:
            ModelUnavailableError: The service is busy, slow or out of reach.
            ModelRefusedError: It refused the key, the model or the texts.
            ModelMisbehavedError: Its answer is none.
        """
        if not texts:
            return []
        asked = {"query": question[:_LONGEST], "documents": [text[:_LONGEST] or " " for text in texts]}
        if self._nested:
            more = {"top_n": len(texts), "return_documents": False}
            said = self._service.asked({"model": self._model, "input": asked, "parameters": more}).get("output")
        else:
            said = self._service.asked({"model": self._model, **asked, "top_n": len(texts)})
        try:
            return _scores(said, len(texts))
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise self._service.misbehaved() from error

    def close(self) -> None:
        """Close the connections."""
        self._service.close()


def _is_dashscope(config: RerankConfig, address: str) -> bool:
    """Whether the texts go into `input`: DashScope's own interface does so, its compatible one does not."""
    if config.style is not None:
        return config.style == "dashscope"
    return "/services/" in address or ("dashscope" in address and "compatible" not in address)


def _scores(said: Any, count: int) -> list[float]:
    """The scores in the order of the texts. Raises LookupError, TypeError, ValueError or OverflowError."""
    found: dict[int, float] = {int(one["index"]): float(one["relevance_score"]) for one in said["results"]}
    if not found or min(found) < 0 or max(found) >= count or not all(map(math.isfinite, found.values())):
        raise ValueError("not a score for each text")
    least = math.nextafter(min(found.values()), -math.inf)
    return [found.get(at, least) for at in range(count)]
