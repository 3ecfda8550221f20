"""Names that people sign in with: how they are written, and what tells two of them apart."""

from __future__ import annotations

import unicodedata
from typing import Final

from core.errors import ParlourError
from core.storage.people import TERMINAL

LONGEST_NAME: Final = 64
_MOST_TYPED: Final = 1000  # of a longer text nothing is looked at
_ODD: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Me"})
# Letters that look like Latin ones: a name of these alone would look like another person's.
_LIKE: Final = str.maketrans(
    dict(
        zip(
            "аеорсухіјѕһԁԛԝвкмнтɡαοιρυνκτεχ0ı",
            "aeopcyxijshdqwbkmhtgaoipuvktexoi",
            strict=True,
        )
    )
)
_SCRIPTS: Final = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")


def checked_name(typed: str) -> str:
    """A name as it is shown: signs of other widths are their usual ones, spaces are single.

    Raises:
        ParlourError: key `name_empty`, `name_long` or `name_odd`.
    """
    if len(typed) > _MOST_TYPED:
        raise _too_long()
    name = " ".join(unicodedata.normalize("NFKC", typed).split())
    if not name:
        raise ParlourError("The name is empty.", hint="Type one.", key="name_empty")
    if len(name) > LONGEST_NAME:
        raise _too_long()
    if name_key(name) == TERMINAL:
        raise _odd()
    if any(unicodedata.category(sign) in _ODD for sign in name) or _mixes_scripts(name):
        raise _odd()
    return name


def name_key(typed: str) -> str:
    """What tells names apart: two that differ by case, width, accents' spelling or lookalike letters have the same.

    Anything has one, so that whoever tries to sign in learns nothing of which names there could be.
    """
    name = unicodedata.normalize("NFKC", typed[:_MOST_TYPED])
    plain = "".join(sign for sign in name if unicodedata.category(sign) not in _ODD)
    folded = unicodedata.normalize("NFKC", " ".join(plain.split()).casefold())
    return folded.translate(_LIKE).encode(errors="replace").decode()


def _mixes_scripts(name: str) -> bool:
    """Whether a word has letters of two scripts whose letters look alike."""
    for word in name.split():
        named = (unicodedata.name(sign, "") for sign in word if sign.isalpha())
        if len({script for one in named for script in _SCRIPTS if one.startswith(script)}) > 1:
            return True
    return False


def _too_long() -> ParlourError:
    return ParlourError(
        "The name is too long.", hint=f"Use at most {LONGEST_NAME} letters.", key="name_long", most=LONGEST_NAME
    )


def _odd() -> ParlourError:
    hint = "Use letters of one script, figures and spaces."
    return ParlourError("This name could be taken for another one.", hint=hint, key="name_odd")
