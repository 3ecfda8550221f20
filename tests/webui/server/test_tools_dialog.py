"""The dialog about tools over HTTP: each owner's own, no secret comes back, programs for the owner of the machine."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.app_process import AppProcess
from tests.webui.server.raw_page import RawPage

SECRET = "sk-CANARY-0123456789abcdef"
NOTES = Path(__file__).parents[2] / "core" / "mcp" / "hostile_server.py"
ACTS = [
    *("mode", "patterns", "switch", "account", "forget", "paste", "save", "confirm"),
    *("change_note", "delete_note", "take_back"),
    *("connect", "check", "enable", "trust", "let_ask", "tool", "approve", "remove", "token", "revoke"),
]


def told(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert "CANARY" not in answer.text
    return dict(answer.json())


def ask(tab: RawPage, what: str, **asked: Any) -> dict[str, Any]:
    return told(tab.client.post(f"{tab.url}/tools/{what}", json=asked))


def state(tab: RawPage, server: str = "") -> dict[str, Any]:
    return told(tab.client.get(f"{tab.url}/tools/state", params={"server": server}))


def everything(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


def pasted(folder: Path) -> str:
    entry = {"command": sys.executable, "args": [str(NOTES), "fine", str(folder / "turned")], "env": {"KEY": SECRET}}
    return json.dumps({"mcpServers": {"notes": entry}})


def test_a_server_is_pasted_seen_started_used_and_removed(page: RawPage, app: AppProcess, tmp_path: Path) -> None:
    (server,) = ask(page, "paste", text=pasted(tmp_path))["added"]
    opened = state(page, server)["opened"]
    assert (opened["shape"], opened["env"]) == ("ask", [{"name": "KEY", "end": "cdef"}])
    seen = opened["confirm"]
    assert (seen["program"], seen["arguments"][0], seen["variables"]) == (sys.executable, str(NOTES), ["KEY"])
    assert ask(page, "check", server=server)["failed"]
    assert ask(page, "confirm", server=server, print="?")["failed"].startswith("The command has changed")
    opened = ask(page, "confirm", opened=server, server=server, print=seen["print"])["opened"]
    while opened["shape"] == "run":
        opened = state(page, server)["opened"]
    assert (opened["shape"], [tool["id"] for tool in opened["tools"]]) == ("ok", ["act"])
    assert opened["tools"][0]["rule"] == "mcp:notes:act"
    assert ask(page, "check", server=server)["said"].startswith("It answered in 0.")
    off = ask(page, "tool", opened=server, server=server, tool="act", on=False)["opened"]["tools"]
    assert [tool["on"] for tool in off] == [False]
    assert ask(page, "enable", opened=server, server=server, on=False)["opened"]["shape"] == "open"
    kept = {"command": sys.executable, "args": [str(NOTES)], "env": {"KEY": None}}
    changed = ask(page, "save", opened=server, server=server, name="notebook", settings=kept)["opened"]
    assert (changed["name"], changed["env"]) == ("notebook", [{"name": "KEY", "end": "cdef"}])
    assert SECRET.encode() not in everything(app.home) + app.log.read_bytes()
    assert ask(page, "remove", server=server)["servers"] == []


def test_bad_json_is_told_where_it_is_wrong(page: RawPage) -> None:
    answer = ask(page, "paste", text='{"mcpServers": {\n  "a": {"command": "x",, }}}')
    assert answer["failed"] == "This is not JSON: line 2, column 24. Check commas, quotes and braces there."
    assert answer["at"] == {"line": 2, "column": 24}
    assert state(page)["servers"] == []


def test_what_a_server_asks_to_run_unasked_is_not_granted_and_said_not_to_be(page: RawPage) -> None:
    entry = {"url": "http://127.0.0.1:9/mcp", "autoApprove": ["wipe"], "disabled": True}
    answer = ask(page, "paste", text=json.dumps({"mcpServers": {"eager": entry}}))
    assert "autoApprove" in answer["said"]
    assert answer["approval"]["allow"] == []
    ask(page, "remove", server=answer["added"][0])
    answer = ask(page, "paste", text=json.dumps({"mcpServers": {"calm": {**entry, "autoApprove": []}}}))
    assert "autoApprove" not in answer["said"]
    assert state(page, answer["added"][0])["opened"]["asks"] is False
    ask(page, "remove", server=answer["added"][0])


def test_what_is_risky_is_said_in_the_readers_language(page: RawPage) -> None:
    text = json.dumps({"mcpServers": {"risky": {"command": "sh", "args": ["-c", "npx -y x"]}}})
    (server,) = ask(page, "paste", text=text)["added"]
    english = state(page, server)["opened"]["confirm"]["risks"]
    page.client.headers["accept-language"] = "zh-CN"
    chinese = state(page, server)["opened"]["confirm"]["risks"]
    assert len(english) == len(chinese) == 2
    assert english[0].isascii()
    assert not chinese[0].isascii()
    ask(page, "remove", server=server)


def test_switches_and_rules_are_kept(page: RawPage) -> None:
    tools = {one["name"]: one for one in ask(page, "switch", tool="web_search", on=True)["tools"]}
    assert (tools["web_search"]["on"], tools["calculator"]["on"], tools["ask_documents"]["always"]) == (True,) * 3
    assert tools["image_zoom_in_tool"]["may"] == "goes online only for a picture that is a web address"
    assert tools["web_search"]["may"] == "goes online"
    assert tools["code_interpreter"]["on"] is False  # this app was started without one
    assert ask(page, "mode", mode="always")["approval"]["mode"] == "always"
    rules = ask(page, "patterns", deny=["mcp:*:delete_*"], ask=[], allow=["calculator"])["approval"]
    assert (rules["mode"], rules["deny"], rules["allow"]) == ("always", ["mcp:*:delete_*"], ["calculator"])
    assert ask(page, "mode", mode="whenever")["failed"]
    assert ask(page, "mode", mode="writes")["approval"]["deny"] == ["mcp:*:delete_*"]
    assert ask(page, "switch", tool="martian", on=True)["failed"] == "There is no such tool."


def test_a_rule_that_matches_no_tool_is_told_where_it_stands(page: RawPage) -> None:
    entry = {"url": "http://127.0.0.1:9/mcp", "disabled": True}
    (server,) = ask(page, "paste", text=json.dumps({"mcpServers": {"away": entry}}))["added"]
    rules = {
        "deny": ["STORAGE", "web_*", "martian", "mcp:away:wipe", "mcp:*:delete_*"],
        "ask": ["Notes", "calcuator"],
        "allow": ["storage", "Storage"],
    }
    hints = ask(page, "patterns", **rules)["approval"]["hints"]
    assert hints == {
        "deny": ["“martian” matches no tool there is: kept for later."],
        "ask": [
            "“Notes” matches no tool there is: did you mean storage?",
            "“calcuator” matches no tool there is: did you mean calculator?",
        ],
        "allow": ["“Storage” matches no tool there is: did you mean storage?"],
    }
    ask(page, "remove", server=server)
    page.client.headers["accept-language"] = "zh-CN"
    gone = ask(page, "patterns", deny=["mcp:away:wipe"], ask=["记事存储"], allow=[])["approval"]["hints"]
    assert gone["deny"] == ["“mcp:away:wipe”与现有的工具都不匹配：先保留着。"]
    assert gone["ask"][0].endswith("是否指 storage？")
    ask(page, "patterns", deny=[], ask=[], allow=[])


def test_the_key_of_a_search_service_is_shown_by_its_end(page: RawPage, app: AppProcess) -> None:
    assert ask(page, "account", tool="web_search", provider="serper")["failed"].startswith("This search service needs")
    search = ask(page, "account", tool="web_search", provider="serper", key=SECRET)["accounts"]["web_search"]
    assert (search["provider"], search["has_key"], search["end"]) == ("serper", True, "cdef")
    assert SECRET.encode() not in everything(app.home) + app.log.read_bytes()
    free = ask(page, "account", tool="web_search", provider="ddgs")["accounts"]
    assert free["web_search"]["has_key"] is False
    drawing = ask(page, "account", tool="image_gen", provider="dashscope", key=SECRET)["accounts"]["image_gen"]
    assert (drawing["provider"], drawing["end"]) == ("dashscope", "cdef")
    assert ask(page, "forget", tool="image_gen")["accounts"]["image_gen"]["has_key"] is False
    assert SECRET.encode() not in everything(app.home) + app.log.read_bytes()


@pytest.mark.parametrize(
    "given",
    [
        {"text": json.dumps({"mcpServers": {"x": {"command": "sh"}}})},
        {"text": json.dumps({"x": {"command": "sh", "disabled": True}})},
        {"name": "x", "settings": {"command": "sh", "args": ["-c", "id"]}},
        {"name": "x", "settings": {"command": "sh", "url": "https://a.example/mcp", "type": "stdio"}, "local": True},
    ],
)
def test_m1_readers_of_a_shared_page_add_no_program(alice: RawPage, given: dict[str, Any]) -> None:
    assert state(alice)["local"] is False
    answer = ask(alice, "paste" if "text" in given else "save", **given)
    assert answer["failed"].startswith("Programs are started for the owner of this machine alone")
    assert state(alice)["servers"] == []


def test_m1_no_other_door_of_the_page_adds_one(alice: RawPage) -> None:
    for crafted in ({"do": "paste", "text": '{"x": {"command": "sh"}}'}, {"do": "tools/save", "command": "sh"}):
        alice.act(**crafted)
    alice.client.get(f"{alice.url}/?mcp=sh&server=sh")
    assert state(alice)["servers"] == []


def test_a2_a11_what_is_alices_does_not_exist_for_bob(alice: RawPage, bob: RawPage) -> None:
    entry = {"url": "https://127.0.0.1:9/mcp", "headers": {"Authorization": f"Bearer {SECRET}"}}
    (server,) = ask(alice, "paste", text=json.dumps({"mcpServers": {"far": entry}}))["added"]
    assert state(bob, server)["opened"] is None
    assert state(bob)["servers"] == []
    for what in ("connect", "check", "remove"):
        assert "failed" in ask(bob, what, server=server)
    for what in ("enable", "trust", "let_ask"):
        assert "failed" in ask(bob, what, server=server, on=True)
    assert "failed" in ask(bob, "tool", server=server, tool="act", on=True)
    assert "failed" in ask(bob, "approve", server=server, prints={"act": "x"})
    assert "failed" in ask(bob, "confirm", server=server, print="x")
    moved = {"url": "https://evil.example/mcp", "headers": {"Authorization": None}}
    assert "failed" in ask(bob, "save", server=server, name="far", settings=moved)
    assert [one["name"] for one in state(alice)["servers"]] == ["far"]
    ask(alice, "remove", server=server)


@pytest.mark.parametrize("what", ACTS)
def test_only_the_pages_own_requests_are_understood(page: RawPage, app: AppProcess, what: str) -> None:
    address = f"{app.url}/tools/{what}"
    send = page.client.post
    assert send(address, data={"server": "x"}).status_code == 400
    assert send(address, content=b"[1]", headers={"content-type": "application/json"}).status_code == 400
    assert send(address, json={"text": "x" * (2_000_000 if what == "paste" else 200_000)}).status_code == 400
    assert send(address, json={}, headers={"origin": "https://evil.example"}).status_code == 403
    odd = b'{"server": 1, "text": {}, "settings": [], "prints": 3, "deny": "x", "name": null, "tool": "\\ud800"}'
    assert send(address, content=odd, headers={"content-type": "application/json"}).status_code == 200


def test_who_has_no_cookie_gets_nothing(shared: AppProcess) -> None:
    with httpx.Client(base_url=shared.url) as nobody:
        assert nobody.get("/tools/state").status_code == 401
        assert nobody.post("/tools/mode", json={"mode": "never"}).status_code == 401


def test_a_token_for_other_programs_is_told_once_and_can_be_taken_back(page: RawPage, app: AppProcess) -> None:
    assert state(page)["access"] == {"path": "/mcp", "made": 0}
    answer = ask(page, "token")
    token = answer["token"]
    assert answer["access"]["made"] > 0
    assert token not in json.dumps(state(page))
    assert token.encode() not in everything(app.home) + app.log.read_bytes()
    address, headers = f"{app.url}/mcp", {"authorization": f"Bearer {token}"}
    assert httpx.post(address, json={}, headers=headers).status_code != 401
    assert ask(page, "revoke")["access"]["made"] == 0
    assert httpx.post(address, json={}, headers=headers).status_code == 401


def test_notes_are_seen_changed_and_deleted(page: RawPage, alice: RawPage, app: AppProcess) -> None:
    assert state(page)["notes"] == []
    assert ask(page, "change_note", key="plans/tea", text="made up")["failed"]
    assert state(page)["notes"] == [], "only what the assistant noted can be changed"
    with closing(sqlite3.connect(app.home / "parlour.db")) as connection, connection:
        connection.execute("INSERT INTO notes VALUES ('local', 'plans/tea', 'Green, <b>no</b> sugar.', 23, 1.0)")
    assert state(page)["notes"] == [{"key": "plans/tea", "text": "Green, <b>no</b> sugar.", "whole": True}]
    assert state(alice)["notes"] == []
    assert [one["text"] for one in ask(page, "change_note", key="plans/tea", text="Black.")["notes"]] == ["Black."]
    assert ask(page, "delete_note", key="../../parlour.db")["failed"]
    assert (app.home / "parlour.db").is_file()
    assert ask(page, "delete_note", key="plans/tea")["notes"] == []


def test_what_is_pasted_may_be_long_and_is_refused_in_words_where_it_is_too_long(page: RawPage) -> None:
    entry = {"url": "http://127.0.0.1:9/mcp", "disabled": True, "note": "x" * 200_000}
    (server,) = ask(page, "paste", text=json.dumps({"mcpServers": {"Long": entry}}))["added"]
    taken = ask(page, "paste", text=json.dumps({"mcpServers": {"long": {**entry, "note": ""}}}))
    assert taken["failed"] == "There is a server “Long” already. Choose another name."
    ask(page, "remove", server=server)
    assert ask(page, "paste", text="文" * 300_000)["failed"].startswith("This is longer than 256 kB.")
