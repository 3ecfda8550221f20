"""The dict of a model, read into the `Config` of its back end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import AliasChoices, BaseModel, ValidationError

from core.errors import SettingsError
from core.llm.meant_names import check_model_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Config = TypeVar("Config", bound=BaseModel)


def read_config(kind: type[Config], cfg: Mapping[str, Any]) -> Config:
    """The checked settings; what they do not know is left alone, unless it is almost one of theirs.

    Raises:
        SettingsError: A value is wrong; the message names it and does not show it. Or a name is misspelt.
    """
    given = {name: value for name, value in cfg.items() if value is not None}
    check_model_names(given, _names(kind))
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        wrong = error.errors(include_input=False, include_url=False)[0]
        name = ".".join(map(str, wrong["loc"]))
        said = str(wrong["msg"]).removeprefix("Value error, ").rstrip(".")
        hint = "Correct it in the model's settings."
        raise SettingsError(f"The model's {name!r} is wrong: {said}.", hint=hint) from None


def _names(kind: type[BaseModel]) -> Iterator[str]:
    for name, field in kind.model_fields.items():
        yield name
        if isinstance(field.validation_alias, AliasChoices):
            yield from (choice for choice in field.validation_alias.choices if isinstance(choice, str))
