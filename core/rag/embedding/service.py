"""Vectors from a service that speaks the OpenAI protocol (`POST /embeddings`); DashScope's compatible mode does too."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr, ValidationError

from core.errors import ModelMisbehavedError, ModelServiceError, SettingsError
from core.llm.layers.retry import PAUSES, may_help
from core.rag.json_service import JsonService
from core.rag.prose import count_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from core.rag.embedding.base import Floats

_log = logging.getLogger(__name__)

_SECONDS = 60.0
_LONGEST = 8_000  # letters of a text
_RETRIES = 3  # of passages; somebody waits for questions, and words find without


class ServiceConfig(BaseModel):
    """Where the service is, and what it takes at once.

    Args:
        model: Its name there, such as `text-embedding-3-small` or `text-embedding-v4`.
        base_url: The address that ends in `/v1` or the like.
        api_key: Sent as a bearer token.
        dimensions: How many numbers a vector shall have, where the service leaves the choice.
        batch_size: Texts in a request; by default the least that any of these services allows.
        batch_tokens: Tokens of all texts in a request, by an estimate; a longer text goes alone.
        at_once: Requests at the same time.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(min_length=1)
    base_url: str = Field(
        default="https://api.openai.com/v1", validation_alias=AliasChoices("base_url", "model_server", "api_base")
    )
    api_key: SecretStr = SecretStr("")
    dimensions: int | None = Field(default=None, ge=1)
    batch_size: int = Field(default=10, ge=1, le=2048)
    batch_tokens: int = Field(default=8_000, ge=1)
    at_once: int = Field(default=4, ge=1, le=32)


class ServiceEmbedder:
    """A service. Passages go in batches, several at the same time; where it is busy, they are sent again.

    Args:
        cfg: As `ServiceConfig` says.

    Raises:
        SettingsError: A field is missing, unknown or out of range.
    """

    def __init__(self, cfg: Mapping[str, Any]) -> None:
        try:
            self._config = ServiceConfig.model_validate(dict(cfg))
        except ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            raise SettingsError(f"The embedding service is not set up right: {wrong}.") from None
        key = self._config.api_key.get_secret_value()
        address = f"{self._config.base_url.rstrip('/')}/embeddings"
        self._service = JsonService("embedding service", address, key, _SECONDS)
        self._closed = threading.Event()
        self._size = self._config.dimensions or 0  # of a vector; 0 until the first came

    @property
    def model(self) -> str:
        """Name, address and dimension."""
        config = self._config
        return f"{config.model} {config.base_url.rstrip('/')} {config.dimensions or ''}".strip()

    @property
    def at_once(self) -> int:
        """As many as go into the requests that are made at the same time."""
        return self._config.batch_size * self._config.at_once

    def ready(self) -> bool:
        """A service is asked when it is needed."""
        return True

    def questions(self, texts: Sequence[str]) -> Floats:
        """Vectors to search with; errors as in `passages`."""
        return self._joined([self._asked(batch, 0) for batch in self._batches(texts)])

    def passages(self, texts: Sequence[str]) -> Floats:
        """Vectors to be found.

        Raises:
            ModelUnavailableError: The service is busy or out of reach, also when it was asked again.
            ModelRefusedError: It refused the key, the model or the texts.
            ModelMisbehavedError: Its answer is none, or its vectors are not as long as others that it gave.
        """
        batches = list(self._batches(texts))
        ask = partial(self._asked, retries=_RETRIES)
        return self._joined(
            [ask(one) for one in batches] if len(batches) < 2 else list(self._threads.map(ask, batches))
        )

    def close(self) -> None:
        """Close the connections; requests that wait to be made again are given up."""
        self._closed.set()
        self._service.close()
        if "_threads" in self.__dict__:
            self._threads.shutdown(cancel_futures=True)

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._config.at_once, "embedding-service")

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        """The texts in their order, no batch with more texts or tokens than a request may have."""
        batch: list[str] = []
        tokens = 0.0
        for text in texts:
            cut = text[:_LONGEST] or " "
            more = count_tokens(cut)
            if batch and (len(batch) == self._config.batch_size or tokens + more > self._config.batch_tokens):
                yield batch
                batch, tokens = [], 0.0
            batch.append(cut)
            tokens += more
        if batch:
            yield batch

    def _asked(self, texts: Sequence[str], retries: int) -> Floats:
        body: dict[str, Any] = {"model": self._config.model, "input": texts}
        if self._config.dimensions:
            body["dimensions"] = self._config.dimensions
        attempt = 0
        while True:
            try:
                return _rows(self._service.asked(body), len(texts))
            except ModelServiceError as error:
                attempt += 1
                may = attempt <= retries and may_help(error) and not self._closed.is_set()
                pause = PAUSES.length(attempt, error.retry_after) if may else None
                if pause is None:
                    raise
                _log.warning("The embedding service is not available; attempt %d in %.1f s.", attempt + 1, pause)
                if self._closed.wait(pause):
                    raise

    def _joined(self, parts: Sequence[Floats]) -> Floats:
        for part in parts:
            self._size = self._size or part.shape[1]
            if part.shape[1] != self._size:
                raise ModelMisbehavedError(
                    f"The embedding service gave vectors of {part.shape[1]} numbers in place of {self._size}.",
                    hint=f"Check what {self._config.model!r} gives, and its `dimensions`.",
                )
        return np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)


def _rows(said: dict[str, Any], count: int) -> Floats:
    try:
        found = sorted(said["data"], key=lambda one: one["index"])
        rows = np.asarray([one["embedding"] for one in found], dtype=np.float32)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise ModelMisbehavedError("The embedding service answered with something else.") from error
    if rows.ndim != 2 or len(rows) != count or not np.isfinite(rows).all():
        raise ModelMisbehavedError("The embedding service gave no vector for each text.")
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
