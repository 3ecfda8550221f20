"""The servers that tests of several Parlours use are real ones."""

from __future__ import annotations

import socket
from collections.abc import Callable
from urllib.parse import urlsplit

import httpx

from tests.grown_servers import Served
from tests.ports import free_port


def told(address: str, command: str) -> bytes:
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30) as asked:
        asked.sendall(command.encode() + b"\r\n")
        return asked.recv(200)


def test_redis_keeps_what_it_is_told(redis: str) -> None:
    assert told(redis, "SET bird wren") == b"+OK\r\n"
    assert told(redis, "GET bird") == b"$4\r\nwren\r\n"


def test_the_next_test_finds_an_empty_redis(redis: str) -> None:
    assert told(redis, "DBSIZE") == b":0\r\n"


def test_a_redis_that_was_killed_may_begin_again_at_its_place(own_redis: Served) -> None:
    own_redis.kill()
    own_redis.start()
    assert told(f"redis://127.0.0.1:{own_redis.port}", "PING") == b"+PONG\r\n"


def test_haproxy_does_as_its_configuration_says(proxy: Callable[[str, str, int], Served]) -> None:
    port = free_port()
    proxy(
        "haproxy",
        "defaults\n mode http\n timeout connect 5s\n timeout client 5s\n timeout server 5s\n"
        f"frontend front\n bind 127.0.0.1:{port}\n"
        " http-request return status 200 string wren content-type text/plain\n",
        port,
    )
    assert httpx.get(f"http://127.0.0.1:{port}/").text == "wren"
