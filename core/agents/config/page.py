"""What an agent's file says that only a persona of the page uses."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Line = Annotated[str, Field(min_length=1, max_length=500)]


class PersonaModel(BaseModel):
    """Which model answers.

    Args:
        service: Its service, by its name on the page; empty for the installation's own.
        model: Its name; empty for the service's usual one.
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, frozen=True)

    service: str = ""
    model: str = ""


class PersonaSection(BaseModel):
    """What a persona of the page has besides. Programs pass over it; it holds no key and no address.

    Args:
        sign: One or two letters that stand for it.
        starters: Questions to begin with.
        libraries: Named libraries that it uses.
        model: Which model answers.
        effort: How long a model that thinks may do so.
        tools: Whether tools, servers (`mcp:name`) and skills may be used, beside those that `tools` names.
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, frozen=True)

    sign: str | None = None
    starters: list[Line] = Field(default_factory=list[str])
    libraries: list[Line] = Field(default_factory=list[str])
    model: PersonaModel | None = None
    effort: Literal["off", "short", "long"] | None = None
    tools: dict[str, Annotated[bool, Field(strict=True)]] = Field(default_factory=dict)
