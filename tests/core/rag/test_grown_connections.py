"""What a process knows of the server that holds passages, and how its failures are told."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from core.errors import StorageError
from core.rag.grown import connections as module
from core.rag.grown.connections import Connections


@pytest.fixture
def connections() -> Iterator[Connections]:
    made = Connections("postgresql://nobody@127.0.0.1:1/nothing")
    yield made
    made.close()


def test_that_vectors_cannot_be_had_at_one_moment_is_not_kept_until_the_next_start(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, found = [100.0], [None, True]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(connections, "_prepared", lambda: found.pop(0))
    assert not connections.has_vectors()
    assert not connections.has_vectors()  # looked for once
    assert found == [True]
    now[0] += 60.0
    assert connections.has_vectors()
    assert connections.has_vectors()


@pytest.mark.parametrize(
    ("error", "key"),
    [
        (psycopg.OperationalError("server closed the connection unexpectedly"), "storage_gone"),
        (psycopg.errors.LockNotAvailable("canceling statement due to lock timeout"), "storage_busy"),
        (psycopg.errors.TooManyConnections("sorry, too many clients already"), "storage_crowded"),
        (psycopg.errors.ReadOnlySqlTransaction("cannot execute INSERT"), "storage_read_only"),
    ],
)
def test_a_failure_of_the_server_has_the_words_that_fit(error: psycopg.Error, key: str) -> None:
    translated = module._translated  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(StorageError) as caught, translated():
        raise error
    assert caught.value.words_key == key
