"""What a program can name as its model: models, personas, agents and Parlour's assistant, each under a lasting id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from core.errors import NotFoundError, SettingsError
from core.models.choices import ModelMenu
from core.models.model_name import INSTALLED, ModelName

if TYPE_CHECKING:
    from core.models.choices import Choosable
    from core.workspace.personas import Persona
    from core.workspace.program import Program
    from core.workspace.workspace import Workspace

Kind: TypeAlias = Literal["assistant", "agent", "persona", "model"]

ASSISTANT: Final = "parlour"
"""The id of Parlour's own assistant, with the owner's tools and libraries."""
INSTALLED_ID: Final = "installed"
"""The id of the model that the installation was started with."""
PERSONA: Final = "persona:"
"""What the id of a persona begins with."""
AGENT: Final = "agent:"
"""What the id of a program's agent begins with."""


@dataclass(frozen=True, slots=True)
class Offered:
    """Something that answers.

    Args:
        id: What a program calls it.
        kind: A model alone is asked as it is: without tools, libraries and instructions of the house.
        name: What people call it.
        model: Which model; `None` for the owner's usual one.
        persona: The persona that steers the assistant.
        place: Which of a program's agents, from 0.
    """

    id: str
    kind: Kind
    name: str
    model: ModelName | None = None
    persona: Persona | None = None
    place: int = 0


class Catalog:
    """What one owner's programs can name.

    Args:
        program: A program's own agents, where they answer in the place of Parlour's assistant.
    """

    def __init__(self, workspace: Workspace, program: Program | None) -> None:
        self._workspace = workspace
        self._program = program

    async def all(self) -> list[Offered]:
        """All of it: who answers with tools and documents first, then models. Raises StorageError."""
        found = self._agents()
        if self._program is None:
            found += [_persona(one) for one in await self._workspace.steering.personas.list()]
        if self._program is None or not self._program.brings_model:
            for service in await ModelMenu(self._workspace.models).services():
                found += [_model(one.name) for one in service.models if _answers(one)]
        return found

    async def find(self, wanted: str) -> Offered:
        """What an id names.

        Raises:
            NotFoundError: key `api_model`: the owner has nothing by that id.
        """
        try:
            return await self._named(wanted)
        except (NotFoundError, SettingsError) as error:
            said = f"There is no model or agent {wanted!r}."
            hint = "GET /v1/models lists those that there are."
            raise NotFoundError(said, hint=hint, key="api_model", model=wanted) from error

    async def _named(self, wanted: str) -> Offered:
        agent = next((one for one in self._agents() if one.id == wanted), None)
        if agent is not None:
            return agent
        if wanted == INSTALLED_ID:
            return _model(INSTALLED)
        if wanted.startswith(PERSONA) and self._program is None:
            return _persona(await self._workspace.steering.personas.get(wanted.removeprefix(PERSONA)))
        service, slash, model = wanted.partition("/")
        if not slash or not model:
            raise NotFoundError("This is no id.", kind="model")
        return _model(await self._workspace.models.named(ModelName(service, model)))

    def _agents(self) -> list[Offered]:
        if self._program is None:
            return [Offered(ASSISTANT, "assistant", "Parlour")]
        return [Offered(f"{AGENT}{name}", "agent", name, place=at) for at, name in enumerate(self._program.names)]


def _answers(one: Choosable) -> bool:
    """Whether a program that names it gets an answer soon: the file of a built-in one may be gigabytes."""
    return one.state != "no_key" and (one.state != "absent" or one.name == INSTALLED)


def _persona(persona: Persona) -> Offered:
    return Offered(f"{PERSONA}{persona.id}", "persona", persona.name, persona.model, persona)


def _model(name: ModelName) -> Offered:
    if not name.service:
        return Offered(INSTALLED_ID, "model", INSTALLED_ID, INSTALLED)
    return Offered(f"{name.service}/{name.model}", "model", name.model, name)
