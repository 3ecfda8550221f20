"""The JSON of servers as the programs that have it write it, and what in it is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from core.errors import ServerUnreachableError, SettingsError
from core.mcp.settings import ServerSettings, environment_of, resolve_command, risks_of, servers_from


def one(**server: Any) -> ServerSettings:
    return servers_from({"mcpServers": {"x": server}}, disabled=True)["x"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"url": "http://h/mcp"}, "streamable-http"),
        ({"url": "http://h/sse"}, "sse"),
        ({"url": "http://h/sse/?key=1"}, "sse"),
        ({"serverUrl": "https://h/mcp"}, "streamable-http"),
        ({"httpUrl": "https://h/sse"}, "streamable-http"),
        ({"url": "https://h/x", "type": "http"}, "streamable-http"),
        ({"url": "https://h/x", "type": "streamableHttp"}, "streamable-http"),
        ({"url": "https://h/x", "transport": "streamable_http"}, "streamable-http"),
        ({"url": "https://h/x", "transportType": "sse"}, "sse"),
        ({"url": "https://h/x", "type": "remote"}, "streamable-http"),
        ({"command": "c"}, "stdio"),
        ({"command": "c", "type": "local"}, "stdio"),
    ],
)
def test_every_spelling_of_a_transport_is_understood(given: dict[str, Any], expected: str):
    assert one(**given).type == expected


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({"timeout": 30}, 30),
        ({"timeout": 3600}, 3600),
        ({"timeout": 5000}, 5),
        ({"timeout": 600_000}, 600),
        ({"timeout": 86_400_000}, 3600),
        ({"timeoutMs": 1500}, 1.5),
        ({"timeout_seconds": 7}, 7),
        ({"tool_timeout_sec": 9}, 9),
        ({}, 60),
    ],
)
def test_a_timeout_is_seconds_or_thousandths_as_its_name_or_size_says(given: dict[str, Any], seconds: float):
    assert one(command="c", **given).timeout == seconds


def test_the_time_to_start_has_its_spellings_too():
    assert one(command="c", initTimeout=10_000).connect_timeout == 10
    assert one(command="c", startup_timeout_sec=20).connect_timeout == 20


@pytest.mark.parametrize("given", [{"disabled": True}, {"enabled": False}, {"isActive": False}])
def test_a_server_that_is_switched_off_stays_off_in_every_spelling(given: dict[str, Any]):
    assert one(command="c", **given).disabled
    assert servers_from({"mcpServers": {"x": {"command": "c", **given}}}) == {}


def test_wishes_to_run_unasked_are_read_and_granted_by_nothing_here():
    assert one(command="c", autoApprove=["a", "b"]).auto_approve == ("a", "b")
    assert one(command="c", alwaysAllow=["a"]).auto_approve == ("a",)
    assert one(command="c", autoApprove=True).auto_approve == ("*",)


def test_variables_without_quotes_and_commands_in_lists_are_read():
    server = one(command=["npx", "-y"], args=["pkg", 8080], environment={"PORT": 8080, "ON": True, "NONE": None})
    assert (server.command, server.args) == ("npx", ("-y", "pkg", "8080"))
    assert server.revealed("env") == {"PORT": "8080", "ON": "true", "NONE": ""}


@pytest.mark.parametrize("outer", ["mcpServers", "servers", "mcp"])
def test_other_programs_names_for_the_whole_are_understood(outer: str):
    assert set(servers_from({outer: {"x": {"command": "c"}}})) == {"x"}
    assert set(servers_from({"mcp": {"servers": {"x": {"command": "c"}}}})) == {"x"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("env", {"KEY": "${OPENAI_API_KEY}"}),
        ("env", {"KEY": "${env:OPENAI_API_KEY}"}),
        ("env", {"KEY": "before ${input:key} after"}),
        ("headers", {"Authorization": "Bearer ${TOKEN}"}),
        ("args", ["${workspaceFolder}"]),
        ("url", "https://h/${TOKEN}"),
    ],
)
def test_placeholders_are_never_filled_from_our_environment_but_refused(
    monkeypatch: pytest.MonkeyPatch, field: str, value: Any
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-private")
    monkeypatch.setenv("TOKEN", "t-private")
    with pytest.raises(SettingsError, match="write the value itself") as refused:
        one(**{"command": "c", field: value})
    assert "private" not in str(refused.value)


def test_a_placeholder_with_a_default_gives_way_to_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TOKEN", "t-private")
    assert one(command="c", env={"KEY": "${TOKEN:-none}"}).revealed("env") == {"KEY": "none"}
    assert one(command="c", args=["$HOME", "{a}", "$5"]).args == ("$HOME", "{a}", "$5")


@pytest.mark.parametrize(
    "variable",
    [
        "LD_PRELOAD",
        "ld_preload",
        "DYLD_INSERT_LIBRARIES",
        "NODE_OPTIONS",
        "PYTHONSTARTUP",
        "BASH_ENV",
        "GIT_SSH_COMMAND",
    ],
)
def test_variables_that_load_other_code_are_refused(variable: str):
    with pytest.raises(SettingsError, match=f"the variable {variable} would load other code"):
        one(command="c", env={variable: "x"})


def test_a_refusal_shows_no_value():
    with pytest.raises(SettingsError) as refused:
        one(command="c", env={"KEY": ["sk-private"]})
    assert "private" not in f"{refused.value}{refused.value.__cause__}{refused.value.details}"
    assert "private" not in repr(one(command="c", env={"KEY": "sk-private"}))


@pytest.mark.parametrize(
    ("line", "risks"),
    [
        ("python server.py", ()),
        ("python -c print(1)", ("inline_code",)),
        ("/usr/bin/python3.11 -uc print(1)", ("inline_code",)),
        ("node --eval=1", ("inline_code",)),
        ("node -e 1", ("inline_code",)),
        ("deno eval 1", ("inline_code",)),
        ("bash -lc ls", ("inline_code", "shell")),
        ("cmd.exe /c dir", ("shell",)),
        ("npx -y @scope/server", ("fetches",)),
        ("npx -c ls", ("inline_code", "fetches")),
        ("uvx mcp-server-time", ("fetches",)),
        ("docker run -i -e KEY image", ("fetches",)),
        ("env A=1 python -c 1", ("inline_code",)),
        ("mcp-server-time -c x", ()),
    ],
)
def test_commands_that_deserve_a_second_look_are_marked(line: str, risks: tuple[str, ...]):
    command, *args = line.split()
    assert risks_of(command, args) == risks


def test_a_command_is_shown_with_its_whole_path_before_anything_starts(tmp_path: Path):
    program = tmp_path / "server"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    found = resolve_command(one(command="server", args=["a b"], env={"PATH": str(tmp_path)}))
    assert found.program == str(program)
    assert found.line == f"{program} 'a b'"
    with pytest.raises(ServerUnreachableError, match="no program 'server'"):
        resolve_command(one(command="server"))


def test_a_server_inherits_little(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-private")
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    environment = environment_of(one(command=sys.executable, env={"GIVEN": "1"}))
    assert environment["GIVEN"] == "1"
    assert environment.keys() <= {"GIVEN", "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "TZ"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"command": "python", "args": "srv.py"}, r'are wrong: it must be a list, such as \["srv.py"\]\.$'),
        ({"command": "python", "include": "find"}, r'are wrong: it must be a list, such as \["search"\]\.$'),
        ({"comand": "python"}, r"a server needs a command or a url\. Did you mean 'command' by 'comand'\?"),
        ({"ulr": "http://127.0.0.1"}, r"a command or a url\. Did you mean 'url' by 'ulr'\?"),
        ({"folder": "."}, r"a server needs a command or a url\.$"),
    ],
)
def test_a_slip_in_the_settings_is_told_with_what_was_meant(given: dict[str, Any], said: str):
    with pytest.raises(SettingsError, match=said.removesuffix("$")) as refused:
        servers_from({"mcpServers": {"shop": given}})
    if said.endswith("$"):
        assert not refused.value.hint
