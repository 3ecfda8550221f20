"""Built-in models that were not measured by Parlour's own suite yet: offered by name, never chosen by the machine.

Their files are not pinned here: name, size and SHA-256 come from the record of the repository, which is read before
anything is downloaded. `about` is what others tell of the size of four-bit files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from core.llm.weights_entry import Weights

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.languages import Lang

_QWEN: Final[Mapping[Lang, str]] = {"en": "the Qwen team of Alibaba Cloud", "zh": "阿里云通义千问团队"}
_IBM: Final[Mapping[Lang, str]] = {"en": "IBM", "zh": " IBM "}
_GIGA: Final = 1_000_000_000
_CHINESE_TOO: Final[Mapping[Lang, str]] = {"en": "Chinese, English and more", "zh": "中文、英文等"}
_NO_CHINESE: Final[Mapping[Lang, str]] = {"en": "English and more, not Chinese", "zh": "英文等，不含中文"}
_APACHE: Final = "Apache-2.0"


def _candidate(  # noqa: PLR0913 - one line of the list, by name
    name: str,
    label: str,
    maker: Mapping[Lang, str],
    repository: str,
    *,
    licence: str = _APACHE,
    about: float = 0,
    languages: Mapping[Lang, str] = _CHINESE_TOO,
    quantisation: str = "Q4_K_M",
    sees: bool = False,
    thinks: bool = False,
) -> Weights:
    """One that the hub's record completes; `about` is in gigabytes."""
    return Weights(
        name,
        label,
        maker,
        file=f"{name}.gguf",
        size=0,
        sha256="",
        licence=licence,
        context=0,
        repository=repository,
        quantisation=quantisation,
        about=round(about * _GIGA),
        languages=languages,
        sees=sees,
        thinks=thinks,
    )


_ALL: Final = (
    # The makers have no GGUF files of their own of Qwen3.5; these were made after its chat template was mended.
    _candidate("qwen3.5-0.8b", "Qwen3.5 0.8B", _QWEN, "unsloth/Qwen3.5-0.8B-GGUF", about=1.0, sees=True, thinks=True),
    _candidate("qwen3.5-2b", "Qwen3.5 2B", _QWEN, "unsloth/Qwen3.5-2B-GGUF", sees=True, thinks=True),
    _candidate("qwen3.5-4b", "Qwen3.5 4B", _QWEN, "unsloth/Qwen3.5-4B-GGUF", about=3.4, sees=True, thinks=True),
    _candidate("qwen3-0.6b", "Qwen3 0.6B", _QWEN, "Qwen/Qwen3-0.6B-GGUF", about=0.6, quantisation="Q8_0", thinks=True),
    _candidate(
        "lfm2.5-1.2b",
        "LFM2.5 1.2B",
        {"en": "Liquid AI", "zh": " Liquid AI "},
        "LiquidAI/LFM2.5-1.2B-Instruct-GGUF",
        licence="LFM-1.0",
        about=0.7,
    ),
    _candidate("granite-4.0-350m", "Granite 4.0 350M", _IBM, "ibm-granite/granite-4.0-350m-GGUF", about=0.22),
    _candidate("granite-4.0-1b", "Granite 4.0 1B", _IBM, "ibm-granite/granite-4.0-1b-GGUF", about=1.0),
    _candidate("granite-4.0-micro", "Granite 4.0 Micro 3B", _IBM, "ibm-granite/granite-4.0-micro-GGUF", about=2.1),
    _candidate(
        "gemma-4-e2b",
        "Gemma 4 E2B",
        {"en": "Google", "zh": " Google "},
        "unsloth/gemma-4-E2B-it-GGUF",
        licence="",
        about=3.0,
        sees=True,
        thinks=True,
    ),
    _candidate(
        "smollm3-3b",
        "SmolLM3 3B",
        {"en": "Hugging Face", "zh": " Hugging Face "},
        "ggml-org/SmolLM3-3B-GGUF",
        about=1.9,
        languages=_NO_CHINESE,
        thinks=True,
    ),
    _candidate(
        "phi-4-mini",
        "Phi-4-mini 3.8B",
        {"en": "Microsoft", "zh": " Microsoft "},
        "unsloth/Phi-4-mini-instruct-GGUF",
        licence="MIT",
        about=2.5,
    ),
    _candidate(
        "ministral-3-3b",
        "Ministral 3 3B",
        {"en": "Mistral AI", "zh": " Mistral AI "},
        "mistralai/Ministral-3-3B-Instruct-2512-GGUF",
        about=2.1,
        sees=True,
    ),
)

CANDIDATES: Final[Mapping[str, Weights]] = {each.name: each for each in _ALL}
"""By name. Bonsai 1.7B is left out: neither its licence nor a file that llama.cpp reads was known."""
