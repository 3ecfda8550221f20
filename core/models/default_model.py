"""The installation's model, as the settings name it; what they name wrongly is told with the variable that says so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.errors import SettingsError, UnknownNameError
from core.llm.catalog import LLM_REGISTRY
from core.llm.open_model import get_chat_model
from core.models.menu import BUILT_IN
from core.settings import named_key

if TYPE_CHECKING:
    from core.llm.base import BaseChatModel
    from core.settings import Settings

_FOR_TESTS: Final = "scripted"


def default_model(settings: Settings) -> BaseChatModel:
    """The model that answers where nobody chose another.

    Raises:
        SettingsError: What names it is wrong; the sentence says which setting does, what was typed and what to write.
        MissingExtraError: A package that it needs is not installed.
    """
    cfg = settings.model_cfg()
    name = str(cfg.get("model") or "")
    if cfg.get("model_type") == BUILT_IN and name.lower().endswith(".gguf") and not Path(name).is_file():
        raise SettingsError(
            f"There is no model file {name!r}, as {_setting('model', name)} has it.",
            hint="Write the path of a .gguf file that is there, or leave it out: the built-in model answers then.",
        )
    try:
        return get_chat_model(cfg)
    except UnknownNameError as error:
        is_kind = error.details["name"] == settings.model_type
        field, hint = ("model_type", _kinds()) if is_kind else ("model", f"{error.hint} Correct it, or leave it out.")
        told = str(error.args[0]).removesuffix(".")
        raise SettingsError(
            f"{told}, as {_setting(field, str(error.details['name']))} has it.",
            hint=hint,
            key=error.words_key,
            **error.details,
        ) from error


def _setting(field: str, given: str) -> str:
    """A setting, with its variable if that is where it was typed."""
    variable = f"PARLOUR_{field.upper()}"
    return f"the setting {field!r}" + (f" ({variable})" if named_key(variable) == given else "")


def _kinds() -> str:
    return f"Write one of {', '.join(sorted(set(LLM_REGISTRY) - {_FOR_TESTS}))}, or leave it out."
