"""A passkey signs in whose it is, for one challenge, at one place; an old copy of a device does not."""

from __future__ import annotations

import hashlib
import json
import struct
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import cbor2
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from core.errors import ConflictError, ParlourError
from core.people.passkeys import Challenge, Passkeys, Place
from core.people.people import Known, People, new_person
from core.storage.database import Database
from core.storage.people import PeopleStore

pytestmark = pytest.mark.anyio
HERE = Place("chat.example", "https://chat.example")
_VERIFIED, _WITH_KEY = 0x05, 0x45  # somebody was there, and proved to be the device's owner; the key comes along


def text(value: bytes) -> str:
    return urlsafe_b64encode(value).decode().rstrip("=")


@dataclass
class Device:
    """An authenticator with one key, as small as one can be."""

    origin: str = HERE.origin
    count: int = 0
    id: bytes = b"the only key of it"
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def _said(self, kind: str, options: dict[str, Any]) -> bytes:
        return json.dumps({"type": kind, "challenge": options["challenge"], "origin": self.origin}).encode()

    def _data(self, host: str, flags: int, more: bytes = b"") -> bytes:
        self.count += 1
        return hashlib.sha256(host.encode()).digest() + bytes([flags]) + struct.pack(">I", self.count) + more

    def made(self, options: dict[str, Any]) -> dict[str, Any]:
        """What it answers to being asked for a passkey."""
        public = self.key.public_key().public_numbers()
        cose = {1: 2, 3: -7, -1: 1, -2: public.x.to_bytes(32, "big"), -3: public.y.to_bytes(32, "big")}
        kept = bytes(16) + struct.pack(">H", len(self.id)) + self.id + cbor2.dumps(cose)
        data = self._data(options["rp"]["id"], _WITH_KEY, kept)
        answer = {"clientDataJSON": text(self._said("webauthn.create", options))}
        answer["attestationObject"] = text(cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data}))
        return {"id": text(self.id), "rawId": text(self.id), "type": "public-key", "response": answer}

    def signed(self, options: dict[str, Any]) -> dict[str, Any]:
        """What it answers to being asked to sign in."""
        said, data = self._said("webauthn.get", options), self._data(options["rpId"], _VERIFIED)
        signature = self.key.sign(data + hashlib.sha256(said).digest(), ec.ECDSA(hashes.SHA256()))
        answer = {"clientDataJSON": text(said), "authenticatorData": text(data), "signature": text(signature)}
        return {"id": text(self.id), "rawId": text(self.id), "type": "public-key", "response": answer}


@pytest.fixture
async def people(tmp_path: Path) -> AsyncIterator[People]:
    database = await Database.open(tmp_path / "parlour.db")
    yield People(PeopleStore(database))
    await database.aclose()


async def known(people: People, name: str) -> Known:
    signed_in = await people.open_session(await people.store.add(new_person(name, "member"), "terminal"), browser="")
    return Known(signed_in.person, signed_in.session)


async def with_passkey(people: People, device: Device) -> tuple[Passkeys, Known]:
    passkeys, jan = Passkeys(people), await known(people, "Jan")
    options, challenge = await passkeys.to_add(jan.person, HERE)
    await passkeys.add(jan, device.made(json.loads(options)), challenge, HERE)
    return passkeys, jan


async def test_a_passkey_signs_in_whose_it_is_and_none_that_was_removed(people: People) -> None:
    device = Device()
    passkeys, jan = await with_passkey(people, device)
    options, challenge = passkeys.to_sign_in(HERE)
    assert (await passkeys.signed_in(device.signed(json.loads(options)), challenge, HERE)).id == jan.person.id
    assert list(await people.store.sign_ins_of(jan.person.id, "passkey")) == [text(device.id)]
    await people.store.remove_sign_in("passkey", text(device.id), "somebody else")
    await people.store.remove_sign_in("passkey", text(device.id), jan.person.id)
    options, challenge = passkeys.to_sign_in(HERE)
    with pytest.raises(ParlourError, match="did not prove"):
        await passkeys.signed_in(device.signed(json.loads(options)), challenge, HERE)


async def test_what_was_signed_counts_for_its_challenge_its_place_and_its_time_alone(people: People) -> None:
    device = Device()
    passkeys, _ = await with_passkey(people, device)
    options, challenge = passkeys.to_sign_in(HERE)
    asked = json.loads(options)
    wrong: list[tuple[dict[str, Any], Challenge, Place]] = [
        (device.signed(asked), passkeys.to_sign_in(HERE)[1], HERE),
        (device.signed(asked), replace(challenge, at=time.time() - 301), HERE),
        (device.signed(asked), challenge, Place("evil.example", "https://evil.example")),
        (replace(device, origin="https://evil.example").signed(asked), challenge, HERE),
        (Device().signed(asked), challenge, HERE),  # another key of the same name
        ({**device.signed(asked), "id": "unknown"}, challenge, HERE),
        ({}, challenge, HERE),
        ({"id": ["x"], "response": 7}, challenge, HERE),
    ]
    for signed, about, place in wrong:
        with pytest.raises(ParlourError, match="did not prove"):
            await passkeys.signed_in(signed, about, place)
    await passkeys.signed_in(device.signed(asked), challenge, HERE)
    device.count = 0  # a copy that was made before
    with pytest.raises(ParlourError, match="did not prove"):
        await passkeys.signed_in(device.signed(asked), challenge, HERE)


async def test_nobody_adds_a_passkey_to_another_or_one_that_is_somebodys(people: People) -> None:
    device = Device()
    passkeys, jan = await with_passkey(people, device)
    mara = await known(people, "Mara")
    options, challenge = await passkeys.to_add(jan.person, HERE)
    with pytest.raises(ParlourError, match="did not prove"):
        await passkeys.add(mara, Device(id=b"new").made(json.loads(options)), challenge, HERE)
    options, challenge = await passkeys.to_add(mara.person, HERE)
    with pytest.raises(ConflictError):
        await passkeys.add(mara, device.made(json.loads(options)), challenge, HERE)
