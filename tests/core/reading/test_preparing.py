"""What is said of vectors while they are made, and until when."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection
from typing import Any, cast

import pytest

from core.errors import StorageError
from core.reading.preparing import Preparing

pytestmark = pytest.mark.anyio


class Vectors:
    """A library whose vectors are made when a test says so, or never."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.made = True
        self.come: dict[str, tuple[int, int]] = {}

    def wait_for_vectors(self, seconds: float) -> bool:
        return self.over.wait(seconds) and self.made

    def vectors_made(self, documents: Collection[str]) -> dict[str, tuple[int, int]]:
        return {one: self.come[one] for one in documents if one in self.come}


async def until(holds: Callable[[], bool], change: asyncio.Event) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await change.wait()
            change.clear()


@pytest.mark.parametrize("made", [True, False])
async def test_documents_wait_until_vectors_are_made_or_will_not_be(*, made: bool) -> None:
    told: list[str] = []
    change = asyncio.Event()

    def changed(owner: str) -> None:
        told.append(owner)
        change.set()

    library, preparing = Vectors(), Preparing(changed)
    library.made = made
    for document in ("one", "two"):
        preparing.watch("alice", document, cast("Any", library), f"text of {document}")
    assert set(preparing.of("alice")) == {"one", "two"}
    assert not preparing.of("bob")
    library.over.set()
    await until(lambda: not preparing.of("alice"), change)
    assert told == ["alice"]
    preparing.watch("alice", "three", cast("Any", library), "text of three")
    await until(lambda: told == ["alice", "alice"], change)


async def test_nobody_waits_when_the_house_closes() -> None:
    change = asyncio.Event()
    library, preparing = Vectors(), Preparing(lambda _: change.set())
    preparing.watch("alice", "one", cast("Any", library), "text of one")
    await preparing.aclose()
    await until(lambda: not preparing.of("alice"), change)
    library.over.set()
    library.come = {"late": (1, 2)}
    await preparing.resume("alice", cast("Any", library), {"two": "late"})  # its opening came to its end after that
    assert not preparing.of("alice")


async def test_a_document_that_comes_when_all_was_just_said_to_be_made_waits_for_the_next_look() -> None:
    change = asyncio.Event()
    looks = 0
    library, preparing = Vectors(), Preparing(lambda _: change.set())

    def look(seconds: float) -> bool:
        nonlocal looks
        looks += 1
        if looks == 1:
            asyncio.run_coroutine_threadsafe(come(), loop).result()
            return True
        return library.over.wait(seconds)

    async def come() -> None:
        preparing.watch("alice", "two", cast("Any", library), "text of two")

    loop = asyncio.get_running_loop()
    library.wait_for_vectors = look  # type: ignore[method-assign]
    preparing.watch("alice", "one", cast("Any", library), "text of one")
    await until(lambda: "one" not in preparing.of("alice"), change)
    assert set(preparing.of("alice")) == {"two"}
    library.over.set()
    await until(lambda: not preparing.of("alice"), change)


async def test_a_library_that_cannot_say_is_waited_for_no_longer(caplog: pytest.LogCaptureFixture) -> None:
    change = asyncio.Event()
    library, preparing = Vectors(), Preparing(lambda _: change.set())

    def look(_seconds: float) -> bool:
        raise RuntimeError("closed")

    library.wait_for_vectors = look  # type: ignore[method-assign]
    preparing.watch("alice", "one", cast("Any", library), "text of one")
    await until(lambda: not preparing.of("alice"), change)
    assert "closed" in caplog.text


async def test_how_many_passages_have_vectors_is_told_and_a_document_that_has_all_waits_no_longer() -> None:
    change = asyncio.Event()
    library, preparing = Vectors(), Preparing(lambda _: change.set())
    library.come = {"long text": (1_200, 5_000), "short text": (1, 2)}
    preparing.watch("alice", "long", cast("Any", library), "long text")
    preparing.watch("alice", "short", cast("Any", library), "short text")
    assert preparing.of("alice") == {"long": (0, 0), "short": (0, 0)}
    library.come["short text"] = (2, 2)
    await until(lambda: "short" not in preparing.of("alice"), change)
    assert preparing.of("alice") == {"long": (1_200, 5_000)}
    library.over.set()
    await until(lambda: not preparing.of("alice"), change)


async def test_unfinished_libraries_go_on_one_after_another_and_one_that_cannot_be_opened_holds_up_none() -> None:
    change = asyncio.Event()
    begun: list[str] = []
    libraries = {"alice": Vectors(), "carol": Vectors()}
    preparing = Preparing(lambda _: change.set())

    async def opened(owner: str) -> Any:
        begun.append(owner)
        if owner == "bob":
            raise StorageError("Its folder cannot be used.")
        libraries[owner].come = {"text": (3, 8)}
        await preparing.resume(owner, cast("Any", libraries[owner]), {owner: "text"})

    going_on = asyncio.create_task(preparing.go_on(["alice", "bob", "carol"], opened))
    await until(lambda: preparing.of("alice") == {"alice": (3, 8)}, change)
    assert begun == ["alice"]
    libraries["alice"].over.set()
    await until(lambda: preparing.of("carol") == {"carol": (3, 8)}, change)
    assert begun == ["alice", "bob", "carol"]
    libraries["carol"].over.set()
    async with asyncio.timeout(10):
        await going_on


async def test_what_an_earlier_process_did_not_finish_is_counted_on() -> None:
    change = asyncio.Event()
    library, preparing = Vectors(), Preparing(lambda _: change.set())
    library.come = {"long text": (1_200, 5_000), "short text": (2, 2)}
    texts = {"long": "long text", "same": "long text", "short": "short text", "elsewhere": "no text"}
    await preparing.resume("alice", cast("Any", library), texts)
    assert preparing.of("alice") == {"long": (1_200, 5_000), "same": (1_200, 5_000)}
    assert change.is_set()
    library.over.set()
    await until(lambda: not preparing.of("alice"), change)
    change.clear()
    library.come = {"long text": (5_000, 5_000)}
    await preparing.resume("alice", cast("Any", library), texts)
    assert not preparing.of("alice")
    assert not change.is_set()
