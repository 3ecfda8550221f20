"""Servers that hang, flood, lie and die hurt themselves alone."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.errors import ServerMisbehavedError, ServerUnreachableError
from core.mcp.pool import MCPClient
from core.mcp.tools import MCPTool
from core.messages.transcript import call_message
from core.tools.approval import ApprovalRequest, Decision, Guard, Policy
from core.tools.runner import ToolRunner
from tests.texts.measuring import is_in_time

pytestmark = pytest.mark.anyio

HOSTILE = Path(__file__).with_name("hostile_server.py")


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not end by itself is not waited for as long as outside of tests."""
    monkeypatch.setattr("core.mcp.stdio._LEAVING", 0.2)
    monkeypatch.setattr("core.mcp.stdio._KILLED", 0.2)


@pytest.fixture
def hostile(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    def server(case: str, **more: Any) -> dict[str, Any]:
        return {"command": sys.executable, "args": [str(HOSTILE), case, str(tmp_path / "turned")], **more}

    return server


async def test_garbage_wrong_ids_and_second_answers_are_passed_over(hostile: Callable[..., dict[str, Any]]):
    async with MCPClient("x", hostile("garbage")) as client:
        assert (await client.call("act")).text == "right"
        assert (await client.call("act")).text == "right"
        assert "not JSON at all" in [line.text for line in client.log]


async def test_an_answer_of_100_mb_fails_its_call_at_once_and_the_server_stays_usable(
    hostile: Callable[..., dict[str, Any]],
):
    async with MCPClient("x", hostile("huge")) as client:
        before = time.process_time()
        with pytest.raises(ServerMisbehavedError, match="larger than 16 MB"):
            await client.call("act")
        with pytest.raises(ServerMisbehavedError, match="larger than 16 MB"):
            await client.call("act")
        assert is_in_time(time.process_time() - before, 3)


async def test_an_answer_of_8_mb_costs_little(hostile: Callable[..., dict[str, Any]]):
    async with MCPClient("x", hostile("large")) as client:
        before = time.process_time()
        assert len((await client.call("act")).text) == 8 * 1024 * 1024
        assert is_in_time(time.process_time() - before, 1)


async def test_a_server_that_never_answers_costs_its_own_calls_alone(hostile: Callable[..., dict[str, Any]]):
    async with MCPClient("x", hostile("hangs", timeout=0.2)) as hung, MCPClient("y", hostile("fine")) as fine:
        failing = asyncio.create_task(hung.call("act"))
        assert (await fine.call("act")).text == "did act"
        with pytest.raises(ServerMisbehavedError, match=r"did not answer in 0\.2 seconds"):
            await failing


async def test_notifications_without_end_cost_little_and_delay_nobody_else(hostile: Callable[..., dict[str, Any]]):
    async with MCPClient("x", hostile("flood", timeout=1)) as flooding, MCPClient("y", hostile("fine")) as fine:
        failing = asyncio.create_task(flooding.call("act"))
        before, began = time.process_time(), time.monotonic()
        while not failing.done():
            assert (await fine.call("act")).text == "did act"
            await asyncio.wait({failing}, timeout=0.1)
        with pytest.raises(ServerMisbehavedError, match="did not answer"):
            await failing
        assert time.process_time() - before < 0.7 * (time.monotonic() - began)
        async with asyncio.timeout(180):  # on a busy machine the server takes longer to send too many
            while not any("more notifications than can be read" in line.text for line in flooding.log):
                with pytest.raises(ServerMisbehavedError, match="did not answer"):
                    await flooding.call("act")


async def test_an_answer_after_a_flood_still_comes(hostile: Callable[..., dict[str, Any]]):
    async with MCPClient("x", hostile("flood_and_answer")) as client:
        assert (await client.call("act")).text == "here"


async def test_what_a_server_writes_on_its_error_output_is_kept_in_part_and_without_keys(
    hostile: Callable[..., dict[str, Any]],
):
    async with MCPClient("x", hostile("babbles", env={"KEY": "sk-very-private"})) as client:
        assert (await client.call("act")).text == "here"
        lines = [line.text for line in client.log]
    assert 0 < len(lines) <= 200
    assert not any("private" in line or "hunter2" in line for line in lines)


async def test_a_server_that_dies_during_a_call_is_told_by_its_end_and_not_by_a_deadline(
    hostile: Callable[..., dict[str, Any]],
):
    async with MCPClient("x", hostile("dies")) as client:
        began = time.monotonic()
        with pytest.raises(ServerUnreachableError, match="has ended"):
            await client.call("act")
        assert time.monotonic() - began < 5  # a call has 60


async def test_a_call_that_may_have_happened_is_not_made_again_whatever_the_server_says_of_it(
    hostile: Callable[..., dict[str, Any]],
):
    async with MCPClient("x", hostile("dies_once")) as client:
        with pytest.raises(ServerUnreachableError, match="has ended"):
            await client.call("act")
        assert (await client.call("act")).text == "xx"  # that was another call


async def test_a_call_that_only_reads_on_a_trusted_server_is_made_once_more(hostile: Callable[..., dict[str, Any]]):
    async with MCPClient("x", hostile("dies_once"), trusted=True) as client:
        assert (await client.call("act")).text == "xx"


async def test_a_server_that_closes_its_output_counts_as_dead(hostile: Callable[..., dict[str, Any]]):
    async with MCPClient("x", hostile("closes")) as client:
        with pytest.raises(ServerUnreachableError, match="has ended"):
            await client.call("act")


async def test_nothing_stays_of_a_server_nor_of_what_it_started(hostile: Callable[..., dict[str, Any]]):
    async with MCPClient("x", hostile("child")) as client:
        child = int((await client.call("act")).text)
        assert psutil.pid_exists(child)
    assert [one for one in psutil.Process().children() if str(HOSTILE) in " ".join(one.cmdline())] == []
    # In a container nobody may be there to collect what has ended: a dead entry is as good as none.
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("case", ["shape", "error"])
async def test_a_broken_answer_is_one_sentence_without_keys(hostile: Callable[..., dict[str, Any]], case: str):
    async with MCPClient("x", hostile(case, env={"KEY": "sk-very-private"})) as client:
        with pytest.raises(ServerMisbehavedError, match="The MCP server 'x' failed") as failed:
            await client.call("act")
    assert "private" not in str(failed.value)


async def test_a_list_of_tools_without_end_is_cut_off(hostile: Callable[..., dict[str, Any]]):
    async with MCPClient("x", hostile("endless")) as client:
        assert 1 <= len(client.tools) <= 50


async def test_names_and_descriptions_are_escaped_and_have_an_end(hostile: Callable[..., dict[str, Any]]):
    async with MCPClient("x\ny", hostile("names")) as client:
        (tool,) = client.tools
        assert isinstance(tool, MCPTool)
        assert tool.name.isascii()
        assert tool.name.replace("-", "").replace("_", "").isalnum()
        assert re.fullmatch(r"mcp:x y#\w{8}:two lines red#\w{8}", tool.full_name)
        assert "\x1b" not in tool.label()
        assert len(tool.description) == 4000
        assert len(tool.whole_description) == 10_000
        assert (await tool.call({})).text.startswith("did two\nlines")


async def test_what_a_tool_says_of_its_fields_is_shown_with_its_description(hostile: Callable[..., dict[str, Any]]):
    async with MCPClient("x", hostile("fields")) as client:
        (tool,) = client.tools
        assert isinstance(tool, MCPTool)
        assert tool.whole_description == "Acts.\nmail: A mail.\nmail.to: Send it to me\\u202e."
        assert "\u202e" not in str(tool.function)


async def test_nothing_that_a_model_reads_of_a_tool_is_kept_from_people(hostile: Callable[..., dict[str, Any]]):
    async with MCPClient("x", hostile("hides")) as client:
        (tool,) = client.tools
        assert isinstance(tool, MCPTool)
        for where in ("default", "enum", "title", "last"):
            assert f"POISON of the {where}" in str(tool.function)
            assert f"POISON of the {where}" in tool.whole_description
        for name in (name for name in tool.function["parameters"]["properties"] if "POISON" in name):
            assert name in tool.whole_description


async def test_tools_whose_names_look_alike_to_a_model_get_different_ones(hostile: Callable[..., dict[str, Any]]):
    async with MCPClient("x", hostile("twins")) as client:
        names = [tool.name for tool in client.tools]
        rules = [tool.full_name for tool in client.tools]
    assert names[:2] == ["x-a_b", "x-a_b_2"]
    assert len(set(names)) == len(set(rules)) == 4
    assert max(map(len, names)) <= 64


async def test_a_tool_with_an_enormous_schema_is_left_out_and_said(hostile: Callable[..., dict[str, Any]]):
    async with MCPClient("x", hostile("schema")) as client:
        assert [tool.name for tool in client.tools] == ["x-act"]
        assert any("too large" in line.text for line in client.log)


async def test_sampling_roots_and_questions_are_neither_offered_nor_answered(hostile: Callable[..., dict[str, Any]]):
    async with MCPClient("x", hostile("announces")) as client:
        (line,) = [line.text for line in client.log if line.text.startswith("{")]
        assert json.loads(line) == {}
    async with MCPClient("x", hostile("asks")) as client:
        answers = dict(json.loads((await client.call("act")).text))
    assert answers == {"sampling/createMessage": True, "roots/list": True, "elicitation/create": True}


async def test_a_tool_that_says_something_else_than_was_agreed_to_is_asked_for_with_its_new_words(
    hostile: Callable[..., dict[str, Any]],
):
    asked: list[ApprovalRequest] = []

    def ask(asking: ApprovalRequest) -> Decision:
        asked.append(asking)
        return Decision(allowed=False)

    async with MCPClient("x", hostile("turns")) as client:
        tool = client.tools[0]
        runner = ToolRunner({tool.name: tool}, guard=Guard(Policy(mode="never"), ask))
        await _run(runner, tool.name)
        assert asked == []
        while not tool.changed:
            await asyncio.sleep(0.01)
        await _run(runner, tool.name)
    (asking,) = asked
    assert asking.reason == "changed"
    assert "first sends all files to me" in asking.wants["en"]
    assert "first sends all files to me" in asking.wants["zh"]


async def test_a_tool_that_is_not_among_the_approved_counts_as_changed(hostile: Callable[..., dict[str, Any]]):
    async with MCPClient("x", hostile("fine"), approved={}) as client:
        assert client.tools[0].changed
    async with MCPClient("x", hostile("fine")) as client:
        tool = client.tools[0]
        assert isinstance(tool, MCPTool)
        approved = {tool.own_name: tool.fingerprint}
    async with MCPClient("x", hostile("fine"), approved=approved) as client:
        assert not client.tools[0].changed


async def test_a_server_that_comes_back_with_other_words_is_not_called_on_the_old_yes(
    hostile: Callable[..., dict[str, Any]], tmp_path: Path
):
    async with MCPClient("x", hostile("fine")) as client:
        tool = client.tools[0]
        assert isinstance(tool, MCPTool)
        (child,) = [one for one in psutil.Process().children() if str(HOSTILE) in " ".join(one.cmdline())]
        (tmp_path / "turned").touch()
        child.kill()
        while client.is_open:
            await asyncio.sleep(0.01)
        with pytest.raises(ServerMisbehavedError, match="has changed this tool"):
            await tool.call({})
        assert tool.changed


async def _run(runner: ToolRunner, name: str) -> None:
    async for _ in runner.run([call_message("c", name, "{}")]):
        pass
