"""Paths as users and messages write them, and checks of local models before they are fetched or loaded."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from core.errors import SettingsError, need_packages


def user_path(given: str | Path) -> Path:
    """A path with `~` expanded, unless the user is unknown."""
    try:
        return Path(given).expanduser()
    except RuntimeError:
        return Path(given)


def path_of(address: str) -> Path:
    """The file that a path or a `file:` URL names."""
    try:
        return Path(url2pathname(urlsplit(address).path) if address.startswith("file:") else address)
    except ValueError:  # an invalid host
        return Path(address)


_GGUF = ".gguf"
BUILT_IN = "llama_cpp"


def check_local_model(model_type: str, name: str) -> None:
    """Check that a local model's packages and its file or folder exist. Blocks for a moment.

    Args:
        model_type: `llama_cpp` or `transformers`.
        name: A path, or a name whose files are fetched on first use.

    Raises:
        MissingExtraError: A package is not installed.
        SettingsError: key `model_path_missing`: there is no such file or folder.
        ModelServiceError: The file is not a model, damaged or cut off.
    """
    is_file = name.lower().endswith(_GGUF)
    if model_type != BUILT_IN:
        need_packages("Transformers", ("torch", "transformers", *(("gguf", "accelerate") if is_file else ())))
    if is_file:
        _check_file(Path(name) if model_type == BUILT_IN else user_path(name))
    elif model_type != BUILT_IN and _is_path(name) and not user_path(name).is_dir():
        raise _missing(user_path(name))


def _check_file(path: Path) -> None:
    from core.llm.gguf import read_gguf

    if not path.is_file():
        raise _missing(path)
    try:
        read_gguf(path, whole=True)
    except (OSError, ValueError):
        raise _missing(path) from None


def _is_path(name: str) -> bool:
    """Whether it cannot be a name on the hub, which is `name` or `owner/name`."""
    return Path(name).is_absolute() or name.startswith((".", "~")) or "\\" in name or name.count("/") > 1


def _missing(path: Path) -> SettingsError:
    said = f"There is no model at {str(path)!r} that can be read."
    return SettingsError(said, hint="Check the path.", key="model_path_missing", path=str(path))
