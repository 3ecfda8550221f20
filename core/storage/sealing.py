"""Seals secrets in the database (AES-GCM, keyed by the installation's secret), and finds keys in what owners typed."""

from __future__ import annotations

import hmac
import os
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from core.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cryptography.hazmat.primitives.ciphers.aead import AESGCM


_NONCE = 12
_SHOWN = 4
_LONG_ENOUGH = 12  # of a shorter secret, its last four characters would be too much
_FORM = "1."  # says how it was sealed, should that ever change


class Sealer:
    """Seals and opens short texts. A sealed text opens only at its own place, so rows cannot be swapped.

    Args:
        secret: The installation's; another key is derived from it, so that it can sign cookies as well.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def seal(self, text: str, *place: str) -> str:
        """The text, unreadable.

        Args:
            place: Names where it is kept, such as its owner; it must be the same to open it.
        """
        nonce = os.urandom(_NONCE)
        sealed = self._cipher.encrypt(nonce, text.encode(), _bound(place))
        return _FORM + urlsafe_b64encode(nonce + sealed).decode("ascii")

    def open(self, sealed: str, *place: str) -> str:
        """The text again.

        Raises:
            StorageError: key `key_unreadable`: it was sealed with another secret or for another place, or is damaged.
        """
        from cryptography.exceptions import InvalidTag

        try:
            raw = urlsafe_b64decode(sealed.removeprefix(_FORM))
            return self._cipher.decrypt(raw[:_NONCE], raw[_NONCE:], _bound(place)).decode()
        except (ValueError, InvalidTag):
            # Without its cause: nothing of what was sealed may end up in a log.
            hint = "Type the key again: the installation's secret has changed."
            raise StorageError("A kept key cannot be read.", hint=hint, key="key_unreadable") from None

    def mark(self, *parts: str) -> str:
        """A short name of something secret: the same for the same, and nobody without the secret can guess from it."""
        return hmac.new(f"parlour marks {self._secret}".encode(), _bound(parts), sha256).hexdigest()[:10]

    @cached_property
    def _cipher(self) -> AESGCM:
        # Imported here: most houses are opened without a key to seal.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        return AESGCM(HKDF(SHA256(), 32, salt=None, info=b"parlour model keys").derive(self._secret.encode()))


def end_of(secret: str) -> str:
    """What may be shown of a secret, so that its owner knows it again; nothing of a short one."""
    return secret[-_SHOWN:] if len(secret) >= _LONG_ENOUGH else ""


def _bound(place: tuple[str, ...]) -> bytes:
    """The names of a place as bytes; their lengths keep neighbours apart."""
    return b"".join(len(name.encode()).to_bytes(4, "big") + name.encode() for name in place)


_CALLED_KEY: Final = re.compile(r"key|token|secret|pass|cred|auth|cookie|session", re.IGNORECASE)
_NO_KEY: Final = re.compile(
    r"[A-Za-z]*|[\d.:]+|[a-z]{2}_[A-Z]{2}(?:\.[\w-]+)?|(?:~|\.{1,2})?/\S*|[A-Za-z]:\\\S*|https?://[^\s@?]+|[\w.+*-]+/[\w.+*-]+"
)
_ASSIGNED: Final = re.compile(r"-*(?P<name>[\w.-]+)(?:=|:\s*)(?P<value>.*)", re.DOTALL)
_RANDOM: Final = re.compile(  # and neither a package with its version nor the name of a model
    r"(?=.*\d)(?=.*[A-Za-z])\w{16,}|(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[\w-]{24,}|[\da-fA-F]{8}(?:-[\da-fA-F]{4}){3}-[\da-fA-F]{12}"
)


def secrets_in_pairs(pairs: Iterable[tuple[object, object]]) -> list[str]:
    """The values that may be keys: more than a word, a number, a place or a language, or called one."""
    named = ((str(name), str(value)) for name, value in pairs)
    return [value for name, value in named if _CALLED_KEY.search(name) or _NO_KEY.fullmatch(value) is None]


def in_address(address: str) -> list[str]:
    """Those of an address: who asks there, values of its query, and parts of its path that nobody could guess."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return []
    found = [unquote(one) for one in (parts.password or parts.username,) if one]
    found += secrets_in_pairs(parse_qsl(parts.query))
    return [*found, *(part for part in parts.path.split("/") if _RANDOM.fullmatch(part))]


def in_arguments(arguments: Sequence[object]) -> list[str]:
    """Those of a command line: what follows an option that is called so, or is assigned to such a name."""
    given = [str(one) for one in arguments]
    found = [value for option, value in pairwise(given) if option.startswith("-") and _CALLED_KEY.search(option)]
    for one in given:
        assigned = _ASSIGNED.fullmatch(one)
        if assigned is not None and _CALLED_KEY.search(assigned["name"]):
            found.append(assigned["value"])
        found += in_address(one) if "://" in one else [one] if _RANDOM.fullmatch(one) else []
    return [one for one in found if not one.startswith("-")]
