"""Passwords: which will do, and their hashes, which are made and compared in threads that let others go first."""

from __future__ import annotations

import asyncio
import gzip
import os
import re
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.errors import ParlourError, extra_for
from core.resources import step_back

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SHORTEST: Final = 12
_LONGEST: Final = 1000
_LEAST_DIFFERENT: Final = 5
_LONG_NUMBER: Final = 20  # figures and signs alone are few to try
_COMMON: Final = Path(__file__).with_name("common_passwords.txt.gz")
_AROUND: Final = re.compile(r"^[\W\d_]+|[\W\d_]+$")
_REPEATED: Final = re.compile(r"(.+?)\1+")
_LANES: Final = 4  # threads of one hash, by its recommended cost; it takes 64 MiB while it is computed


def check_password(password: str, name: str = "") -> None:
    """Check a password that somebody chooses.

    Refused are the 10,000 commonest, also with signs and figures around them or repeated, and the name itself.

    Raises:
        ParlourError: key `password_short`, `password_long` or `password_common`.
    """
    if len(password) > _LONGEST:
        raise ParlourError("The password is too long.", key="password_long", most=_LONGEST)
    if len(password) < SHORTEST:
        raise ParlourError(
            "The password is too short.", hint=f"Use {SHORTEST} characters or more.", key="password_short", n=SHORTEST
        )
    plain = _normal(password).casefold()
    whole = _REPEATED.fullmatch(plain)
    cores = {plain, _AROUND.sub("", plain), whole[1] if whole is not None else plain}
    cores |= {_AROUND.sub("", one) for one in cores}
    known = _common()
    named = name.casefold().strip()
    is_number = not _AROUND.sub("", plain) and len(plain) < _LONG_NUMBER
    few = len(set(plain)) < _LEAST_DIFFERENT
    if few or is_number or any(one in known for one in cores) or (named and named in cores):
        raise ParlourError(
            "This password is among those that are tried first.", hint="Take a sentence.", key="password_common"
        )


class Passwords:
    """Hashes of argon2id.

    Args:
        hasher: Makes and compares them; of the cost that its package recommends if left out.

    Raises:
        MissingExtraError: The package is not installed.
    """

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        with extra_for("Accounts"):
            from argon2 import PasswordHasher

        self._hasher = hasher or PasswordHasher()
        at_once = 1 if (os.cpu_count() or 1) <= _LANES else 2
        self._threads = ThreadPoolExecutor(at_once, "passwords", step_back)
        self._nobodys = ""

    async def hashed(self, password: str) -> str:
        """The hash of a password."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._hasher.hash, _normal(password))

    async def matches(self, kept: str, password: str) -> bool:
        """Whether it is the password of a hash; of nobody's (""), which takes as long, it never is."""
        if not self._nobodys:
            self._nobodys = await self.hashed("the password of nobody")
        if len(password) > _LONGEST:
            password = ""
        loop = asyncio.get_running_loop()
        same = await loop.run_in_executor(self._threads, self._same, kept or self._nobodys, _normal(password))
        return same and bool(kept)

    def is_weak(self, kept: str) -> bool:
        """Whether a hash is of less cost than is recommended now."""
        return self._hasher.check_needs_rehash(kept)

    def _same(self, kept: str, password: str) -> bool:
        from argon2.exceptions import InvalidHashError, VerificationError

        try:
            return self._hasher.verify(kept, password)
        except (VerificationError, InvalidHashError):
            return False


def _normal(password: str) -> str:
    """The same letters however a keyboard composes them."""
    return unicodedata.normalize("NFKC", password).encode(errors="replace").decode()


@cache
def _common() -> frozenset[str]:
    return frozenset(gzip.decompress(_COMMON.read_bytes()).decode().split("\n")) - {""}
