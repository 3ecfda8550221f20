"""The name of a model: the service that has it, and what that service calls it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST = 1_000

MODEL: Final = "model"
"""In a conversation's settings, which model answers in it, where that is not the owner's usual one."""


@dataclass(frozen=True, slots=True)
class ModelName:
    """Which model of which service.

    Args:
        service: The service's name among those that an owner set up; empty for the installation's own choice.
        model: Empty for the service's usual one.
    """

    service: str = ""
    model: str = ""

    @classmethod
    def read(cls, value: object) -> ModelName | None:
        """What `as_json` made; `None` where it is anything else."""
        if not isinstance(value, dict):
            return None
        given = cast("Mapping[str, Any]", value)
        service, model = given.get("service"), given.get("model", "")
        if not isinstance(service, str) or not isinstance(model, str) or len(service) + len(model) > _LONGEST:
            return None
        return cls(service, model)

    def as_json(self) -> dict[str, str]:
        """As it is kept."""
        return {"service": self.service, "model": self.model}


INSTALLED: Final = ModelName()
"""The model that the installation was started with."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What an owner said that a model can do; `None` where nothing was said, and its name tells.

    Args:
        sees: It takes pictures.
        hears: It takes recordings.
        calls: It takes tools in the way of the service's protocol; false puts them into the prompt.
    """

    sees: bool | None = None
    hears: bool | None = None
    calls: bool | None = None

    @classmethod
    def read(cls, value: object) -> Abilities:
        """What `as_json` made; what is neither true nor false was not said."""
        given: Mapping[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        said = {name: given.get(name) for name in cls.__slots__}
        return cls(**{name: value if isinstance(value, bool) else None for name, value in said.items()})

    def as_json(self) -> dict[str, bool]:
        """As it is kept: what was said."""
        said = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in said.items() if value is not None}


UNSAID: Final = Abilities()
"""Nothing was said."""
