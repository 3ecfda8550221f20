"""Names that look alike are one name; passwords that are tried first will not do, and wrong ones are counted."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from typing import Literal

import pytest
from argon2 import PasswordHasher, extract_parameters
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ParlourError, TooManyRequestsError
from core.people.names import checked_name, name_key
from core.people.passwords import Passwords, check_password
from core.people.tries import OF_ADDRESS, OF_BOTH, OF_NAME, WITHIN, Tries

LIKE_JAN = ["jan", "JAN", " Jan ", "Ｊａｎ", "ja\u200bn", "j\u0430n", "jan\u202e", "\u0458an"]


@pytest.mark.parametrize("name", LIKE_JAN)
def test_names_that_differ_by_case_width_or_lookalikes_are_the_same_name(name: str) -> None:
    assert name_key(name) == name_key("jan")


@pytest.mark.parametrize(("one", "other"), [("jan", "jana"), ("李伟", "李玮"), ("jose", "josé"), ("Straße", "strase")])
def test_other_names_stay_apart(one: str, other: str) -> None:
    assert name_key(one) != name_key(other)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        *(("", "name_empty"), (" \t ", "name_empty"), ("a" * 65, "name_long"), ("x" * 1_000_000, "name_long")),
        *(("j\u0430n", "name_odd"), ("a\u202eb", "name_odd"), ("a\0b", "name_odd"), ("a\ud800", "name_odd")),
        ("a\u200bb", "name_odd"),
    ],
)
def test_a_name_that_could_deceive_is_refused(name: str, key: str) -> None:
    with pytest.raises(ParlourError) as refused:
        checked_name(name)
    assert refused.value.words_key == key


@pytest.mark.parametrize("name", ["Jan Hinrichs", "李伟", "José", "Ｊａｎ", "Ольга", "Ἀθηνᾶ", "O’Brien", "jan_2"])
def test_names_of_one_script_are_fine(name: str) -> None:
    assert name_key(checked_name(name)) == name_key(name)


@given(st.text())
def test_any_text_has_a_key_that_can_be_stored(text: str) -> None:
    name_key(text).encode()


@pytest.mark.parametrize(
    ("password", "key"),
    [
        *(("short", "password_short"), ("elevenchars", "password_short"), ("x" * 1_000_000, "password_long")),
        *(
            ("password1234", "password_common"),
            ("!!Password!!", "password_common"),
            ("qwertyqwerty", "password_common"),
        ),
        *(
            ("123456789012", "password_common"),
            ("aaaaaaaaaaaa", "password_common"),
            ("janhinrichs1", "password_common"),
        ),
        ("ｐａｓｓｗｏｒｄ１２３４", "password_common"),
    ],
)
def test_passwords_that_are_tried_first_are_refused(password: str, key: str) -> None:
    with pytest.raises(ParlourError) as refused:
        check_password(password, "JanHinrichs")
    assert refused.value.words_key == key


@pytest.mark.parametrize(
    "password", ["a sentence is good", "correct horse battery", "Tr0ub4dor&3xyz", "密码是一句很长的话而已呀"]
)
def test_a_sentence_will_do(password: str) -> None:
    check_password(password, "jan")


@pytest.mark.anyio
async def test_an_unknown_name_takes_as_long_as_a_wrong_password() -> None:
    compared: list[object] = []

    class Hasher(PasswordHasher):
        def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:
            compared.append((extract_parameters(str(hash)), password))
            return super().verify(hash, password)

    passwords = Passwords(Hasher(1, 8192, 1))
    kept = await passwords.hashed("a sentence is good")
    assert await passwords.matches(kept, "a sentence is good")
    compared.clear()
    for known in (kept, ""):
        assert not await passwords.matches(known, "another sentence")
    one, other = compared  # with a hash of the same cost each time
    assert one == other
    assert not await passwords.matches("", "the password of nobody")
    assert not await passwords.matches("no hash", "x" * 1_000_000)


@pytest.mark.anyio
async def test_few_passwords_are_hashed_at_once_by_threads_that_let_others_go_first() -> None:
    at_work, counted, niceness = threading.BoundedSemaphore(2), threading.Lock(), list[int]()
    beyond: list[str] = []

    class Hasher(PasswordHasher):
        def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
            if not at_work.acquire(blocking=False):
                beyond.append(str(password))
                return ""
            try:
                with counted:
                    niceness.append(os.getpriority(os.PRIO_PROCESS, 0))
                return super().hash(password, salt=salt)
            finally:
                at_work.release()

    passwords = Passwords(Hasher(1, 8192, 1))
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    made = await asyncio.gather(*(passwords.hashed(f"a sentence is good {number}") for number in range(12)))
    assert (len(set(made)), beyond) == (12, [])
    assert os.getpriority(os.PRIO_PROCESS, 0) == mine, "whoever waits goes on as before"
    if sys.platform == "linux":
        assert set(niceness) == {min(19, mine + 5)}


@pytest.mark.anyio
async def test_a_hash_has_the_cost_that_is_recommended() -> None:
    passwords = Passwords()
    kept = await passwords.hashed("a sentence is good")
    assert kept.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert not passwords.is_weak(kept)
    assert passwords.is_weak(PasswordHasher(1, 8, 1).hash("a sentence is good"))


def test_wrong_passwords_are_counted_by_name_by_address_and_by_both_and_right_ones_are_not() -> None:
    now = 0.0
    tries = Tries(lambda: now)

    def fails(name: str, address: str, count: int) -> None:
        for _ in range(count):
            tries.begin_now(name, address)
        with pytest.raises(TooManyRequestsError):
            tries.begin_now(name, address)

    fails("jan", "a", OF_BOTH)
    for _ in range(2 * OF_ADDRESS):  # a whole office signs in
        tries.begin_now("mara", "b")
        tries.was_right_now("mara", "b")
    for number in range(OF_ADDRESS):  # one password at every name
        tries.begin_now(f"name {number}", "sprays")
    with pytest.raises(TooManyRequestsError):
        tries.begin_now("mara", "sprays")
    for number in range(OF_NAME):  # one name from everywhere
        tries.begin_now("tom", f"from {number}")
    with pytest.raises(TooManyRequestsError) as refused:
        tries.begin_now("tom", "another")
    assert 0 < refused.value.retry_after <= WITHIN
    now = WITHIN + 1
    tries.begin_now("tom", "another")


@pytest.mark.parametrize("typed", ["terminal", " TERMINAL", "ｔｅｒｍｉｎａｌ"])
def test_nobody_is_called_as_the_terminal_is_in_the_audit(typed: str) -> None:
    with pytest.raises(ParlourError) as refused:
        checked_name(typed)
    assert refused.value.words_key == "name_odd"


def test_where_many_share_an_address_the_name_alone_is_counted() -> None:
    tries = Tries(lambda: 0.0)
    for number in range(2 * OF_ADDRESS):
        tries.begin_now(f"name {number}", "")
    for _ in range(OF_NAME):
        tries.begin_now("jan", "")
    with pytest.raises(TooManyRequestsError):
        tries.begin_now("jan", "")
