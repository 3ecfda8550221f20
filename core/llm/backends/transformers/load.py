"""Models of the Transformers library: fetched from the Hugging Face hub, and loaded from a folder into memory."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import httpx
import httpx2
from tqdm import tqdm

from core.errors import (
    MissingExtraError,
    ModelRefusedError,
    ModelServiceError,
    ParlourError,
    SettingsError,
    need_packages,
)
from core.llm.request import Progress
from core.resources import free_memory

if TYPE_CHECKING:
    from collections.abc import Callable

_SMALL: Final = ("*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken", "*.py")
_WEIGHTS: Final = "*.safetensors"
_OLD_WEIGHTS: Final = "pytorch_model*.bin"
_ANSWER_SECONDS: Final = 10.0
_NO_ANSWER: Final = (OSError, httpx.HTTPError, httpx2.HTTPError)  # the library uses either


def cached_folder(name: str, revision: str | None) -> Path | None:
    """The folder of a model that was fetched before; `None` if it was not."""
    hub: Any = import_module("huggingface_hub")
    try:
        found = hub.try_to_load_from_cache(name, "config.json", revision=revision)
    except ValueError:  # an impossible name; `prepare` reports it
        return None
    return Path(found).parent if isinstance(found, str) else None


def fetched_folder(
    name: str, revision: str | None, gguf_file: str, progress: Callable[[Progress], None] | None
) -> Path:
    """The folder with the model's files; missing ones are fetched. Blocks.

    Args:
        name: As on the hub: `Qwen/Qwen3-0.6B`.
        revision: A branch, tag or commit.
        gguf_file: The one file to fetch, for a model in GGUF.
        progress: Called after each file, with bytes.

    Raises:
        SettingsError: The name is impossible.
        ModelRefusedError: The hub has no such model, or its licence must be accepted first.
        ModelServiceError: The hub cannot be reached and the model is not cached (`weights_unreachable`).
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
    except _NO_ANSWER as error:  # the library's own errors are OSErrors
        raise ModelServiceError(
            error,
            message=f"The model {name!r} could not be fetched.",
            hint="Connect to a network, or give the path of a folder that holds it.",
            key="weights_unreachable",
        ) from error


def _files(hub: Any, errors: Any, name: str, revision: str | None) -> list[str] | None:
    """The names of the model's files; `None` if the hub does not answer, so that the cache must do.

    One attempt: the library would retry for half a minute.
    """
    try:
        about = hub.HfApi().model_info(name, revision=revision, timeout=_ANSWER_SECONDS)
    except errors.HfHubHTTPError:
        raise
    except _NO_ANSWER:
        return None
    return [file.rfilename for file in about.siblings or ()]


def progress_bar(progress: Callable[[Progress], None] | None, name: str) -> Any:
    """A tqdm class that reports to `progress`; of the library's bars, the one for bytes on disk counts."""
    quiet: Any = tqdm  # a generic class to type checkers alone

    class Bar(quiet):
        """Reports progress and draws nothing."""

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


Dtype: TypeAlias = Literal["auto", "float32", "float16", "bfloat16"]

EXTRA: Final = "transformers"
_NO_MEMORY: Final = ("out of memory", "can't allocate memory", "cannot allocate memory", "bad_alloc")
_UNKNOWN: Final = ("does not recognize this architecture", "unrecognized model", "not supported yet", "gguf model with")
_OF_ITS_OWN: Final = "trust_remote_code"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model is and how it is to run.

    Args:
        folder: With `config.json`, the weights and the tokenizer, or with a GGUF file.
        gguf_file: The GGUF file's name in the folder; empty where there is none.
        device: `auto`, `cpu`, `cuda`, `cuda:1`, `mps` …
        sees: Whether to load it with vision; `None` if the model can.
        trusts: Whether code that comes with the model may run.
        moves: Whether it is loaded into memory first and brought to the device then, by this very thread.
    """

    folder: Path
    gguf_file: str = ""
    device: str = "auto"
    dtype: Dtype = "auto"
    sees: bool | None = None
    trusts: bool = False
    moves: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model in memory.

    Args:
        torch, transformers: The packages.
        processor: Prepares pictures; `None` for a model of text.
        context: In tokens; 0 where it is unknown.
    """

    torch: Any
    transformers: Any
    model: Any
    tokenizer: Any
    processor: Any
    context: int


def load(place: Place) -> Loaded:
    """Load the model. Blocks for seconds to minutes.

    Raises:
        SettingsError: There is no such device, or the model wants to run code of its own.
        MissingExtraError: It needs a package that is not installed.
        ModelServiceError: The folder is incomplete or damaged, the architecture is unknown (`model_not_loaded`), or
            memory is not enough (`model_no_memory`).
    """
    _check(place)
    torch: Any = import_module("torch")
    transformers: Any = import_module("transformers")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    device = _device(torch, place.device)
    try:
        return _read(torch, transformers, place, device)
    except ParlourError:
        raise
    except ImportError as error:
        name = error.name or str(error).partition("`")[2].partition("`")[0] or str(error).partition("\n")[0]
        raise MissingExtraError(f"The model {place.folder.name!r}", name, EXTRA) from error
    except Exception as error:  # damaged files surface as errors of any kind
        raise load_error(error, place) from error


def _check(place: Place) -> None:
    """Check what can be checked before two seconds of imports."""
    if place.gguf_file:
        from core.llm.gguf import read_gguf

        path = place.folder / place.gguf_file
        if not path.is_file():
            raise SettingsError(f"There is no model file {str(path)!r}.", hint="Check the path.")
        read_gguf(path, whole=True)
        need_packages("A GGUF file in Transformers", ("gguf", "accelerate"))
    elif not (place.folder / "config.json").is_file():
        raise not_loaded(f"The folder {str(place.folder)!r} has no config.json.", None)


def _read(torch: Any, transformers: Any, place: Place, device: Any) -> Loaded:
    given: dict[str, Any] = {"trust_remote_code": place.trusts, "local_files_only": True}
    if place.gguf_file:
        given["gguf_file"] = place.gguf_file
        sees = False
    else:
        config = transformers.AutoConfig.from_pretrained(place.folder, **given)
        sees = _sees(config) if place.sees is None else place.sees
    kind = transformers.AutoModelForImageTextToText if sees else transformers.AutoModelForCausalLM
    processor = transformers.AutoProcessor.from_pretrained(place.folder, **given) if sees else None
    tokenizer = processor.tokenizer if processor else transformers.AutoTokenizer.from_pretrained(place.folder, **given)
    dtype = _dtype(torch, place, device)
    if (
        device.type != "cpu" and not place.moves
    ):  # loaded straight to the device: memory would be needed twice otherwise
        need_packages(f"The device {str(device)!r}", ("accelerate",))
        given["device_map"] = device
    model = kind.from_pretrained(place.folder, dtype=dtype, **given).eval()
    if place.moves:
        model.to(device)
    return Loaded(torch, transformers, model, tokenizer, processor, _context(model, tokenizer))


def _sees(config: Any) -> bool:
    auto: Any = import_module("transformers.models.auto.modeling_auto")
    return config.model_type in auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES


def _context(model: Any, tokenizer: Any) -> int:
    said = getattr(model.config.get_text_config(), "max_position_embeddings", None) or tokenizer.model_max_length
    return int(said) if said and said < 1e9 else 0


def _device(torch: Any, wanted: str) -> Any:
    cuda, mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    if wanted == "auto":
        return torch.device("cuda" if cuda else "mps" if mps else "cpu")
    try:
        device = torch.device(wanted)
    except RuntimeError as error:
        raise SettingsError(f"There is no device {wanted!r}.", hint="Use auto, cpu, cuda or mps.") from error
    here = device.type == "cpu" or (device.type == "mps" and mps)
    if device.type == "cuda" and cuda:
        here = (device.index or 0) < torch.cuda.device_count()
    if not here:
        raise SettingsError(f"This machine has no device {wanted!r}.", hint="Set device to auto or cpu.")
    return device


def _dtype(torch: Any, place: Place, device: Any) -> Any:
    """The data type of the weights; on a CPU, float32 where memory allows, as it is much the fastest there.

    Systems that overcommit memory kill a process that uses it, so a model that cannot fit is not begun.
    """
    if device.type != "cpu":
        return place.dtype if place.dtype == "auto" else getattr(torch, place.dtype)
    weights = _weights(place)
    room = free_memory()
    if place.dtype == "auto":
        fits = 4 * weights < room * 0.8
        chosen = torch.float32 if place.gguf_file or fits else torch.bfloat16
    else:
        chosen = getattr(torch, place.dtype)
    if weights * chosen.itemsize > room:
        raise no_memory(place, None)
    return chosen


def _weights(place: Place) -> int:
    """Roughly how many weights the model has; a GGUF file takes about half a byte or more for each."""
    if place.gguf_file:
        return (place.folder / place.gguf_file).stat().st_size
    files = list(place.folder.glob("*.safetensors")) or list(place.folder.glob("pytorch_model*.bin"))
    size = sum(file.stat().st_size for file in files)
    try:
        config: Any = json.loads((place.folder / "config.json").read_text("utf-8"))
        kept = str(config.get("dtype") or config.get("torch_dtype") or "float32")
    except (ValueError, AttributeError):  # not a JSON object: loading it will report that
        kept = ""
    return size // (4 if "32" in kept else 2)


# -- errors -----------------------------------------------------------------------------------------------------------


def load_error(error: Exception, place: Place) -> ParlourError:
    """A failure to load, as one of our errors."""
    said = str(error)
    low = said.lower()
    if is_out_of_memory(error):
        return no_memory(place, error)
    if _OF_ITS_OWN in low:
        return SettingsError(
            f"The model {place.folder.name!r} wants to run code of its own.",
            hint="If you trust its makers, set trust_remote_code to true.",
        )
    if any(sign in low for sign in _UNKNOWN):
        message = f"Transformers does not know the architecture of the model in {str(place.folder)!r}."
        return not_loaded(message, error, "A newer version of transformers may.")
    return not_loaded(f"The model in {str(place.folder)!r} cannot be loaded: {said.partition(chr(10))[0]}", error)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether main memory or the GPU's ran out."""
    said = str(error).lower()
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(sign in said for sign in _NO_MEMORY)
    )


def no_memory(place: Place, error: Exception | None) -> ModelServiceError:
    """The error for too little memory."""
    return ModelServiceError(
        error,
        message=f"The model {place.folder.name!r} does not fit into memory.",
        hint="Choose a smaller model, set dtype to bfloat16, or close other programs.",
        key="model_no_memory",
    )


def not_loaded(message: str, error: Exception | None, hint: str = "") -> ModelServiceError:
    """The error for a folder that cannot be loaded."""
    hint = hint or "Check that it holds config.json, the weights and the tokenizer, all of them whole."
    return ModelServiceError(error, message=message, hint=hint, key="model_not_loaded")
