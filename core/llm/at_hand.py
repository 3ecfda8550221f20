"""A model of this process: what can be seen to be missing before anything is fetched or loaded."""

from __future__ import annotations

from pathlib import Path

from core.errors import SettingsError
from core.llm.local_files import user_path

_GGUF = ".gguf"
BUILT_IN = "llama_cpp"


def check_at_hand(model_type: str, name: str) -> None:
    """Look for the packages, and for the file or folder that is named. Blocks for a moment.

    Args:
        model_type: `llama_cpp` or `transformers`.
        name: A path, or a name whose files are fetched when it is used.

    Raises:
        MissingExtraError: A package is not installed.
        SettingsError: key `model_path_missing`: there is no such file or folder.
        ModelServiceError: The file is no model, damaged or cut off.
    """
    is_file = name.lower().endswith(_GGUF)
    if model_type != BUILT_IN:
        from core.llm.backends.transformers_load import need_packages

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
    """Whether it cannot be a name on the hub, which is one word, or an owner's and one."""
    return Path(name).is_absolute() or name.startswith((".", "~")) or "\\" in name or name.count("/") > 1


def _missing(path: Path) -> SettingsError:
    said = f"There is no model at {str(path)!r} that can be read."
    return SettingsError(said, hint="Check the path.", key="model_path_missing", path=str(path))
