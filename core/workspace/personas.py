"""An owner's personas: instructions, model, parameters, tools, libraries and starters under a name and a sign."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast

from core.errors import NotFoundError, SettingsError
from core.messages.invisible import plain_line
from core.models.model_name import ModelName
from core.storage.base import new_id
from core.storage.conversations import clean
from core.storage.loans import PERSONAS
from core.workspace.levels import Level, checked_change, mapping_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from core.storage.owner_settings import OwnerSettings

MOST_PERSONAS: Final = 100
MOST_STARTERS: Final = 8
LONGEST_NAME: Final = 60
LONGEST_SIGN: Final = 16  # code points of one letter or symbol: a family takes seven, a flag of a region as many
_LONGEST_STARTER: Final = 500


@dataclass(frozen=True, slots=True)
class Persona:
    """One of them.

    Args:
        id: Empty for one that is not kept yet.
        name: What it is called.
        sign: One or two letters that stand for it; the first letter of its name where it has none.
        level: What it says about a conversation that uses it.
        starters: Questions to begin with.
        model: Which model answers where it is chosen; `None` where that is not its business.
        lender: Who shares it with the owner; "" for the owner's own.
        lent: It is somebody else's: what it says is looked up each time, and not kept with a conversation.
        writes: The owner may change it.
    """

    id: str
    name: str
    sign: str = ""
    level: Level = field(default_factory=Level)
    starters: tuple[str, ...] = ()
    model: ModelName | None = None
    lender: str = ""
    lent: bool = False
    writes: bool = True

    @classmethod
    def of(cls, kept: object) -> Persona | None:
        """What was kept; `None` where that is no persona."""
        given = mapping_of(kept)
        try:
            name, sign = checked_name(given.get("name")), checked_sign(given.get("sign") or "")
            starters = checked_starters(given.get("starters") or [])
        except SettingsError:
            return None
        known = given.get("id")
        model = ModelName.read(given.get("model"))
        lent = given.get("lent") is True
        level = Level() if lent else Level.of(given)
        return cls(known if isinstance(known, str) else "", name, sign, level, starters, model, lent=lent)

    def as_dict(self) -> dict[str, Any]:
        """As it is kept; of one that is lent, only which it is."""
        if self.lent:
            return {"id": self.id, "name": self.name, "lent": True}
        named = {"id": self.id, "name": self.name, "sign": self.sign, "starters": [*self.starters]}
        named |= {"model": self.model.as_json() if self.model is not None else None}
        return {**{name: value for name, value in named.items() if value}, **self.level.as_dict()}


class Personas:
    """The personas of one owner.

    Args:
        settings: What the owner chose.
        changed: Called after one was changed, for whom it may be shared with.
    """

    def __init__(self, settings: OwnerSettings, changed: Callable[[], object] = lambda: None) -> None:
        self._settings = settings
        self._changed = changed

    async def list(self) -> list[Persona]:
        """All of them, by name. Raises StorageError."""
        return _read(await self._settings.get(PERSONAS))

    async def get(self, persona_id: str) -> Persona:
        """One of them. Raises NotFoundError."""
        found = next((one for one in await self.list() if one.id == persona_id), None)
        if found is None:
            raise NotFoundError("There is no such persona.", kind="persona")
        return found

    async def save(self, persona: Persona) -> Persona:
        """Keep one: a new one where it has no id, or where its own is gone.

        Raises:
            SettingsError: key `persona_unnamed`, `persona_name_taken` or `persona_many`; `steering_long` or
                `steering_value` where something in it cannot be kept.
        """
        level = Level.of(checked_change(persona.level.as_dict()))
        starters = checked_starters([*persona.starters])
        kept = replace(
            persona,
            id=persona.id or new_id(),
            name=checked_name(persona.name),
            sign=checked_sign(persona.sign),
            level=level,
            starters=starters,
        )

        def change(before: object) -> Sequence[Mapping[str, Any]]:
            others = [one for one in _read(before) if one.id != kept.id]
            if any(one.name.casefold() == kept.name.casefold() for one in others):
                raise SettingsError(
                    f"There is a persona {kept.name!r} already.",
                    hint="Choose another name.",
                    key="persona_name_taken",
                    name=kept.name,
                )
            if len(others) >= MOST_PERSONAS:
                hint = "Delete one that is not needed any more."
                raise SettingsError("There are too many personas.", hint=hint, key="persona_many", most=MOST_PERSONAS)
            return [one.as_dict() for one in (*others, kept)]

        await self._settings.change(PERSONAS, change)
        self._changed()
        return kept

    async def delete(self, persona_id: str) -> None:
        """Forget one. Conversations that use it go on as they were. Raises NotFoundError."""
        await self.get(persona_id)
        await self._settings.change(
            PERSONAS, lambda kept: [one.as_dict() for one in _read(kept) if one.id != persona_id] or None
        )
        self._changed()


def checked_name(given: object) -> str:
    """A persona's name as it is kept.

    Raises:
        SettingsError: key `persona_unnamed`: it is empty, or no text.
    """
    name = plain_line(clean(given), " ").strip()[:LONGEST_NAME] if isinstance(given, str) else ""
    if not name:
        raise SettingsError("A persona needs a name.", hint="Type one.", key="persona_unnamed")
    return name


def checked_sign(given: object) -> str:
    """Its sign as it is kept: one or two letters or symbols, each whole; more is cut. Raises SettingsError."""
    if not isinstance(given, str):
        raise SettingsError("A sign is a letter or two.", hint="Type one.", key="steering_value", name="sign")
    return "".join(_signs(given)[:2])


def first_sign(name: str) -> str:
    """The sign of a persona that has none of its own: what its name begins with."""
    return "".join(_signs(name)[:1])


def _signs(text: str) -> list[str]:
    """What a reader sees as one letter or symbol each, such as a flag; what no screen could hold is cut."""
    import regex

    found: list[str] = regex.findall(r"\X", plain_line(clean(text[:_LONGEST_STARTER]), "").strip())
    return [one[:LONGEST_SIGN] for one in found]


def checked_starters(given: object) -> tuple[str, ...]:
    """Questions to begin with, as they are kept: no more than the page shows, empty ones left out.

    Raises:
        SettingsError: key `steering_value`: they are no texts.
    """
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in cast("Sequence[Any]", given)):
        hint = "Give a list of texts."
        raise SettingsError("The starters are none.", hint=hint, key="steering_value", name="starters")
    texts = (clean(one).strip()[:_LONGEST_STARTER] for one in cast("Sequence[str]", given))
    return tuple(one for one in texts if one)[:MOST_STARTERS]


def _read(kept: object) -> list[Persona]:
    """What was kept, without what is no persona, by name."""
    found: list[Persona] = []
    for one in cast("Sequence[object]", kept) if isinstance(kept, list) else ():
        persona = Persona.of(one)
        if persona is not None and persona.id:
            found.append(persona)
    return sorted(found, key=lambda one: one.name.casefold())
