"""A stand-in for `mcp-server-sqlite` over standard input and output: its recorded schemas, its answers from SQLite.

    python sqlite_server.py RECORD.json DATABASE

`test_walkthrough.py` holds it to every recorded call of the real one.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]
SELECT_ONLY = "Error: Only SELECT queries are allowed for read_query"
NO_SELECT = "Error: SELECT queries are not allowed for write_query"


def rows(database: sqlite3.Connection, query: str) -> str:
    """What a query finds, as Python writes a list of dicts."""
    cursor = database.execute(query)
    columns = [column[0] for column in cursor.description or ()]
    return str([dict(zip(columns, row, strict=True)) for row in cursor.fetchall()])


def write(database: sqlite3.Connection, query: str) -> str:
    """How many rows a query changed."""
    return str([{"affected_rows": database.execute(query).rowcount}])


def create(database: sqlite3.Connection, query: str) -> str:
    """A new table."""
    database.execute(query)
    return "Table created successfully"


def is_select(query: str) -> bool:
    """Whether a query only reads."""
    return query.strip().upper().startswith("SELECT")


TOOLS: dict[str, Callable[[sqlite3.Connection, Json], str]] = {
    "read_query": lambda db, given: rows(db, given["query"]) if is_select(given["query"]) else SELECT_ONLY,
    "write_query": lambda db, given: NO_SELECT if is_select(given["query"]) else write(db, given["query"]),
    "create_table": lambda db, given: create(db, given["query"]),
    "list_tables": lambda db, _: rows(db, "SELECT name FROM sqlite_master WHERE type='table'"),
    "describe_table": lambda db, given: rows(db, f"PRAGMA table_info({given['table_name']})"),
    "append_insight": lambda _, given: "Insight added to memo" if given["insight"] else "",
}


def called(tools: list[Json], database: sqlite3.Connection, name: str, arguments: Json) -> Json:
    """The result of a call, in the form of the protocol."""
    schema: Json = next((tool["inputSchema"] for tool in tools if tool["name"] == name), {})
    missing = next((key for key in schema.get("required", ()) if key not in arguments), None)
    text = "Error: Missing arguments"
    if missing is not None:
        text = f"Input validation error: {missing!r} is a required property"
    elif name in TOOLS:
        try:
            text = TOOLS[name](database, arguments)
        except sqlite3.Error as error:
            text = f"Database error: {error}"
    return {"content": [{"type": "text", "text": text}], "isError": missing is not None}


def serve(record: Json, path: str) -> None:
    """Answer requests, a line each, until the input ends."""
    database = sqlite3.connect(path, isolation_level=None)
    tools: list[Json] = record["tools"]["tools"]
    for line in sys.stdin:
        request: Json = json.loads(line)
        if "id" not in request:
            continue
        answer: Json = {"error": {"code": -32601, "message": "no such method"}}
        if request["method"] == "initialize":
            server = {"capabilities": {"tools": {}}, "serverInfo": record["server_info"]}
            answer = {"result": {"protocolVersion": "2025-06-18", **server}}
        elif request["method"] == "tools/list":
            answer = {"result": {"tools": tools}}
        elif request["method"] == "tools/call":
            asked = request["params"]
            answer = {"result": called(tools, database, asked["name"], asked.get("arguments") or {})}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), sys.argv[2])
