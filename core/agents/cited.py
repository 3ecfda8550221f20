"""`Cited`: a value of an answer together with the passages that it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationInfo, model_validator

from core.rag.document import Passage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.rag.document import Rectangle

Value = TypeVar("Value")
_NOTHING: Final[tuple[Any, ...]] = (None, "", [], {})  # says nothing that a passage could bear out


class Cited(BaseModel, Generic[Value]):
    """A field of an output that knows where it comes from: `total: Cited[float]`.

    The model writes the value and the numbers of the passages. A number that no passage has goes back to it, and so
    does a value without a number where there are passages; one that stays without after `output_retries` is taken as it
    is, and its `passages` are empty.

    Args:
        value: What was asked for.
        sources: The numbers of the passages that say so, from 1.
    """

    model_config = ConfigDict(extra="forbid")

    value: Value = Field(description="The value itself.")
    sources: list[int] = Field(description="The numbers of the passages that say so, such as [1].")
    _passages: tuple[Passage, ...] = PrivateAttr(default=())

    @model_validator(mode="after")
    def _found(self, info: ValidationInfo) -> Cited[Value]:
        context = cast("Mapping[str, Any]", info.context or {})
        passages: Sequence[Passage] | None = context.get("passages")
        if passages is None:  # made by the program itself
            return self
        beyond = [one for one in self.sources if not 0 < one <= len(passages)]
        if beyond:
            there = f"there are 1 to {len(passages)}" if passages else "there are no passages: write []"
            raise ValueError(f"There is no passage {beyond[0]}; {there}")
        if context.get("needs_sources") and passages and not self.sources and self.value not in _NOTHING:
            raise ValueError(f"sources is empty: write the numbers (1 to {len(passages)}) of the passages that say so")
        self._passages = tuple(passages[one - 1] for one in dict.fromkeys(self.sources))
        return self

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The passages that it comes from."""
        return self._passages

    @property
    def page(self) -> int | None:
        """The page of the first of them, from 1; `None` where there is none."""
        return self._passages[0].page if self._passages else None

    @property
    def document(self) -> str:
        """The document of the first of them; "" where there is none."""
        return self._passages[0].document if self._passages else ""

    @property
    def rectangles(self) -> tuple[Rectangle, ...]:
        """Where the first of them stands on its page."""
        return self._passages[0].rectangles if self._passages else ()
