"""Which extra brings which package, and the command that installs it: the one place that knows.

For a wheel that is `pip install "parlour[documents]"`, for a checkout `pip install ".[documents]"` in its folder.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "page": (
            *("alembic", "argon2", "authlib", "brotli", "fastapi", "gradio", "itsdangerous", "joserfc"),
            *("latex2mathml", "python_multipart", "sqlalchemy", "starlette", "uvicorn", "webauthn"),
        ),
        "documents": (
            *("docx", "lxml", "msoffcrypto", "numpy", "olefile", "oxmsg", "pptx", "pymupdf", "pypdfium2"),
            *("python_calamine", "PIL", "selectolax", "snowballstemmer", "striprtf", "tantivy", "usearch"),
        ),
        "local": ("huggingface_hub", "xllamacpp"),
        "mcp": ("cryptography", "mcp", "mcp_types"),
        "dashscope": ("dashscope", "tiktoken"),
        "web": ("ddgs", "trafilatura"),
        "ocr": ("cv2", "onnxruntime", "rapidocr"),
        "code": ("ipykernel", "jupyter_client", "matplotlib", "pandas", "traitlets", "zmq"),
        "voice": ("faster_whisper",),
        "observed": ("prometheus_client",),
        "bulk": ("ray",),
        "grown": ("obstore", "pgvector", "psycopg", "psycopg_pool", "redis"),
        "bedrock": ("botocore",),
        "transformers": ("accelerate", "gguf", "jinja2", "tokenizers", "torch", "tqdm", "transformers"),
        "zerogpu": ("spaces",),
    }
)
"""Modules by the extra that brings them. What two extras bring stands in the one that is asked for it first."""


def extra_of(module: str) -> str:
    """The extra that brings a module; "" where it is none of ours.

    Args:
        module: Its name, with or without the modules below it.
    """
    top = module.partition(".")[0]
    return next((extra for extra, modules in PACKAGES.items() if top in modules), "")


@cache
def in_checkout() -> bool:
    """Whether this is a copy of the repository, not an installed wheel."""
    root = Path(__file__).resolve().parents[__name__.count(".")]
    return (root / "pyproject.toml").is_file() and (root / "set_up.py").is_file()


def install_command(extra: str) -> str:
    """What to run in a terminal so that an extra is there; in a checkout, in its folder."""
    return f'.venv/bin/python -m pip install ".[{extra}]"' if in_checkout() else f'pip install "parlour[{extra}]"'


def install_hint(extra: str) -> str:
    """The command with where to run it, as the end of a sentence."""
    where = "in Parlour's folder, run" if in_checkout() else "run"
    return f"{where}: {install_command(extra)}"
