"""Decrypts Office files with a password, old and new ones, through msoffcrypto-tool. Runs in the worker only."""

from __future__ import annotations

import io
import struct
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO
from xml.parsers.expat import ExpatError

from core.errors import BrokenDocumentError, LockedDocumentError

if TYPE_CHECKING:
    from pathlib import Path

_MOST_SPINS = 1_000_000  # of the password's hash; programs write 100,000, the format allows ten times as many as this
_LONGEST_XOR = 15  # characters of a password that the oldest method knows
_OLD = (
    ("Workbook", "xls97", "Xls97File"),
    ("WordDocument", "doc97", "Doc97File"),
    ("PowerPoint Document", "ppt97", "Ppt97File"),
)
_VERIFIED_HASHES = frozenset({"SHA256", "SHA384", "SHA512"})
# What the libraries raise of damage; `AssertionError` where they check the format so.
_DAMAGE = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, AssertionError, EOFError),
    *(struct.error, ExpatError, RecursionError),
)


def unlock(path: Path, target: Path, password: str) -> bool:
    """Write a decrypted copy of an Office file.

    Args:
        password: Opens the file.

    Returns:
        Whether the file is encrypted; nothing is written if not.

    Raises:
        LockedDocumentError: The password is another one (key `document_password_wrong`), or the encryption is unknown.
        BrokenDocumentError: The file is damaged.
        OSError: The copy cannot be written.
    """
    plain = io.BytesIO()
    errors = import_module("msoffcrypto.exceptions")
    try:
        with path.open("rb") as file:
            document = _opened(file)
            if document is None or not document.is_encrypted():
                return False
            _decrypt(document, password, plain)
    except (errors.InvalidKeyError, UnicodeEncodeError) as error:
        raise LockedDocumentError(
            "The password does not open the file.",
            key="document_password_wrong",
            hint="Type it as it was given to you.",
        ) from error
    except errors.DecryptionError as error:
        raise LockedDocumentError(
            "The file is encrypted in a way that is not known.", hint="Save a copy without a password."
        ) from error
    except (errors.FileFormatError, errors.ParseError, *_DAMAGE) as error:
        raise BrokenDocumentError("The file is damaged: it cannot be decrypted.") from error
    target.write_bytes(plain.getbuffer())
    return True


def is_encrypted(path: Path) -> bool:
    """Whether an Office 97 container asks for a password; false for a damaged one."""
    errors = import_module("msoffcrypto.exceptions")
    try:
        with path.open("rb") as file:
            document = _opened(file)
            return document is not None and bool(document.is_encrypted())
    except (errors.DecryptionError, errors.FileFormatError, errors.ParseError, *_DAMAGE):
        return False


def _opened(file: BinaryIO) -> Any | None:
    """The library's document; `None` for a container of something else, such as a letter."""
    container = import_module("olefile").OleFileIO(file)
    if container.exists("EncryptionInfo"):
        return import_module("msoffcrypto.format.ooxml").OOXMLFile(file)
    for stream, module, kind in _OLD:
        if container.exists(stream):
            return getattr(import_module(f"msoffcrypto.format.{module}"), kind)(file)
    return None


def _decrypt(document: Any, password: str, plain: BinaryIO) -> None:
    """Write what is inside; raises the library's `InvalidKeyError` for another password."""
    errors = import_module("msoffcrypto.exceptions")
    is_verified = True
    if document.format != "ooxml":
        document.load_key(password)
        if document.type == "xor" and (len(password) > _LONGEST_XOR or max(map(ord, password)) > 0xFF):
            raise errors.InvalidKeyError
    elif document.type == "agile":
        if document.info["spinValue"] > _MOST_SPINS:
            raise ValueError(document.info["spinValue"])
        # The library compares SHA-1, as Office 2010 has it, with the padding around it: it would refuse any password.
        is_verified = document.info["passwordHashAlgorithm"] in _VERIFIED_HASHES
        document.load_key(password, verify_password=is_verified)
    else:
        document.load_key(password, verify_password=True)
    try:
        document.decrypt(plain)
    except errors.InvalidKeyError as error:  # it is no archive that comes out
        if is_verified:
            raise ValueError(document.type) from error
        raise
