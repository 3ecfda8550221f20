"""How a conversation is steered: instructions, parameters and tools, from the levels that hold for it.

A conversation's own choice outranks its persona's, that its folder's, that the owner's, and all of them the
installation's. Instructions add up instead, the more general first; those of a conversation stand in the place of its
persona's.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from core.errors import NotFoundError
from core.models.model_name import MODEL, ModelName
from core.runs.history_summary import Shortened
from core.storage.conversations import TEMPORARY
from core.storage.lending import lent_name
from core.storage.preferences import ABOUT_ME
from core.workspace.levels import DOCUMENTS, STEERED, Level, apply, checked_change, mapping_of
from core.workspace.personas import Persona, Personas
from core.workspace.prompts import Prompts

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from core.languages import Lang
    from core.storage.base import Folder
    from core.storage.stores import OwnerStores

SECOND_MODEL: Final = "second_model"
"""In a conversation's settings, the model that answers each question beside its own."""
_NOTES: Final = "storage"  # the tool that keeps them
SAVED: Final = "saved"
"""In a conversation's settings, what was chosen to make its messages smaller."""
_MOST_TOKENS: Final = 10_000_000
PERSONA: Final = "persona"
"""In a conversation's settings, the persona as it was when it was chosen: it may be deleted since."""

_HEADINGS: Final[Mapping[Lang, tuple[str, str, str]]] = {
    "en": (
        "What the user says about themselves, for all conversations:",
        "The user's instructions for the conversations of this folder:",
        "The user's instructions for this conversation:",
    ),
    "zh": ("用户关于自己的说明（适用于所有对话）：", "用户对此文件夹中各对话的要求：", "用户对本次对话的要求："),
}
_LATER: Final[Mapping[Lang, str]] = {
    "en": "Where these contradict each other, what comes later counts.",
    "zh": "以上内容如有冲突，以后面的为准。",
}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Tools that were left out in one act: what was chosen of each before, and the tokens that it saves."""

    before: Mapping[str, bool | None]
    tokens: int


@dataclass(frozen=True, slots=True)
class Saved:
    """What was chosen for a conversation to make its messages smaller.

    Args:
        passages: Whether its documents are searched, though all of them would fit.
        history: How its beginning is given.
        tools: Those that were left out, by who brings them.
    """

    passages: bool = False
    history: Shortened | None = None
    tools: Mapping[str, LeftOut] = field(default_factory=dict[str, LeftOut])

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Saved:
        """By a conversation's settings; what makes no sense there is left out."""
        kept = mapping_of(settings.get(SAVED))
        history = mapping_of(kept.get("history"))
        tools = {name: mapping_of(one) for name, one in mapping_of(kept.get("tools")).items()}
        return cls(
            kept.get("passages") is True,
            Shortened(str(history["last"]), history.get("summed_up") is not False) if history.get("last") else None,
            {
                name: LeftOut(
                    {one: was if isinstance(was, bool) else None for one, was in mapping_of(kept["before"]).items()},
                    _tokens(kept.get("tokens")),
                )
                for name, kept in tools.items()
                if "before" in kept
            },
        )

    def into(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings with this in them."""
        kept: dict[str, Any] = {"passages": True} if self.passages else {}
        if self.history is not None:
            kept["history"] = {"last": self.history.last, "summed_up": self.history.summed_up}
        if self.tools:
            kept["tools"] = {
                name: {"before": dict(one.before), "tokens": one.tokens} for name, one in self.tools.items()
            }
        others = {name: value for name, value in settings.items() if name != SAVED}
        return {**others, SAVED: kept} if kept else others


@dataclass(frozen=True, slots=True)
class Steering:
    """What holds for a conversation.

    Args:
        owner: For all conversations.
        folder: For those of its folder.
        persona: The one that was chosen for it, if any.
        own: Of itself alone.
        temporary: Whether it goes by itself: no notes are read into it or kept from it.
        passages_only: Whether its documents are searched, though all of them would fit.
        gone: The name of a persona that was chosen for it and is not lent any more; "" where there is none.
    """

    owner: Level = field(default_factory=Level)
    folder: Level = field(default_factory=Level)
    persona: Persona | None = None
    own: Level = field(default_factory=Level)
    temporary: bool = False
    passages_only: bool = False
    gone: str = ""

    @property
    def instructions(self) -> str:
        """The conversation's own, else its persona's."""
        return (self._of_persona if self.own.instructions is None else self.own).instructions or ""

    @property
    def parameters(self) -> dict[str, Any]:
        """What was chosen about how replies are written; the installation's settings hold for the rest."""
        return _over(*(dict(one.parameters) for one in self._levels))

    @property
    def tools(self) -> dict[str, bool]:
        """Tools that are switched on or off here, whatever the owner's list says."""
        without = {_NOTES: False} if self.temporary else {}
        return _over(*(dict(one.tools) for one in self._levels), without)

    @property
    def uses_documents(self) -> bool:
        """Whether documents and libraries may be looked into."""
        return self.tools.get(DOCUMENTS, True)

    def told(self, lang: Lang) -> str:
        """All instructions as a part of the system message; "" where there are none."""
        texts = (self.owner.instructions or "", self.folder.instructions or "", self.instructions)
        parts = [f"{heading}\n{text}" for heading, text in zip(_HEADINGS[lang], texts, strict=True) if text]
        return "\n\n".join([*parts, _LATER[lang]] if len(parts) > 1 else parts)

    @property
    def _levels(self) -> tuple[Level, ...]:
        return self.owner, self.folder, self._of_persona, self.own

    @property
    def _of_persona(self) -> Level:
        return self.persona.level if self.persona is not None else Level()


class OwnerSteering:
    """The steering of one owner's conversations.

    A conversation that is not there yet is steered by a draft: what its settings will be.

    Args:
        stores: Of the owner.

    Attributes:
        personas: The owner's.
    """

    def __init__(self, stores: OwnerStores) -> None:
        self._stores = stores
        self.personas = Personas(stores.settings, stores.standing)

    @cached_property
    def prompts(self) -> Prompts:
        """The owner's."""
        return Prompts(self._stores.settings)

    async def of(self, conversation_id: str) -> Steering:
        """What holds for a conversation. Raises NotFoundError."""
        record, kept = await self._stores.conversations.with_settings(conversation_id)
        return await self._whole(kept, record.folder_id)

    async def of_draft(self, draft: Mapping[str, Any], folder_id: str | None = None) -> Steering:
        """What will hold for a conversation that is not there yet, in a folder or none. Raises StorageError."""
        return await self._whole(draft, folder_id)

    async def shown(self, kept: Mapping[str, Any], folder_id: str | None) -> Steering:
        """The same of settings, or a draft of them, that are read already. Raises StorageError.

        It is without what the owner says for all conversations: that is told to models alone.
        """
        return await self._below(Level(), kept, folder_id)

    async def change(self, conversation_id: str, change: Mapping[str, Any]) -> None:
        """Choose for one conversation, from its next message on; raises as `changed`, and NotFoundError."""
        checked = checked_change(change)
        await self._stores.conversations.configure(conversation_id, lambda kept: apply(kept, checked))

    async def change_folder(self, folder_id: str, change: Mapping[str, Any]) -> Folder:
        """Choose for all conversations of a folder; raises as `changed`, and NotFoundError."""
        checked = checked_change(change)
        return await self._stores.folders.configure(folder_id, lambda kept: apply(kept, checked))

    async def about_me(self) -> str:
        """What holds for all conversations. Raises StorageError."""
        return Level.of({"instructions": await self._stores.settings.get(ABOUT_ME)}).instructions or ""

    # ---- personas

    async def lent_personas(self) -> list[Persona]:
        """Those that others share with the owner now, by name. Raises StorageError."""
        lent = self._stores.lent
        kept = await lent.personas()
        models = {one.name for one in await lent.models()} if kept else set[str]()
        found: list[Persona] = []
        for one in kept:
            persona = Persona.of({**one.kept, "lent": False})
            if persona is not None and persona.id:
                model = _lent_model(persona.model, one.lender_id, models)
                told = replace(persona, lender=one.lender, lent=True, writes=one.writes, model=model)
                found.append(told)
        return sorted(found, key=lambda one: (one.name.casefold(), one.lender.casefold()))

    async def change_lent(self, persona_id: str, level: Level) -> None:
        """Change the instructions, parameters and tools of a persona that somebody shares to be changed, too.

        Raises:
            NotFoundError: It is not lent to the owner.
            ParlourError: key `lent_to_read`.
            SettingsError: Something in it cannot be kept.
        """
        checked = Level.of(checked_change(level.as_dict()))
        change = {"instructions": checked.instructions, "parameters": dict(checked.parameters)}
        await self._stores.lent.change_persona(persona_id, {**change, "tools": dict(checked.tools)})

    async def persona(self, persona_id: str) -> Persona:
        """One of the owner's personas, or of those that are lent to the owner now. Raises NotFoundError."""
        try:
            return await self.personas.get(persona_id)
        except NotFoundError:
            found = next((one for one in await self.lent_personas() if one.id == persona_id), None)
            if found is None:
                raise
            return found

    async def with_persona(self, kept: Mapping[str, Any], persona_id: str) -> dict[str, Any]:
        """Settings of a conversation, or a draft of them, that uses a persona and nothing else.

        What was chosen for the conversation alone goes: the persona is what one returns to.

        Args:
            persona_id: "" for none.

        Raises:
            NotFoundError: There is no such persona.
        """
        persona = await self.persona(persona_id) if persona_id else None
        return _reset(kept, persona)

    async def choose(self, conversation_id: str, persona_id: str) -> None:
        """Let a conversation use a persona, or none, with its libraries in place of those of the one before.

        Raises:
            NotFoundError: The conversation or the persona is not the owner's.
        """
        persona = await self.persona(persona_id) if persona_id else None
        before = (await self.of(conversation_id)).persona
        await self._stores.conversations.configure(conversation_id, lambda kept: _reset(kept, persona))
        brought = persona.level.libraries if persona is not None else ()
        left = before.level.libraries if before is not None else ()
        for library in dict.fromkeys([*left, *brought]):
            with suppress(NotFoundError):  # deleted meanwhile
                await self._stores.libraries.use(conversation_id, library, on=library in brought)

    # ---- inside

    async def _whole(self, kept: Mapping[str, Any], folder_id: str | None) -> Steering:
        return await self._below(Level(await self.about_me() or None), kept, folder_id)

    async def _below(self, above: Level, kept: Mapping[str, Any], folder_id: str | None) -> Steering:
        folder = Level()
        if folder_id is not None:
            with suppress(NotFoundError):
                folder = Level.of((await self._stores.folders.get(folder_id)).settings)
        persona, gone = Persona.of(kept.get(PERSONA)), ""
        if persona is not None:
            try:
                persona = await self.persona(persona.id)
            except NotFoundError:  # deleted: it goes on as it was chosen; one that was lent is gone
                persona, gone = (None, persona.name) if persona.lent else (persona, "")
        temporary, passages_only = kept.get(TEMPORARY) is True, Saved.of(kept).passages
        return Steering(
            above, folder, persona, Level.of(kept), temporary=temporary, passages_only=passages_only, gone=gone
        )


def _reset(kept: Mapping[str, Any], persona: Persona | None) -> dict[str, Any]:
    """Settings that say of steering only which persona is used; its model goes with it."""
    others = {name: value for name, value in kept.items() if name not in {*STEERED, PERSONA}}
    before = Persona.of(kept.get(PERSONA))
    if before is not None and before.model is not None and others.get(MODEL) == before.model.as_json():
        del others[MODEL]
    if persona is None:
        return others
    brought = {MODEL: persona.model.as_json()} if persona.model is not None else {}
    return {**others, **brought, PERSONA: persona.as_dict()}


def _lent_model(model: ModelName | None, lender_id: str, lent: Collection[str]) -> ModelName | None:
    """The model of somebody else's persona, as whoever it is lent to has it; `None` where they do not have it."""
    if model is None or not model.service:
        return model
    name = lent_name(lender_id, model.service)
    return ModelName(name) if name in lent else None


def _over(*levels: dict[str, Any]) -> dict[str, Any]:
    """The levels as one, the last outranking the others."""
    return {name: value for one in levels for name, value in one.items()}


def _tokens(kept: object) -> int:
    return min(max(kept, 0), _MOST_TOKENS) if isinstance(kept, int) and not isinstance(kept, bool) else 0
