"""A line to a Redis: many commands go out together, and their answers are read with little work for each."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from core.errors import extra_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CONNECT: Final = 1.0  # seconds
_PATIENCE: Final = 5.0
_PIECE: Final = 1 << 16
_END: Final = b"\r\n"
_LIST, _TEXT, _NUMBER, _ERROR = b"*$:-"


class RedisLine:
    """One connection, made at the first command and again where it broke; the client's own package makes it.

    Its own way through an answer takes some 20 µs for each small part, of which an entry of a stream has eight.

    Args:
        url: The address of the server.

    Raises:
        MissingExtraError: What speaks to it is not installed.
        ValueError: It is no address of a Redis.
    """

    def __init__(self, url: str) -> None:
        with extra_for("Redis"):
            from redis.asyncio import Redis
        made: Any = Redis
        options = {"socket_connect_timeout": _CONNECT, "socket_timeout": _PATIENCE}
        self._pool: Any = made.from_url(url, protocol=2, **options).connection_pool
        self._connection: Any = None

    async def ask(self, commands: Sequence[bytes]) -> list[Any]:
        """Send commands, as `packed`; their answers, an error of one as a `ResponseError` in its place.

        Raises:
            RedisError: The server lets nobody in, or speaks otherwise.
            OSError: It is gone, or says nothing.
        """
        is_old = self._connection is not None
        try:
            return await self._asked(commands)
        except EOFError as error:  # it hung up while nothing was asked
            if is_old:
                with suppress(EOFError):
                    return await self._asked(commands)
            raise ConnectionResetError("Redis has closed the connection.") from error

    async def _asked(self, commands: Sequence[bytes]) -> list[Any]:
        try:
            async with asyncio.timeout(_PATIENCE):
                if self._connection is None:
                    self._connection = connection = self._pool.make_connection()
                    await connection.connect()
                self._connection._writer.write(b"".join(commands))  # noqa: SLF001 - past its own parser
                return await self._answers(self._connection._reader, len(commands))  # noqa: SLF001
        except ConnectionError as error:
            await self.aclose()
            raise EOFError from error
        except BaseException:
            await self.aclose()  # an answer may be on its way still
            raise

    async def _answers(self, reader: asyncio.StreamReader, count: int) -> list[Any]:
        data, answers, at = b"", list[Any](), 0
        while True:
            piece = await reader.read(_PIECE)
            if not piece:
                raise EOFError
            data += piece
            with suppress(IndexError, ValueError):  # there is more to come
                while len(answers) < count:
                    answer, at = _parsed(data, at)
                    answers.append(answer)
                return answers

    async def aclose(self) -> None:
        """Close the connection; the next command makes another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                await connection.disconnect(nowait=True)


def packed(*words: bytes) -> bytes:
    """A command, as it goes over the line."""
    return b"*%d\r\n%b" % (len(words), bulk(words))


def bulk(words: Iterable[bytes]) -> bytes:
    """Words of a command, as they go over the line."""
    return b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in words])


def _parsed(data: bytes, at: int) -> tuple[Any, int]:
    """An answer that begins there, and where the next one does. Raises IndexError, ValueError: it is not whole yet."""
    kind, end = data[at], data.index(_END, at)
    value, at = data[at + 1 : end], end + 2
    if kind == _TEXT:
        size = int(value)
        if size < 0:
            return None, at
        end = at + size
        if len(data) < end + 2:
            raise IndexError
        return data[at:end], end + 2
    if kind == _LIST:
        found: list[Any] = []
        for _ in range(int(value)):
            one, at = _parsed(data, at)
            found.append(one)
        return (None if value == b"-1" else found), at
    if kind == _NUMBER:
        return int(value), at
    if kind == _ERROR:
        from redis.exceptions import ResponseError

        return ResponseError(value.decode(errors="replace")), at
    return value, at
