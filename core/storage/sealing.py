"""Seals what nobody may read in the database: AES-GCM, with a key that is derived from the installation's secret."""

from __future__ import annotations

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import cached_property
from typing import TYPE_CHECKING

from core.errors import StorageError

if TYPE_CHECKING:
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
            text: What to seal.
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
