"""`/v1/embeddings`: the models that search documents here, for programs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast

from core.doors.asked import BadRequestError, model_of
from core.doors.door import not_for
from core.doors.embedding import embedding_models, vector_length, vectors
from core.errors import NotFoundError
from core.llm.tokens import estimate_tokens
from core.messages.message import Usage
from webui.doors.entry import json_of
from webui.doors.refusals import JsonAnswer

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from core.doors.door import Door

_MOST_TEXTS: Final = 2_048
_LONGEST: Final = 300_000  # letters of all texts of a request


async def embeddings(request: Request, door: Door) -> Response:
    """A vector for each text."""
    given = await json_of(request)
    model, texts = model_of(given), _texts(given.get("input"))
    await door.check_use()
    if not door.key.may_use(model):
        raise not_for(model)
    if model not in await asyncio.to_thread(embedding_models):
        hint = "GET /v1/models lists them, as kind embedding."
        raise NotFoundError(f"There is no embedding model {model!r} here.", hint=hint, key="api_model", model=model)
    _check_length(given.get("dimensions"), model)
    slot = door.doors.services.runs.at_once.take(door.owner)
    try:
        await slot.wait()
        as_text = given.get("encoding_format") == "base64"
        made = await asyncio.to_thread(vectors, model, texts, as_text=as_text)
    finally:
        slot.release()
    tokens = sum(map(estimate_tokens, texts))
    door.note(Usage(prompt_tokens=tokens, total_tokens=tokens))
    data = [{"object": "embedding", "index": at, "embedding": one} for at, one in enumerate(made)]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return JsonAnswer({"object": "list", "model": model, "data": data, "usage": usage})


def _check_length(wanted: Any, model: str) -> None:
    """Raises BadRequestError where vectors of another length are wanted than those that the model makes."""
    length = vector_length(model)
    if wanted is None or (wanted == length and not isinstance(wanted, bool)):
        return
    hint = f"Leave dimensions out: its vectors have {length} numbers."
    said = f"The model {model!r} makes vectors of one length alone, and dimensions cannot be chosen."
    raise BadRequestError(said, param="dimensions", hint=hint)


def _texts(given: Any) -> list[str]:
    """What is to be embedded. Raises BadRequestError."""
    texts = [given] if isinstance(given, str) else cast("list[Any]", given) if isinstance(given, list) else []
    if not texts or len(texts) > _MOST_TEXTS:
        raise BadRequestError(f"input must be a text, or a list of at most {_MOST_TEXTS:,}.", param="input")
    if not all(isinstance(one, str) for one in texts):
        hint = "Send texts: in LangChain, set check_embedding_ctx_length=False."
        raise BadRequestError("Tokens of another model cannot be embedded here.", param="input", hint=hint)
    if not all(texts):
        hint = "Send only texts with something in them."
        raise BadRequestError("input must be no empty text, and have none in it.", param="input", hint=hint)
    if sum(map(len, texts)) > _LONGEST:
        raise BadRequestError(f"The texts have more than {_LONGEST:,} characters.", param="input", code="too_large")
    return cast("list[str]", texts)
