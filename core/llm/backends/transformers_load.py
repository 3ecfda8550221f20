"""A Transformers model from a folder into memory, and what can go wrong on the way."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import psutil

from core.errors import MissingExtraError, ModelServiceError, ParlourError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Dtype: TypeAlias = Literal["auto", "float32", "float16", "bfloat16"]

EXTRA: Final = "transformers"
_NO_MEMORY: Final = ("out of memory", "can't allocate memory", "cannot allocate memory", "bad_alloc")
_UNKNOWN: Final = ("does not recognize this architecture", "unrecognized model", "not supported yet", "gguf model with")
_OF_ITS_OWN: Final = "trust_remote_code"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model lies and how it is to run.

    Args:
        folder: With `config.json`, the weights and the tokenizer, or with a GGUF file.
        gguf_file: The GGUF file's name in the folder; empty where there is none.
        device: `auto`, `cpu`, `cuda`, `cuda:1`, `mps` …
        dtype: How a number is kept.
        sees: Whether pictures are wanted; `None` leaves it to the model.
        trusts: Whether code that comes with the model may run.
    """

    folder: Path
    gguf_file: str = ""
    device: str = "auto"
    dtype: Dtype = "auto"
    sees: bool | None = None
    trusts: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model in memory.

    Args:
        torch, transformers: The packages.
        model: What writes.
        tokenizer: Its vocabulary.
        processor: What makes numbers of pictures; `None` where the model takes none.
        context: How many tokens it takes at once; 0 where nothing says so.
    """

    torch: Any
    transformers: Any
    model: Any
    tokenizer: Any
    processor: Any
    context: int


def need_packages(what: str, names: Iterable[str]) -> None:
    """Check that packages are installed, without importing them.

    Raises:
        MissingExtraError: One is not; the message has the command.
    """
    missing = next((name for name in names if find_spec(name) is None), None)
    if missing is not None:
        raise MissingExtraError(what, missing, EXTRA)


def load(place: Place) -> Loaded:
    """Read the model. Blocks, for seconds to minutes.

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
    except Exception as error:  # damaged files surface as errors of any kind; none is swallowed
        raise told(error, place) from error


def _check(place: Place) -> None:
    """What can be said before two seconds of imports."""
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
    if device.type != "cpu":  # read piece by piece to where it will be: memory would be needed twice otherwise
        need_packages(f"The device {str(device)!r}", ("accelerate",))
        given["device_map"] = device
    model = kind.from_pretrained(place.folder, dtype=dtype, **given).eval()
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
    """On a processor, numbers of 32 bits where memory allows: they are much the fastest there.

    A system that promises more memory than it has ends a process that takes it, so what cannot fit is not begun.
    """
    if device.type != "cpu":
        return place.dtype if place.dtype == "auto" else getattr(torch, place.dtype)
    weights = _weights(place)
    room = psutil.virtual_memory().available
    if place.dtype == "auto":
        fits = 4 * weights < room * 0.8
        chosen = torch.float32 if place.gguf_file or fits else torch.bfloat16
    else:
        chosen = getattr(torch, place.dtype)
    if weights * chosen.itemsize > room:
        raise no_memory(place, None)
    return chosen


def _weights(place: Place) -> int:
    """How many numbers the model has, roughly; a GGUF file keeps each in about half a byte or more."""
    if place.gguf_file:
        return (place.folder / place.gguf_file).stat().st_size
    files = list(place.folder.glob("*.safetensors")) or list(place.folder.glob("pytorch_model*.bin"))
    size = sum(file.stat().st_size for file in files)
    try:
        config: Any = json.loads((place.folder / "config.json").read_text("utf-8"))
        kept = str(config.get("dtype") or config.get("torch_dtype") or "float32")
    except (ValueError, AttributeError):  # no JSON, or no object: loading it tells
        kept = ""
    return size // (4 if "32" in kept else 2)


# -- errors -----------------------------------------------------------------------------------------------------------


def told(error: Exception, place: Place) -> ParlourError:
    """What went wrong while loading, as one of our errors."""
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
    """Whether memory ran out, of the machine or of the graphics card."""
    said = str(error).lower()
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(sign in said for sign in _NO_MEMORY)
    )


def no_memory(place: Place, error: Exception | None) -> ModelServiceError:
    """There is not enough memory for the model."""
    return ModelServiceError(
        error,
        message=f"The model {place.folder.name!r} does not fit into memory.",
        hint="Choose a smaller model, set dtype to bfloat16, or close other programs.",
        key="model_no_memory",
    )


def not_loaded(message: str, error: Exception | None, hint: str = "") -> ModelServiceError:
    """The folder is not a model that can be loaded."""
    hint = hint or "Check that it holds config.json, the weights and the tokenizer, all of them whole."
    return ModelServiceError(error, message=message, hint=hint, key="model_not_loaded")
