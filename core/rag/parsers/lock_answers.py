"""What is said of a file that stays closed."""

from __future__ import annotations

from core.errors import LockedDocumentError


def unknown() -> LockedDocumentError:
    """Nothing here knows how it is encrypted."""
    return LockedDocumentError(
        "The file is encrypted in a way that is not known.", hint="Save a copy without a password."
    )


def wrong() -> LockedDocumentError:
    """It was another password."""
    return LockedDocumentError(
        "The password does not open the file.", key="document_password_wrong", hint="Type it as it was given to you."
    )
