"""What is said of vectors while they are made, and until when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from core.errors import StorageError
from core.reading.preparing import Preparing

pytestmark = pytest.mark.anyio


class Vectors:
    """A library whose vectors are made when a test says so, or never."""

    def __init__(self) -> None:
        self.over = False
        self.open = True
        self.come: dict[str, tuple[int, int]] = {}
        self.followers: list[Callable[[], None]] = []
        self.retriever = self
        self.asked = 0

    def changed(self) -> None:
        self.asked += 1
        self.over = False

    def is_intact(self) -> bool:
        return self.open

    def vectors_idle(self) -> bool:
        return self.over or not self.open

    def vector_progress(self, documents: Collection[str]) -> dict[str, tuple[int, int]]:
        return {one: self.come[one] for one in documents if one in self.come}

    def on_vector_progress(self, callback: Callable[[], None]) -> Callable[[], None]:
        self.followers.append(callback)
        return lambda: self.followers.remove(callback)

    def tell(self) -> None:
        for follower in tuple(self.followers):
            follower()

    def finish(self) -> None:
        """All are made."""
        self.come = {one: (total, total) for one, (_, total) in self.come.items()}
        self.give_up()

    def give_up(self) -> None:
        """Nobody makes any more."""
        self.over = True
        self.tell()


class Shelf:
    """Gives libraries to whoever asks, and counts who has them."""

    def __init__(self, **libraries: Vectors) -> None:
        self.libraries = libraries
        self.lent: list[str] = []
        self.most = 0

    @asynccontextmanager
    async def use(self, owner: str) -> AsyncIterator[Any]:
        self.lent.append(owner)
        self.most = max(self.most, len(self.lent))
        try:
            yield self.libraries[owner]
        finally:
            self.lent.remove(owner)


async def until(holds: Callable[[], bool], change: asyncio.Event, *, or_look: bool = False) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await (asyncio.sleep(0) if or_look else change.wait())
            change.clear()


def watched(**libraries: Vectors) -> tuple[Preparing, Shelf, asyncio.Event, list[str]]:
    """Who watches, the libraries, an event set at each change, and whom it was told of."""
    change, told, shelf = asyncio.Event(), list[str](), Shelf(**libraries)

    def changed(owner: str) -> None:
        told.append(owner)
        change.set()

    return Preparing(cast("Any", shelf.use), changed), shelf, change, told


async def test_documents_wait_until_vectors_are_made_or_none_are_asked_for() -> None:
    library = Vectors()
    preparing, shelf, change, told = watched(alice=library)
    for document in ("one", "two"):
        preparing.watch("alice", document, f"text of {document}")
    assert set(preparing.of("alice")) == {"one", "two"}
    assert not preparing.of("bob")
    library.finish()
    await until(lambda: not preparing.of("alice"), change)
    assert told == ["alice"]
    preparing.watch("alice", "three", "text of three")
    await until(lambda: told == ["alice", "alice"], change)
    await preparing.aclose()
    assert not shelf.lent
    assert not library.followers


async def test_nobody_waits_when_the_house_closes() -> None:
    library = Vectors()
    preparing, shelf, change, _ = watched(alice=library)
    preparing.watch("alice", "one", "text of one")
    await preparing.aclose()
    await until(lambda: not preparing.of("alice"), change)
    library.finish()
    library.come = {"late": (1, 2)}
    await preparing.resume("alice", cast("Any", library), {"two": "late"})  # its opening came to its end after that
    assert not preparing.of("alice")
    assert not shelf.lent


async def test_a_document_that_comes_while_how_far_it_is_was_asked_waits_for_the_next_look() -> None:
    library = Vectors()
    preparing, _, change, _ = watched(alice=library)
    library.come = {"text of one": (2, 2), "text of two": (1, 2)}
    looked, made = 0, library.retriever.vector_progress

    def look(documents: Collection[str]) -> dict[str, tuple[int, int]]:
        nonlocal looked
        looked += 1
        if looked == 1:
            asyncio.run_coroutine_threadsafe(come(), loop).result()
        return made(documents)

    async def come() -> None:
        preparing.watch("alice", "two", "text of two")
        library.tell()

    loop = asyncio.get_running_loop()
    library.retriever.vector_progress = look  # type: ignore[method-assign]
    preparing.watch("alice", "one", "text of one")
    await until(lambda: "one" not in preparing.of("alice"), change)
    assert set(preparing.of("alice")) == {"two"}
    library.finish()
    await until(lambda: not preparing.of("alice"), change)


async def test_a_library_that_cannot_say_is_waited_for_no_longer(caplog: pytest.LogCaptureFixture) -> None:
    library = Vectors()
    preparing, shelf, change, _ = watched(alice=library)

    def look(_documents: Collection[str]) -> dict[str, tuple[int, int]]:
        raise RuntimeError("closed")

    library.retriever.vector_progress = look  # type: ignore[method-assign]
    preparing.watch("alice", "one", "text of one")
    await until(lambda: not preparing.of("alice"), change)
    assert "closed" in caplog.text
    assert not shelf.lent


async def test_how_many_passages_have_vectors_is_told_and_a_document_that_has_all_waits_no_longer() -> None:
    library = Vectors()
    preparing, _, change, _ = watched(alice=library)
    library.come = {"long text": (1_200, 5_000), "short text": (2, 2)}
    preparing.watch("alice", "long", "long text")
    preparing.watch("alice", "short", "short text")
    assert preparing.of("alice") == {"long": (0, 0), "short": (0, 0)}
    await until(lambda: "short" not in preparing.of("alice"), change)
    assert preparing.of("alice") == {"long": (1_200, 5_000)}
    library.finish()
    await until(lambda: not preparing.of("alice"), change)


async def test_unfinished_libraries_go_on_one_after_another_and_one_that_cannot_be_opened_holds_up_none() -> None:
    change = asyncio.Event()
    begun: list[str] = []
    libraries = {"alice": Vectors(), "carol": Vectors()}

    @asynccontextmanager
    async def opened(owner: str) -> AsyncIterator[Any]:
        if owner not in begun:
            begun.append(owner)
            if owner == "bob":
                raise StorageError("Its folder cannot be used.")
            libraries[owner].come = {"text": (3, 8)}
            await preparing.resume(owner, cast("Any", libraries[owner]), {owner: "text"})
        yield libraries[owner]

    preparing = Preparing(cast("Any", opened), lambda _: change.set())
    going_on = asyncio.create_task(preparing.go_on(["alice", "bob", "carol"]))
    await until(lambda: preparing.of("alice") == {"alice": (3, 8)}, change)
    assert begun == ["alice"]
    libraries["alice"].finish()
    await until(lambda: preparing.of("carol") == {"carol": (3, 8)}, change)
    assert begun == ["alice", "bob", "carol"]
    libraries["carol"].finish()
    async with asyncio.timeout(10):
        await going_on


async def test_what_an_earlier_process_did_not_finish_is_counted_on() -> None:
    library = Vectors()
    preparing, _, change, _ = watched(alice=library)
    library.come = {"long text": (1_200, 5_000), "short text": (2, 2)}
    texts = {"long": "long text", "same": "long text", "short": "short text", "elsewhere": "no text"}
    await preparing.resume("alice", cast("Any", library), texts)
    assert preparing.of("alice") == {"long": (1_200, 5_000), "same": (1_200, 5_000)}
    assert change.is_set()
    library.finish()
    await until(lambda: not preparing.of("alice"), change)
    change.clear()
    library.come = {"long text": (5_000, 5_000)}
    await preparing.resume("alice", cast("Any", library), texts)
    assert not preparing.of("alice")
    assert not change.is_set()


async def test_only_so_many_indices_stay_open_for_their_vectors_and_the_others_have_their_turn() -> None:
    libraries = {f"owner {number}": Vectors() for number in range(5)}
    shelf, change = Shelf(**libraries), asyncio.Event()
    preparing = Preparing(cast("Any", shelf.use), lambda _: change.set(), at_once=2)
    for owner in libraries:
        preparing.watch(owner, "one", "text of one")
    for owner, library in libraries.items():
        assert preparing.of(owner)
        library.finish()
        await until(lambda owner=owner: not preparing.of(owner), change)
    assert shelf.most == 2


async def test_a_library_that_is_closed_and_opened_anew_is_watched_on() -> None:
    first, second = Vectors(), Vectors()
    preparing, shelf, change, _ = watched(alice=first)
    first.come = {"text": (1, 8)}
    preparing.watch("alice", "one", "text")
    async with asyncio.timeout(10):
        while not first.followers:
            await asyncio.sleep(0)
    shelf.libraries["alice"] = second
    second.come = {"text": (8, 8)}
    first.open = False
    first.tell()
    await until(lambda: not preparing.of("alice"), change)
    assert not first.followers


async def held_up(*, is_told: bool = False) -> tuple[Preparing, Vectors, Shelf, asyncio.Event]:
    """A document whose vectors could not be made to the end."""
    library = Vectors()
    change, shelf = asyncio.Event(), Shelf(alice=library)
    preparing = Preparing(cast("Any", shelf.use), lambda _: change.set(), is_told=is_told)
    library.come = {"text": (3, 8)}
    preparing.watch("alice", "one", "text")
    await until(lambda: bool(library.followers), change, or_look=True)
    library.give_up()
    await until(lambda: not shelf.lent, change, or_look=True)
    return preparing, library, shelf, change


async def test_what_could_not_be_made_is_told_and_made_when_its_owner_asks_for_it() -> None:
    preparing, library, shelf, change = await held_up()
    assert preparing.of("alice") == {"one": (3, 8)}
    assert preparing.held_up("alice") == "failed"
    assert not shelf.lent, "its index is not kept open for nothing"
    preparing.try_again("alice")
    assert preparing.held_up("alice") == ""
    await until(lambda: library.asked == 1 and bool(library.followers), change, or_look=True)
    library.finish()
    await until(lambda: not preparing.of("alice"), change)


async def test_what_could_not_be_made_is_tried_again_by_itself_and_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("core.reading.preparing._AGAIN", 0.0)
    _, library, _, change = await held_up()
    await until(lambda: library.asked >= 1, change, or_look=True)
    library.finish()


async def test_of_several_processes_the_one_that_is_told_so_looks_again() -> None:
    preparing, library, shelf, change = await held_up(is_told=True)
    assert preparing.held_up("alice") == ""
    preparing.stand({"alice": "nobody", "bob": "failed"})
    assert (preparing.held_up("alice"), preparing.held_up("bob")) == ("nobody", "")
    assert (library.asked, shelf.lent) == (0, [])
    preparing.stand({"alice": ""})
    assert preparing.held_up("alice") == ""
    await until(lambda: library.asked == 1 and bool(library.followers), change, or_look=True)
    library.finish()
    await until(lambda: not preparing.of("alice"), change)


async def test_a_library_that_is_held_up_lets_the_next_one_go_on() -> None:
    change = asyncio.Event()
    libraries = {"alice": Vectors(), "bob": Vectors()}
    opened: list[str] = []

    @asynccontextmanager
    async def use(owner: str) -> AsyncIterator[Any]:
        if owner not in opened:
            opened.append(owner)
            libraries[owner].come = {"text": (3, 8)}
            await preparing.resume(owner, cast("Any", libraries[owner]), {owner: "text"})
        yield libraries[owner]

    preparing = Preparing(cast("Any", use), lambda _: change.set())
    libraries["alice"].over = True
    going_on = asyncio.create_task(preparing.go_on(["alice", "bob"]))
    await until(lambda: opened == ["alice", "bob"], change)
    libraries["bob"].finish()
    async with asyncio.timeout(10):
        await going_on
    await preparing.aclose()
    assert not preparing.of("alice")


async def test_how_far_a_text_has_come_is_each_owners_own_and_is_not_lost_where_another_has_it_too() -> None:
    hers, his = Vectors(), Vectors()
    preparing, _, change, _ = watched(alice=hers, bob=his)
    hers.come, his.come = {"text": (8, 11)}, {"text": (10, 11)}
    preparing.watch("alice", "one", "text")
    await until(lambda: preparing.of("alice") == {"one": (8, 11)}, change, or_look=True)
    preparing.watch("bob", "two", "text")
    assert preparing.of("bob") == {"two": (0, 0)}
    await until(lambda: preparing.of("bob") == {"two": (10, 11)}, change, or_look=True)
    assert preparing.of("alice") == {"one": (8, 11)}
    his.finish()
    await until(lambda: not preparing.of("bob"), change)
    assert preparing.of("alice") == {"one": (8, 11)}
    hers.finish()
    await until(lambda: not preparing.of("alice"), change)


async def test_what_changes_while_it_is_asked_how_far_they_are_keeps_what_is_known_of_it() -> None:
    library = Vectors()
    preparing, _, change, _ = watched(alice=library)
    library.come = {"old text": (11, 11), "text": (11, 11)}
    looked, look = 0, library.vector_progress

    def late(documents: Collection[str]) -> dict[str, tuple[int, int]]:
        nonlocal looked
        looked += 1
        if looked == 1:  # one was read anew, the other one's text came a second time
            asyncio.run_coroutine_threadsafe(come(), loop).result()
            return look(documents)
        return dict.fromkeys(documents, (3, 11))

    async def come() -> None:
        preparing.watch("alice", "one", "new text")
        preparing.watch("alice", "again", "text")

    loop = asyncio.get_running_loop()
    library.vector_progress = late  # type: ignore[method-assign]
    preparing.watch("alice", "one", "old text")
    preparing.watch("alice", "two", "text")
    await until(lambda: "two" not in preparing.of("alice"), change)
    assert preparing.of("alice") == {"one": (0, 0), "again": (11, 11)}
    library.tell()
    await until(lambda: preparing.of("alice") == {"one": (3, 11), "again": (3, 11)}, change, or_look=True)
    library.vector_progress = look  # type: ignore[method-assign]
    library.finish()
    await until(lambda: not preparing.of("alice"), change)


async def test_a_look_that_took_long_takes_back_nothing_of_what_was_seen_since() -> None:
    library = Vectors()
    preparing, _, change, _ = watched(alice=library)
    library.come = {"text": (8, 11)}
    preparing.watch("alice", "one", "text")
    await until(lambda: preparing.of("alice") == {"one": (8, 11)}, change, or_look=True)
    late = Vectors()
    late.come = {"text": (0, 11)}
    await preparing.resume("alice", cast("Any", late), {"one": "text"})
    assert preparing.of("alice") == {"one": (8, 11)}
    library.finish()
    await until(lambda: not preparing.of("alice"), change)
