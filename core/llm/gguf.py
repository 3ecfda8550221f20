"""The header of a GGUF file: what the model is, and whether the file is complete."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from core.errors import ModelServiceError

if TYPE_CHECKING:
    from pathlib import Path

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_NUMBERS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_LONGEST_TEXT: Final = 16 * 1024 * 1024
_MOST: Final = 10_000_000  # entries of a table or list: more is a damaged number
_DEEPEST: Final = 4
# Weights and bytes per block, by quantization type; other types are not measured.
_BLOCKS: Final = {
    0: (1, 4),
    1: (1, 2),
    2: (32, 18),
    3: (32, 20),
    6: (32, 22),
    7: (32, 24),
    8: (32, 34),
    10: (256, 84),
    11: (256, 110),
    12: (256, 144),
    13: (256, 176),
    14: (256, 210),
    30: (1, 2),
}
_LONG: Final = "tokenizer."
_NO_CHAT: Final = ("bert", "clip", "t5encoder", "gte", "wavtokenizer")


@dataclass(frozen=True, slots=True)
class GgufFacts:
    """Facts in the header.

    Args:
        architecture: As llama.cpp names it: `llama`, `qwen2` …
        name: The makers' name; empty if there is none.
        context: Longest context in tokens; 0 if it is not given.
    """

    architecture: str
    name: str
    context: int


def read_gguf(path: Path, *, whole: bool = False) -> GgufFacts:
    """The facts of a file.

    Args:
        whole: Read all of the header, and check that no weights are missing. Takes about 0.2 s.

    Raises:
        ModelServiceError: It is no GGUF file, is damaged or cut off, or no chat model (`weights_not_loaded`).
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        if file.read(4) != _MAGIC:
            raise _wrong(path, "is no GGUF file", "Check the path: the name of a GGUF file ends with .gguf.")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            head = _Head(data)
            try:
                version = head.number("I")
                if version not in _VERSIONS:
                    raise _wrong(path, f"has the unknown GGUF version {version}", "Fetch a current version of it.")
                tensors = head.read(whole=whole)
                missing = head.missing(tensors) if whole else 0
            except (struct.error, _DamagedError, UnicodeDecodeError) as error:
                raise _wrong(path, "is damaged or cut off", "Fetch it again.") from error
    if missing:
        raise _wrong(path, f"is cut off: {missing:,} bytes are missing", "Fetch it again.")
    facts = head.facts()
    if any(part in facts.architecture for part in _NO_CHAT):
        raise _wrong(path, f"holds no model that writes ({facts.architecture})", "Choose a chat model.")
    return facts


class _DamagedError(Exception):
    """An implausible number."""


@dataclass(slots=True)
class _Head:
    data: mmap.mmap
    place: int = 4
    values: dict[str, Any] = field(default_factory=dict[str, Any])

    def read(self, *, whole: bool) -> int:
        """Read the metadata, up to the vocabulary unless `whole`; returns the number of tensors."""
        tensors, count = self._count(), self._count()
        for _ in range(count):
            key, kind = self._text(), self.number("I")
            if key.startswith(_LONG) and not whole:
                break
            self.values[key] = self._value(kind)
        return tensors

    def missing(self, tensors: int) -> int:
        """The bytes that the file lacks for its tensors."""
        end = 0
        for _ in range(tensors):
            self._text()
            size = 1
            for _ in range(self._at_most(self.number("I"), 8)):
                size *= self.number("Q")
            per_block, block = _BLOCKS.get(self.number("I"), (1, 0))
            end = max(end, self.number("Q") + size // per_block * block)
        alignment = int(self.values.get("general.alignment") or 32)
        start = -(-self.place // alignment) * alignment
        return max(0, start + end - len(self.data))

    def facts(self) -> GgufFacts:
        architecture = str(self.values.get("general.architecture") or "")
        context = self.values.get(f"{architecture}.context_length")
        return GgufFacts(
            architecture, str(self.values.get("general.name") or ""), context if isinstance(context, int) else 0
        )

    def number(self, form: str) -> Any:
        (value,) = struct.unpack_from(f"<{form}", self.data, self.place)
        self.place += struct.calcsize(form)
        return value

    def _value(self, kind: int, depth: int = 0) -> Any:
        if kind == _STRING:
            return self._text()
        if kind != _ARRAY:
            if kind not in _NUMBERS:
                raise _DamagedError
            return self.number(_NUMBERS[kind])
        inner, count = self.number("I"), self._count()
        if inner in _NUMBERS:
            self._skip(count * struct.calcsize(_NUMBERS[inner]))
        elif depth > _DEEPEST:
            raise _DamagedError
        else:
            for _ in range(count):
                self._skip(self.number("Q")) if inner == _STRING else self._value(inner, depth + 1)
        return None  # lists hold vocabularies, which are not needed

    def _text(self) -> str:
        size = self._at_most(self.number("Q"), _LONGEST_TEXT)
        start = self.place
        self._skip(size)
        return self.data[start : self.place].decode("utf-8")

    def _skip(self, size: int) -> None:
        self.place += size
        if self.place > len(self.data):
            raise _DamagedError

    def _count(self) -> int:
        return self._at_most(self.number("Q"), _MOST)

    @staticmethod
    def _at_most(number: int, most: int) -> int:
        if number > most:
            raise _DamagedError
        return number


def _wrong(path: Path, what: str, hint: str) -> ModelServiceError:
    return ModelServiceError(message=f"The model file {path.name} {what}.", hint=hint, key="weights_not_loaded")
