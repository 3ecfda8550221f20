"""Which parts of what an owner typed are keys, so that nobody repeats them."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from core.storage.database import Database
from core.storage.mcp_servers import McpServerStore
from core.storage.model_services import ModelServiceStore
from core.storage.sealing import Sealer, in_address, in_arguments, secrets_in_pairs


@pytest.mark.parametrize(
    ("address", "keys"),
    [
        ("https://example.org/mcp", []),
        ("https://ann:plain%20words@example.org/mcp", ["plain words"]),
        ("https://plainwords@example.org/mcp", ["plainwords"]),
        ("https://example.org/mcp?token=plain&lang=en", ["plain"]),
        ("https://example.org/s/a1b2c3d4e5f6a7b8c9/mcp", ["a1b2c3d4e5f6a7b8c9"]),
        ("https://[broken", []),
        ("", []),
    ],
)
def test_an_address_may_hold_keys(address: str, keys: list[str]) -> None:
    assert in_address(address) == keys


def test_a_command_line_may_hold_keys() -> None:
    given = ["-y", "@scope/server-files", "--api-key", "plain", "--token=words", "--header", "Authorization: Bearer it"]
    given += ["mcp-server-fetch==2025.4.7", "--model", "gpt-4o-mini-2024-07-18", "a1b2c3d4e5f6a7b8c9"]
    given += ["postgres://ann:pw-of-ann@db/x", "/home/ann", "--auth", "--verbose", "--port", 8080]
    assert in_arguments(given) == ["plain", "words", "Bearer it", "a1b2c3d4e5f6a7b8c9", "pw-of-ann"]


def test_words_numbers_and_places_are_no_keys_unless_called_so() -> None:
    pairs = [("MODE", "production"), ("PORT", 80), ("HOME", "/home/ann"), ("PASS", "word"), ("X", "a-b_1")]
    assert secrets_in_pairs(pairs) == ["word", "a-b_1"]


@pytest.mark.anyio
async def test_what_is_kept_tells_its_keys_wherever_they_were_typed(database: Database) -> None:
    sealer = Sealer("secret")
    servers = partial(McpServerStore, database, sealer)
    mail: dict[str, Any] = {"command": "mail", "args": ["--password", "from-args"], "env": {"K_TOKEN": "from-env"}}
    far = {"url": "https://ann:from-user@x.org/?key=from-query", "headers": {"Authorization": "Bearer from-header"}}
    await servers("alice").add({"mail": mail, "far": far})
    found = {"from-args", "from-env", "from-user", "from-query", "Bearer from-header"}
    assert set(await servers("alice").secrets()) == found
    assert await servers("bob").secrets() == []
    assert await ModelServiceStore(database, sealer, "alice").secrets() == []
