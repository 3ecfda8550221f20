"""Passkeys: a device of a person's proves who they are, by a signature over a challenge that counts once."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from core.errors import ParlourError, extra_for
from core.storage.people import PASSKEY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.people.people import Known, People
    from core.storage.people import Person

ISSUER: Final = PASSKEY
"""What passkeys are kept under, among the other ways in."""
MOST: Final = 20
_LASTS: Final = 300.0


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a device has to sign; the browser keeps it meanwhile, signed.

    Args:
        value: Base64, for addresses.
        at: When it was made, in Unix seconds.
        person_id: Whose passkey is to be added; "" for signing in.
    """

    value: str
    at: float
    person_id: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the page stands: a passkey is for one host alone.

    Args:
        host: Without a port.
        origin: With scheme and port.
    """

    host: str
    origin: str


class Passkeys:
    """The passkeys of all people."""

    def __init__(self, people: People) -> None:
        self._people = people

    async def to_add(self, person: Person, place: Place) -> tuple[str, Challenge]:
        """What the browser makes a passkey of, as JSON. Raises ParlourError (key `passkeys_many`)."""
        with extra_for("Passkeys"):
            import webauthn
            from webauthn.helpers import structs

        kept = await self._people.store.sign_ins_of(person.id, ISSUER)
        if len(kept) >= MOST:
            raise ParlourError("There are too many passkeys.", hint="Remove one.", key="passkeys_many")
        options = webauthn.generate_registration_options(
            rp_id=place.host,
            rp_name="Parlour",
            user_name=person.name,
            user_id=person.id.encode(),
            authenticator_selection=structs.AuthenticatorSelectionCriteria(
                resident_key=structs.ResidentKeyRequirement.REQUIRED,
                user_verification=structs.UserVerificationRequirement.REQUIRED,
            ),
            exclude_credentials=[structs.PublicKeyCredentialDescriptor(id=_bytes(one)) for one in kept],
        )
        return webauthn.options_to_json(options), Challenge(_text(options.challenge), time.time(), person.id)

    async def add(self, known: Known, given: Mapping[str, Any], challenge: Challenge, place: Place) -> None:
        """Keep the passkey that a device made for who is signed in.

        Raises:
            ConflictError: It is somebody's already.
            ParlourError: key `passkey_wrong`: it is not for this place, this person or this challenge, or too late.
        """
        import webauthn
        from webauthn.helpers.exceptions import WebAuthnException

        if challenge.person_id != known.person.id:
            raise _wrong()
        try:
            made = webauthn.verify_registration_response(
                credential=json.dumps(given),
                expected_challenge=_live(challenge),
                expected_rp_id=place.host,
                expected_origin=place.origin,
                require_user_verification=True,
            )
        except (WebAuthnException, ValueError, TypeError, KeyError) as error:
            raise _wrong() from error
        data = {"key": _text(made.credential_public_key), "count": made.sign_count, "browser": known.session.browser}
        await self._people.store.add_sign_in(ISSUER, _text(made.credential_id), known.person.id, data)

    def to_sign_in(self, place: Place) -> tuple[str, Challenge]:
        """What a device is asked to sign, as JSON; it knows itself whose passkeys it has for this place."""
        with extra_for("Passkeys"):
            import webauthn
            from webauthn.helpers import structs

        options = webauthn.generate_authentication_options(
            rp_id=place.host, user_verification=structs.UserVerificationRequirement.REQUIRED
        )
        return webauthn.options_to_json(options), Challenge(_text(options.challenge), time.time())

    async def signed_in(self, given: Mapping[str, Any], challenge: Challenge, place: Place) -> Person:
        """Who proved to be themselves.

        Raises:
            ParlourError: key `passkey_wrong`: nobody's, or not for this place and challenge, or an old copy of it.
        """
        import webauthn
        from webauthn.helpers.exceptions import WebAuthnException

        subject, store = given.get("id"), self._people.store
        if not isinstance(subject, str) or challenge.person_id:  # that one was for adding a passkey
            raise _wrong()
        found = await store.signed_in_as(ISSUER, subject)
        if found is None:
            raise _wrong()
        person, data = found
        try:
            done = webauthn.verify_authentication_response(
                credential=json.dumps(given),
                expected_challenge=_live(challenge),
                expected_rp_id=place.host,
                expected_origin=place.origin,
                credential_public_key=_bytes(str(data["key"])),
                credential_current_sign_count=int(data["count"]),
                require_user_verification=True,
            )
        except (WebAuthnException, ValueError, TypeError, KeyError) as error:
            raise _wrong() from error
        await store.change_sign_in(ISSUER, subject, {**data, "count": done.new_sign_count})
        return person


def _live(challenge: Challenge) -> bytes:
    """Raises ParlourError where it is too late."""
    if not 0 <= time.time() - challenge.at <= _LASTS:
        raise _wrong()
    return _bytes(challenge.value)


def _text(value: bytes) -> str:
    return urlsafe_b64encode(value).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _wrong() -> ParlourError:
    hint = "Try again, or sign in by name and password."
    return ParlourError("This passkey did not prove who you are.", hint=hint, key="passkey_wrong")
