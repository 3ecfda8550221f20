"""Servers as they are typed or pasted: what is understood, what is refused, and where secrets stay."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import SettingsError
from core.toolbox.server_form import checked, pasted

TIME = {"command": "uvx", "args": ["mcp-server-time"]}
FAR = {"url": "https://mcp.example/mcp", "headers": {"Authorization": "Bearer CANARY-123456"}}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"mcpServers": {"time": TIME}}),
        json.dumps({"servers": {"time": TIME}}),
        json.dumps({"mcp": {"servers": {"time": TIME}}}),
        json.dumps({"time": TIME}),
        '"time": {"command": "uvx", "args": ["mcp-server-time"]},',
        '\n  {"mcpServers": {"time": {"command": ["uvx", "mcp-server-time"]}}}\n',
    ],
)
def test_json_is_understood_as_everybody_writes_it(text: str) -> None:
    (draft,) = pasted(text)
    assert (draft.name, draft.settings, draft.enabled) == ("time", TIME, True)


def test_several_come_at_once_and_a_disabled_one_stays_so() -> None:
    drafts = pasted(json.dumps({"mcpServers": {"time": TIME, "far": {**FAR, "disabled": True}}}))
    assert [(draft.name, draft.enabled) for draft in drafts] == [("time", True), ("far", False)]
    assert drafts[1].settings["headers"] == FAR["headers"]


def test_what_json_wants_to_run_unasked_is_not_granted() -> None:
    (draft,) = pasted(json.dumps({"time": {**TIME, "autoApprove": ["*"], "alwaysAllow": ["*"]}}))
    assert draft.settings == TIME


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", "server_json"),
        ("{", "server_json"),
        ('{"mcpServers": {"a": {"command": "x",}}}', "server_json"),
        ("[]", "server_json_none"),
        ('{"a": {"command": "x"}, "a": {"command": "y"}}', "server_json_twice"),
        ('{"mcpServers": {"a": {"command": "x", "env": {"K": "1", "K": "2"}}}}', "server_json_twice"),
        ('"a": {"command": "x"}, "a": {"command": "y"},', "server_json_twice"),
        (" " * 300_000, "server_json_long"),
        ("{}", "server_json_none"),
        ('{"mcpServers": {}}', "server_json_none"),
        ('{"mcpServers": []}', "server_json_none"),
        ('{"a": 1}', "server_json_none"),
        ("[" * 5000, "server_json"),
        ('{"mcpServers": {"": {"command": "x"}}}', "server_name"),
        ('{"mcpServers": {"a\\nb": {"command": "x"}}}', "server_name"),
        ('{"mcpServers": {"a": 1}}', "server_wrong"),
        ('{"mcpServers": {"a": {}}}', "server_nowhere"),
        ('{"mcpServers": {"a": {"url": "file:///etc/passwd"}}}', "server_scheme"),
        ('{"mcpServers": {"a": {"url": "javascript:alert(1)"}}}', "server_scheme"),
        ('{"mcpServers": {"a": {"command": "x", "env": {"A": "${TOKEN}"}}}}', "server_placeholder"),
        ('{"mcpServers": {"a": {"command": "x", "args": 3}}}', "server_wrong"),
        ('{"mcpServers": {"a": {"command": "x", "env": ["A"]}}}', "server_wrong"),
        ('{"mcpServers": {"a": {"command": "x", "env": {"A": "b\\nc"}}}}', "server_wrong"),
        ('{"mcpServers": {"a": {"url": "https://a.example", "headers": {"A": "b\\r\\nX: y"}}}}', "server_wrong"),
        ('{"mcpServers": {"a": {"command": "x"}, "A": {"command": "y"}}}', "server_name_taken"),
    ],
)
def test_what_cannot_be_a_server_is_refused(text: str, key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        pasted(text)
    assert caught.value.words_key == key


@pytest.mark.parametrize("name", ["LD_PRELOAD", "NODE_OPTIONS", "PYTHONSTARTUP", "ld_preload"])
def test_m2_variables_that_load_other_code_are_refused(name: str) -> None:
    with pytest.raises(SettingsError) as caught:
        pasted(json.dumps({"a": {"command": "x", "env": {name: "CANARY"}}}))
    assert (caught.value.words_key, caught.value.details["what"]) == ("server_hijack", name)
    assert "CANARY" not in f"{caught.value}{caught.value.details}"


def test_bad_json_is_told_by_its_place() -> None:
    with pytest.raises(SettingsError) as caught:
        pasted('{"mcpServers": {\n  "a": {"command": "x",, }}}')
    assert (caught.value.details["line"], caught.value.details["column"]) == (2, 24)


def test_a_secret_is_kept_for_its_own_place_alone() -> None:
    moved: dict[str, Any] = {"url": "https://other.example/mcp", "headers": {"Authorization": None}}
    same: dict[str, Any] = {"url": "https://mcp.example/v2", "headers": {"Authorization": None, "X": "1"}}
    assert checked("far", same, FAR).settings["headers"] == {**FAR["headers"], "X": "1"}
    assert checked("far", moved, FAR).settings["headers"] == {"Authorization": ""}
    program: dict[str, Any] = {"command": "x", "env": {"Authorization": None}}
    assert checked("far", program, FAR).settings["env"] == {"Authorization": ""}


@given(
    st.text(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["mcpServers", "command", "args", "env", "url", "a"]), inner, max_size=4)
        ),
    ).map(json.dumps)
)
def test_whatever_is_pasted_is_a_server_or_a_plain_no(text: str) -> None:
    try:
        drafts = pasted(text)
    except SettingsError:
        return
    assert drafts
    assert all(json.loads(json.dumps(draft.settings)) == draft.settings for draft in drafts)
