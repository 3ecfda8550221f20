"""A model's files from the Hugging Face hub, or a mirror that `HF_ENDPOINT` names, kept in its usual cache."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx
import httpx2
from tqdm import tqdm

from core.errors import ModelRefusedError, ModelServiceError, SettingsError
from core.llm.request import Progress

if TYPE_CHECKING:
    from collections.abc import Callable

_SMALL: Final = ("*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken", "*.py")
_WEIGHTS: Final = "*.safetensors"
_OLD_WEIGHTS: Final = "pytorch_model*.bin"
_ANSWER_SECONDS: Final = 10.0
_NO_ANSWER: Final = (OSError, httpx.HTTPError, httpx2.HTTPError)  # the library speaks through either


def cached_folder(name: str, revision: str | None) -> Path | None:
    """The folder of a model that was fetched before; `None` where it was not."""
    hub: Any = import_module("huggingface_hub")
    try:
        found = hub.try_to_load_from_cache(name, "config.json", revision=revision)
    except ValueError:  # no such name can be; `prepare` says so
        return None
    return Path(found).parent if isinstance(found, str) else None


def fetched_folder(
    name: str, revision: str | None, gguf_file: str, progress: Callable[[Progress], None] | None
) -> Path:
    """The folder with the model's files; what is missing is fetched. Blocks.

    Args:
        name: As on the hub: `Qwen/Qwen3-0.6B`.
        revision: A branch, tag or commit.
        gguf_file: The one file to take, where the model is kept as GGUF.
        progress: Told after each file, in bytes.

    Raises:
        SettingsError: No such name can be.
        ModelRefusedError: The hub has no such model, or wants its conditions accepted first.
        ModelServiceError: The hub cannot be reached and the model is not here yet (`weights_unreachable`).
    """
    hub: Any = import_module("huggingface_hub")
    errors: Any = import_module("huggingface_hub.errors")
    try:
        files = _files(hub, errors, name, revision)
        weights = _WEIGHTS if files is None or any(file.endswith(".safetensors") for file in files) else _OLD_WEIGHTS
        return Path(
            hub.snapshot_download(
                name,
                revision=revision,
                allow_patterns=[*_SMALL, gguf_file or weights],
                tqdm_class=progress_bar(progress, name),
                local_files_only=files is None,
            )
        )
    except errors.HFValidationError as error:
        raise SettingsError(f"{name!r} is no name of a model.", hint="Give a folder, or owner/name.") from error
    except (errors.GatedRepoError, errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        gated = isinstance(error, errors.GatedRepoError)
        hint = "Accept its conditions on the hub and sign in there." if gated else "Check the name."
        message = f"The hub does not give the model {name!r}."
        raise ModelRefusedError(error, code="403" if gated else "404", message=message, hint=hint) from error
    except _NO_ANSWER as error:  # errors of the library's own are OSErrors
        raise ModelServiceError(
            error,
            message=f"The model {name!r} could not be fetched.",
            hint="Connect to a network, or give the path of a folder that holds it.",
            key="weights_unreachable",
        ) from error


def _files(hub: Any, errors: Any, name: str, revision: str | None) -> list[str] | None:
    """The names of the model's files; `None` where the hub does not answer, and what was fetched before must do.

    Asked once: the library would ask for half a minute.
    """
    try:
        about = hub.HfApi().model_info(name, revision=revision, timeout=_ANSWER_SECONDS)
    except errors.HfHubHTTPError:
        raise
    except _NO_ANSWER:
        return None
    return [file.rfilename for file in about.siblings or ()]


def progress_bar(progress: Callable[[Progress], None] | None, name: str) -> Any:
    """The bar that the library moves, as our progress. Of its bars, the one of bytes that are on disk counts."""
    quiet: Any = tqdm  # a generic class to type checkers alone

    class Bar(quiet):
        """Tells how far it is and draws nothing."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self._counts = kwargs.get("unit") == "B" and "ownload" not in str(kwargs.get("desc"))
            library: Any = super()
            library.__init__(*args, **{**kwargs, "disable": True})
            self.n = kwargs.get("initial") or 0

        def update(self, n: float | None = 1) -> None:
            self.n += n or 0
            if self._counts and progress is not None and self.total:
                progress(Progress(name, int(self.n), int(self.total)))

    return Bar
