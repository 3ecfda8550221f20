"""Vectors from a service that speaks the OpenAI protocol (`POST /embeddings`); DashScope's compatible mode does too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr, ValidationError

from core.errors import ModelMisbehavedError, SettingsError
from core.rag.json_service import JsonService

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.rag.embedding.base import Floats

_AT_ONCE = 10  # texts in a request: the least that any of these services allows
_SECONDS = 60.0
_LONGEST = 8_000  # letters of a text


class ServiceConfig(BaseModel):
    """Where the service is.

    Args:
        model: Its name there, such as `text-embedding-3-small` or `text-embedding-v4`.
        base_url: The address that ends in `/v1` or the like.
        api_key: Sent as a bearer token.
        dimensions: How many numbers a vector shall have, where the service leaves the choice.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(min_length=1)
    base_url: str = Field(
        default="https://api.openai.com/v1", validation_alias=AliasChoices("base_url", "model_server", "api_base")
    )
    api_key: SecretStr = SecretStr("")
    dimensions: int | None = Field(default=None, ge=1)


class ServiceEmbedder:
    """A service.

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

    @property
    def model(self) -> str:
        """Name, address and dimension."""
        config = self._config
        return f"{config.model} {config.base_url.rstrip('/')} {config.dimensions or ''}".strip()

    @property
    def at_once(self) -> int:
        """As many as go into a request."""
        return _AT_ONCE

    def ready(self) -> bool:
        """A service is asked when it is needed."""
        return True

    def questions(self, texts: Sequence[str]) -> Floats:
        """Vectors to search with; errors as in `passages`."""
        return self.passages(texts)

    def passages(self, texts: Sequence[str]) -> Floats:
        """Vectors to be found.

        Raises:
            ModelUnavailableError: The service is busy or out of reach.
            ModelRefusedError: It refused the key, the model or the texts.
            ModelMisbehavedError: Its answer is none.
        """
        parts = [self._asked(texts[at : at + _AT_ONCE]) for at in range(0, len(texts), _AT_ONCE)]
        return np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)

    def _asked(self, texts: Sequence[str]) -> Floats:
        body: dict[str, Any] = {"model": self._config.model, "input": [text[:_LONGEST] or " " for text in texts]}
        if self._config.dimensions:
            body["dimensions"] = self._config.dimensions
        return _rows(self._service.asked(body), len(texts))

    def close(self) -> None:
        """Close the connections."""
        self._service.close()


def _rows(said: dict[str, Any], count: int) -> Floats:
    try:
        found = sorted(said["data"], key=lambda one: one["index"])
        rows = np.asarray([one["embedding"] for one in found], dtype=np.float32)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise ModelMisbehavedError("The embedding service answered with something else.") from error
    if rows.ndim != 2 or len(rows) != count or not np.isfinite(rows).all():
        raise ModelMisbehavedError("The embedding service gave no vector for each text.")
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
