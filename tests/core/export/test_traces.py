"""Traces of replies: a tree of agents, model calls and tools, also in a program that has no page."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from core import Agent, FnCallAgent, GroupChat, Message, handoff, tool, trace_to
from core.errors import ModelUnavailableError, SettingsError
from core.export import traces
from core.export.traces import Trace, Traced, trace_in, traces_in
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from webui.commands.traces import main

TOGETHER: dict[str, asyncio.Event] = {}


@tool
async def meet(who: str, api_key: str = "") -> str:
    """Wait for the other call.

    Args:
        who: One of the two.
        api_key: A key.
    """
    del api_key
    TOGETHER.setdefault(who, asyncio.Event()).set()
    await TOGETHER.setdefault("b" if who == "a" else "a", asyncio.Event()).wait()
    return f"{who} is here"


@tool
def break_down(text: str) -> str:
    """Fail.

    Args:
        text: What with.
    """
    raise ValueError(f"no {text}")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    TOGETHER.clear()
    return tmp_path / "traces.jsonl"


def agent(*turns: Any, tools: Any = (), name: str | None = None) -> FnCallAgent:
    return FnCallAgent(list(tools), ScriptedModel(*turns), name=name, description="Helps.")


def shape(one: Traced) -> Any:
    """A span and what lies in it, by kind and name."""
    return [f"{one.kind} {one.name}", *map(shape, one.inside)] if one.inside else f"{one.kind} {one.name}"


def only(file: Path) -> Trace:
    (found,) = traces_in(file)
    return found


def desk() -> FnCallAgent:
    """Asks two tools and an agent at the same time, then hands over."""
    calls = [("meet", {"who": "a"}), ("meet", {"who": "b"}), ("Weather", {"question": "Rain?"})]
    weather = agent(Reply(calls=[("break_down", {"text": "data"})]), "No rain.", tools=[break_down], name="Weather")
    refunds = agent("Your money comes.", name="Refunds")
    turns = (Reply(calls=calls, usage=(100, 20)), Reply(calls=[("transfer_to_refunds", {})]))
    return agent(*turns, tools=[meet, weather, handoff(refunds)], name="Desk")


DESK = [
    "agent Desk",
    "model scripted",
    "tool meet",
    "tool meet",
    ["tool Weather", ["agent Weather", "model scripted", "tool break_down", "model scripted"]],
    "model scripted",
    "tool transfer_to_refunds",
    ["agent Refunds", "model scripted"],
]


def test_a_reply_of_nested_agents_and_parallel_tools_is_one_tree(file: Path):
    with trace_to(file):
        assert desk().ask("My money?").text == "Your money comes."
    found = only(file)
    (root,) = found.roots
    assert shape(root) == DESK
    first, second = [one for one in found.everything if one.name == "meet"]
    assert second.began < first.began + first.seconds  # side by side
    assert (found.name, found.usage.prompt_tokens > 100) == ("Desk", True)
    (failed,) = found.errors
    assert (failed.name, failed.error, failed.said) == ("break_down", "ValueError", "no data")
    called = next(one for one in found.everything if one.kind == "model")
    assert called.usage is not None
    assert (called.usage.prompt_tokens, called.usage.completion_tokens) == (100, 20)
    assert called.first is not None
    assert found.seconds >= called.first >= 0


def test_an_id_from_a_file_moves_no_cursor_and_hides_nothing(file: Path, capsys: pytest.CaptureFixture[str]):
    evil = "\x1b[2J\x9b31m\u202egone\r\x07"
    told = {"parlour.run_id": evil, "gen_ai.agent.name": evil}
    span = {"trace": evil, "id": evil, "kind": "run", "name": evil, "began": 1.0, "seconds": 1.0, "attributes": told}
    file.write_text(json.dumps(span) + "\n")
    for given in (["--json"], [], [evil], [evil, "--json"]):
        assert main([*given, "--file", str(file), "--lang", "en"]) == 0
        out = capsys.readouterr().out
        assert "gone" in out or not given
        assert all(sign == "\n" or sign.isprintable() for sign in out), repr(out)
    assert json.loads(out)["run"] == evil


def test_a_collector_is_sent_the_same_tree_without_arguments(file: Path, monkeypatch: pytest.MonkeyPatch):
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    with trace.get_tracer("program").start_as_current_span("program"), trace_to(file):
        desk().ask("My money, please?")
    spans = {one.context.span_id: one for one in exporter.get_finished_spans() if one.context is not None}

    def sent(one: ReadableSpan) -> Any:
        assert one.context is not None
        inner = [each for each in spans.values() if each.parent and each.parent.span_id == one.context.span_id]
        inside = [sent(each) for each in sorted(inner, key=lambda each: each.start_time or 0)]
        return [one.name, *inside] if inside else one.name

    named = {"agent": "invoke_agent", "model": "chat", "tool": "execute_tool"}

    def expected(given: Any) -> Any:
        if isinstance(given, list):
            return [expected(one) for one in given]
        kind, _, name = given.partition(" ")
        return f"{named[kind]} {name}"

    whole = next(one for one in spans.values() if one.parent is None)
    assert sent(whole) == ["program", expected(DESK)]
    outer = next(one for one in spans.values() if one.name == "invoke_agent Desk")
    assert (outer.attributes or {})["gen_ai.operation.name"] == "invoke_agent"
    assert (outer.attributes or {})["gen_ai.agent.name"] == "Desk"
    told = " ".join(one.to_json() for one in spans.values())
    assert not any(word in told for word in ("Rain", "no data", "money"))
    assert only(file).id == f"{whole.context.trace_id:032x}" if whole.context else ""  # both tell of one trace


def test_members_of_a_group_lie_in_the_group(file: Path):
    members = [agent("I say A.", name="Anna"), agent("I say B.", name="Ben")]
    group = GroupChat(members, agent_selection_method="round_robin", name="Group")
    with trace_to(file):
        group.run_nonstream([{"role": "user", "content": "Go"}], max_round=2)
    (root,) = only(file).roots
    assert shape(root)[0] == "agent Group"
    assert [one.name for one in root.inside if one.kind == "agent"] == ["Anna", "Ben"]


def test_an_agent_with_the_synchronous_hook_is_traced_too(file: Path):
    class Plain(Agent):
        def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
            del kwargs
            yield from self._call_llm(messages, stream=False)

    with trace_to(file):
        assert Plain(llm=ScriptedModel("Yes."), name="Plain").run_nonstream([{"role": "user", "content": "?"}])
    assert shape(only(file).roots[0]) == ["agent Plain", "model scripted"]


def test_a_reply_that_is_left_early_is_stopped_and_one_that_fails_has_its_error(file: Path):
    async def leave() -> None:
        async with aclosing(agent("One. Two. Three.", name="Left").stream([Message("user", "?")])) as events:
            await anext(events)

    with trace_to(file):
        asyncio.run(leave())
        with pytest.raises(ModelUnavailableError):
            agent(ModelUnavailableError(None, "503", "busy"), name="Broken").ask("?")
    by_name = {one.name: one for one in traces_in(file)}
    assert by_name["Left"].roots[0].outcome == "stopped"
    assert by_name["Broken"].roots[0].error == "ModelUnavailableError"


def test_no_key_stands_in_the_file_and_long_arguments_are_cut(file: Path):
    given = {"who": "a" * 5000, "api_key": "hunter2-hunter2"}
    calls = [("meet", given), ("meet", {"who": "b", "api_key": "sk-abcdefghijklmnop1234"}), ("meet", {"who": "a"})]
    with trace_to(file, secrets=["known-to-be-secret"]):
        failing = agent(Reply(calls=[("break_down", {"text": "known-to-be-secret"})]), "Sorry.", tools=[break_down])
        failing.ask("?")
        agent(Reply(calls=calls), "Done.", tools=[meet], name="sk-abcdefghijklmnop1234").ask("?")
    written = file.read_text()
    assert "break_down" in written
    assert not any(one in written for one in ("hunter2", "sk-abcdefghijklmnop1234", "known-to-be-secret", "a" * 200))
    assert file.stat().st_mode & 0o777 == 0o600


def test_nothing_is_kept_after_the_block_and_two_programs_may_share_a_file(file: Path):
    with trace_to(file), trace_to(str(file)):
        agent("Yes.", name="One").ask("?")
    agent("Yes.", name="Two").ask("?")
    assert [one.name for one in traces_in(file)] == ["One"]
    assert len(only(file).everything) == 2  # what two wrote counts once


def test_half_a_line_and_lines_of_others_are_passed_over(file: Path):
    with trace_to(file):
        agent("Yes.", name="One").ask("?")
    with file.open("a") as end:
        end.write('{"trace": "x", "id": 1}\n[]\nnull\n{"trace": "x", "id": "y", "name": "z", "began": "no"')
    assert [one.name for one in traces_in(file)] == ["One"]


def test_a_trace_whose_beginning_is_missing_shows_what_there_is(file: Path):
    line = {"trace": "t", "id": "a", "parent": "gone", "kind": "tool", "name": "execute_tool x", "began": 1.0}
    circle = [{**line, "trace": "c", "id": "p", "parent": "q"}, {**line, "trace": "c", "id": "q", "parent": "p"}]
    file.write_text("".join(json.dumps({**one, "seconds": 0.5}) + "\n" for one in (line, *circle)))
    assert [shape(one) for one in trace_in(file, "t").roots] == ["tool execute_tool x"]
    assert {one.id for one in traces_in(file)} == {"t", "c"}
    assert main(["--file", str(file)]) == main(["c", "--file", str(file)]) == 0


def test_a_full_file_is_put_aside_and_still_read(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(traces, "_MOST", 600)
    with trace_to(file):
        agent("Yes.", name="One").ask("?")
        agent("Yes.", name="Two").ask("?")
    assert Path(f"{file}.1").exists()
    assert traces_in(file)[0].name == "Two"


def test_a_place_that_is_none_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("PARLOUR_TRACES", raising=False)
    with pytest.raises(SettingsError, match="No file of traces is named"):
        trace_to()
    monkeypatch.setenv("PARLOUR_TRACES", "http://127.0.0.1:4318")
    with pytest.raises(SettingsError, match="No file of traces is named"):
        trace_to()
    for wrong in (7, "", b"x"):
        with pytest.raises(SettingsError, match="file must be a path, not"):
            trace_to(wrong)  # type: ignore[arg-type]
    (tmp_path / "a").write_text("")
    with pytest.raises(SettingsError, match="cannot be written to"):
        trace_to(tmp_path / "a" / "b")


def test_the_command_lists_shows_one_and_prints_json(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PARLOUR_TRACES", f"file:{file}")
    with trace_to():
        desk().ask("My money?")
    own = only(file).id
    assert main([]) == 0
    told = capsys.readouterr().out
    assert own[:8] in told
    assert "Desk" in told
    assert "1 failed" in told
    assert main([own[:6], "--lang", "en"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("Desk ")
    assert any('⚙ meet(who="a")' in line for line in lines)
    assert any(line.startswith("│  └─ Weather") for line in lines)
    assert any("✗ ValueError: no data" in line for line in lines)
    assert main([own, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["spans"][0]["name"] == "Desk"
    assert main(["--json", "--last", "1"]) == 0
    assert [one["id"] for one in json.loads(capsys.readouterr().out)] == [own]
    assert main(["nothing-like-it"]) == 1
    assert capsys.readouterr().err.startswith("parlour: There is no trace 'nothing-like-it'.")


def test_signs_that_steer_a_terminal_never_reach_it(file: Path, capsys: pytest.CaptureFixture[str]):
    with trace_to(file):
        calls = [("break_down", {"text": "\x1b[2J\x07\u202e"})]
        agent(Reply(calls=calls), "No.", tools=[break_down], name="Evil\x1b]0;x\x07").ask("?")
    assert main([only(file).id, "--file", str(file)]) == 0
    told = capsys.readouterr().out
    assert "break_down" in told
    assert not any(sign in told for sign in ("\x1b", "\x07", "\u202e"))


def test_without_a_trace_nothing_of_it_is_loaded(tmp_path: Path):
    program = (
        "import sys; from core import BasicAgent; from core.testing.scripted_model import ScriptedModel;"
        "print(BasicAgent(llm=ScriptedModel('Yes.')).ask('?').text);"
        "print([one for one in sys.modules if one.startswith('opentelemetry') or one == 'core.export.traces'])"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, cwd=tmp_path, env=env)
    assert done.stdout.decode().splitlines() == ["Yes.", "[]"]


def test_a_folder_in_place_of_the_file_is_told_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SettingsError, match="cannot be read"):
        traces_in(tmp_path)
    assert main(["--file", str(tmp_path)]) == 1
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    "broken",
    [
        {"began": float("inf")},
        {"began": 1e300},
        {"seconds": float("inf")},
        {"attributes": [1]},
        {"details": "said"},
        {"details": {"arguments": [1]}},
        {"attributes": {"gen_ai.usage.input_tokens": "many"}},
        {"attributes": {"gen_ai.response.time_to_first_chunk": [1]}},
    ],
)
def test_a_line_that_nobody_can_read_does_not_hide_the_others(
    file: Path, capsys: pytest.CaptureFixture[str], broken: dict[str, Any]
):
    whole = {"trace": "a1", "id": "b1", "kind": "agent", "name": "Whole", "began": 1.0, "seconds": 1.0}
    lines = [whole, {**whole, "trace": "a2", "name": "Broken", **broken}]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    assert main(["--file", str(file)]) == 0
    assert "Whole" in capsys.readouterr().out
    assert main(["a1", "--file", str(file)]) == 0
