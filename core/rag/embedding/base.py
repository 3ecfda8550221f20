"""The `Embedder` protocol: text to vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float32]


class Embedder(Protocol):
    """An embedding model: texts of similar meaning get vectors of similar direction.

    Every method takes any number of texts and gives a matrix with a row of unit length for each.
    """

    @property
    def model(self) -> str:
        """Name, version and dimension: vectors under another one cannot be compared with these."""
        ...

    @property
    def at_once(self) -> int:
        """How many passages make a good batch."""
        ...

    def questions(self, texts: Sequence[str]) -> Floats:
        """Vectors to search with; fast, as somebody waits.

        Raises:
            ParlourError: The model does not run here, or the service failed.
        """
        ...

    def passages(self, texts: Sequence[str]) -> Floats:
        """Vectors to be found; may take long.

        Raises:
            ParlourError: The model does not run here, or the service failed.
        """
        ...

    def ready(self) -> bool:
        """Whether it runs here. The first time this may take a second."""
        ...

    def close(self) -> None:
        """Release what this instance alone holds."""
        ...
