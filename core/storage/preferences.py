"""What a person set for all of their conversations: something about themselves, and what the house does by itself."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from core.errors import SettingsError
from core.messages.invisible import without_invisible

if TYPE_CHECKING:
    from core.storage.owner_settings import Choices, OwnerSettings

ABOUT_ME: Final = "about_me"
TITLES: Final = "titles"
FOLLOW_UPS: Final = "follow_ups"
FORMATTED: Final = "formatted"
CHECK_CLAIMS: Final = "check_claims"
JUDGE: Final = "judge"
JUDGES: Final = ("never", "", "always")
"""When a model judges the sentences of answers: never, on a click, after each reply."""
DICTATION: Final = "dictation"
DICTATION_MODEL: Final = "dictation_model"
DICTATED: Final = "dictated"
"""Among the owner's settings, the calls for dictation whose text is in no question yet."""
LONGEST_ABOUT: Final = 4_000
"""Characters that somebody may say about themselves: it is sent with each message."""
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class Preferences:
    """What is set. Where the installation has titles or checks off, they stay off.

    Args:
        about_me: What the model is told about the owner, in every conversation.
        titles: Whether conversations are named by a model.
        follow_ups: Whether questions are proposed after a reply, by one more call of the model.
        formatted: Whether the Markdown of questions is shown as what it means; else they stand as they were typed.
        check_claims: Whether the sentences of answers from documents are checked.
        judge: When the model judges these sentences, too: one of `JUDGES`, "" for on a click.
        dictation: What turns speech into text: `browser`, `here` for a model of this machine, else the name of a model
            service; "" takes the browser's recognition where it has one, else what there is.
        dictation_model: The model of that service for it; "" for its usual one.
    """

    about_me: str = ""
    titles: bool = True
    follow_ups: bool = False
    formatted: bool = False
    check_claims: bool = True
    judge: str = ""
    dictation: str = ""
    dictation_model: str = ""


class PreferenceStore:
    """The preferences of one owner, each a setting of its own name."""

    def __init__(self, settings: OwnerSettings) -> None:
        self._settings = settings

    async def get(self) -> Preferences:
        """What is set. Raises StorageError."""

        def read(kept: Any) -> Preferences:
            found = {field.name: kept.get(field.name) for field in fields(Preferences)}
            return Preferences(**{name: value for name, value in found.items() if value is not None})

        return await self._settings.read_together(read)

    async def change(self, name: str, value: object) -> None:
        """Set one; an empty text and what is so anyway are forgotten.

        Args:
            name: A field of `Preferences`.
            value: A text or a truth value, as that field has it.

        Raises:
            SettingsError: There is none of that name, or it cannot have this value; the key is `about_too_long` where
                the text is too long.
            StorageError: The database failed.
        """
        kept = _checked(name, value)

        def changed(choices: Choices) -> None:
            choices.put(name, kept)
            if name == DICTATION:  # another service has other models
                choices.put(DICTATION_MODEL, None)

        await self._settings.change_together(changed)


def _checked(name: str, value: object) -> object:
    """What is kept; `None` where it is what holds without a choice."""
    if name == ABOUT_ME and isinstance(value, str):
        text = without_invisible(value.encode(errors="replace").decode().replace("\0", "")).text.strip()
        if len(text) > LONGEST_ABOUT:
            raise SettingsError(
                f"The text about you has {len(text):,} characters.",
                hint=f"It may have {LONGEST_ABOUT:,}.",
                key="about_too_long",
                letters=f"{len(text):,}",
                limit=f"{LONGEST_ABOUT:,}",
            )
        return text or None
    if name in {TITLES, CHECK_CLAIMS} and isinstance(value, bool):
        return None if value else False
    if name in {FOLLOW_UPS, FORMATTED} and isinstance(value, bool):
        return True if value else None
    if name == JUDGE and isinstance(value, str) and value in JUDGES:
        return value or None
    if name in {DICTATION, DICTATION_MODEL} and isinstance(value, str):
        text = value.strip()
        if len(text) <= _LONGEST_NAME and text.isprintable() and " " not in text:
            return text or None
    raise SettingsError(f"{name!r} cannot be set to a {type(value).__name__}.", key="preference_unknown")
