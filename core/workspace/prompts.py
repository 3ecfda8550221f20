"""An owner's prompts: texts under a name, put into the composer by `/`, with fields such as `{{city}}` to be filled."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from core.errors import NotFoundError, SettingsError
from core.messages.invisible import plain_line
from core.storage.base import new_id
from core.storage.conversations import clean
from core.workspace.levels import mapping_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.storage.owner_settings import OwnerSettings

PROMPTS: Final = "prompts"
"""The owner's setting that holds them."""
MOST_PROMPTS: Final = 100
LONGEST_NAME: Final = 60
LONGEST_TEXT: Final = 8_000


@dataclass(frozen=True, slots=True)
class Prompt:
    """One of them.

    Args:
        id: Empty for one that is not kept yet.
        name: What is typed behind the `/`.
        text: With its fields.
    """

    id: str
    name: str
    text: str


class Prompts:
    """The prompts of one owner.

    Args:
        settings: What the owner chose.
    """

    def __init__(self, settings: OwnerSettings) -> None:
        self._settings = settings

    async def list(self) -> list[Prompt]:
        """All of them, by name. Raises StorageError."""
        return _read(await self._settings.get(PROMPTS))

    async def save(self, prompt: Prompt) -> Prompt:
        """Keep one: a new one where it has no id.

        Raises:
            SettingsError: key `prompt_empty`: it has no name or no text; `prompt_name_taken`; `prompt_many`;
                `steering_long`.
        """
        name, text = _checked(prompt.name, prompt.text)
        kept = Prompt(prompt.id or new_id(), name, text)

        def change(before: object) -> Sequence[dict[str, Any]]:
            others = [one for one in _read(before) if one.id != kept.id]
            if any(one.name.casefold() == name.casefold() for one in others):
                hint = "Choose another name."
                raise SettingsError(f"There is a prompt {name!r}.", hint=hint, key="prompt_name_taken", name=name)
            if len(others) >= MOST_PROMPTS:
                hint = "Delete one that is not needed any more."
                raise SettingsError("There are too many prompts.", hint=hint, key="prompt_many", most=MOST_PROMPTS)
            return [asdict(one) for one in (*others, kept)]

        await self._settings.change(PROMPTS, change)
        return kept

    async def delete(self, prompt_id: str) -> None:
        """Forget one. Raises NotFoundError."""
        if all(one.id != prompt_id for one in await self.list()):
            raise NotFoundError("There is no such prompt.", kind="prompt")
        await self._settings.change(
            PROMPTS, lambda kept: [asdict(one) for one in _read(kept) if one.id != prompt_id] or None
        )


def _checked(name: object, text: object) -> tuple[str, str]:
    """A name and a text as they are kept. Raises SettingsError."""
    plain = plain_line(clean(name), " ").strip()[:LONGEST_NAME] if isinstance(name, str) else ""
    told = clean(text).strip() if isinstance(text, str) else ""
    if not plain or not told:
        raise SettingsError("A prompt needs a name and a text.", hint="Type both.", key="prompt_empty")
    if len(told) > LONGEST_TEXT:
        hint = f"Shorten it to {LONGEST_TEXT:,}."
        numbers = {"n": f"{len(told):,}", "most": f"{LONGEST_TEXT:,}"}
        raise SettingsError("The prompt is too long.", hint=hint, key="steering_long", **numbers)
    return plain, told


def _read(kept: object) -> list[Prompt]:
    """What was kept, without what is no prompt, by name."""
    found: list[Prompt] = []
    for one in cast("Sequence[object]", kept) if isinstance(kept, list) else ():
        given = mapping_of(one)
        name, text, known = given.get("name"), given.get("text"), given.get("id")
        if isinstance(name, str) and isinstance(text, str) and isinstance(known, str) and name and text and known:
            found.append(Prompt(known, name, text))
    return sorted(found, key=lambda one: one.name.casefold())
