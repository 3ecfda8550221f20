"""`parlour batch`: answers as they come, going on after a kill, refusals, cost, and exit codes."""

from __future__ import annotations

import io
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.batch.job import Tally
from core.messages.message import Usage
from core.testing.model_server import ModelServer
from core.testing.script import Reply, Request, refusal
from tests.webui.commands.own_terminal import Terminal
from webui.__main__ import main
from webui.commands.batch import summary
from webui.commands.command_line import ProgressLine
from webui.words import Words


def echo(request: Request) -> Reply:
    said = request["messages"][-1]["content"]
    return refusal(400, "No.") if said == "bad" else Reply(text=f"You said {said}.", usage=(10, 2))


@pytest.fixture
def service() -> Iterator[ModelServer]:
    with ModelServer(echo) as server:
        yield server


def agent(folder: Path, server: ModelServer, **more: Any) -> Path:
    llm = {"model": "scripted", "model_server": server.base_url, "api_key": "any"}
    path = folder / "agent.json"
    path.write_text(json.dumps({"llm": llm, "system_message": "", **more}), encoding="utf-8")
    return path


def asked(folder: Path, *questions: object) -> Path:
    path = folder / "q.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in questions), encoding="utf-8")
    return path


def rows(folder: Path, name: str = "q.answers.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]


def batch(*arguments: object) -> int:
    return main(["batch", *map(str, arguments), "--lang", "en"])


def test_every_question_has_a_row(tmp_path: Path, service: ModelServer, capsys: pytest.CaptureFixture[str]) -> None:
    path = asked(tmp_path, "one", {"id": "b", "question": "two"}, {"messages": [{"role": "user", "content": "three"}]})
    assert batch(path, "--agent", agent(tmp_path, service), "--concurrency", 1) == 0
    answers = rows(tmp_path)
    assert [row["answer"] for row in answers] == ["You said one.", "You said two.", "You said three."]
    assert answers[1]["id"] == "b"
    assert answers[0]["usage"]["total_tokens"] == 12
    said = capsys.readouterr()
    assert said.out == ""
    assert "3 answered, 0 failed, 0 were done before" in said.err
    assert "30 tokens asked and 6 answered" in said.err


def test_a_table_and_a_list_of_one_name_have_answers_of_their_own(tmp_path: Path, service: ModelServer) -> None:
    config = agent(tmp_path, service)
    (tmp_path / "q.csv").write_text("question\ntwo\n", encoding="utf-8")
    for path in (asked(tmp_path, "one"), tmp_path / "q.csv"):
        assert batch(path, "--agent", config) == 0
    answers = [rows(tmp_path, name)[0]["answer"] for name in ("q.answers.jsonl", "q.csv.answers.jsonl")]
    assert answers == ["You said one.", "You said two."]


def test_a_group_that_a_file_describes_answers_too(tmp_path: Path) -> None:
    team = {"type": "group_chat", "agent_selection_method": "round_robin", "agents": [{"name": "Ann"}, "bob.yaml"]}
    (tmp_path / "bob.yaml").write_text("name: Bob\nllm: {model_type: scripted, script: [Bob speaks.]}\n", "utf-8")
    team["llm"] = {"model_type": "scripted", "script": ["Ann speaks."]}
    (tmp_path / "team.json").write_text(json.dumps(team), "utf-8")
    assert batch(asked(tmp_path, "one"), "--agent", tmp_path / "team.json") == 0
    assert "Bob speaks." in rows(tmp_path)[0]["answer"]


def test_a_second_run_asks_what_is_left(
    tmp_path: Path, service: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    config = agent(tmp_path, service)
    path = asked(tmp_path, *"abcde")
    assert batch(path, "--agent", config, "--limit", 2) == 0
    assert "2 answered, 0 failed, 0 were done before" in capsys.readouterr().err
    assert batch(path, "--agent", config) == 0
    assert "3 answered, 0 failed, 2 were done before" in capsys.readouterr().err
    assert sorted(row["question"] for row in rows(tmp_path)) == list("abcde")
    assert len(service.requests) == 5


def test_a_question_that_fails_is_a_row_and_is_asked_again(
    tmp_path: Path, service: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    config = agent(tmp_path, service)
    path = asked(tmp_path, "a", {"id": "x", "question": "bad"}, "c")
    assert batch(path, "--agent", config, "--concurrency", 1) == 1
    assert [("error" in row, "answer" in row) for row in rows(tmp_path)] == [
        (False, True),
        (True, False),
        (False, True),
    ]
    assert "The first failure: Error code: 400. No." in capsys.readouterr().err
    asked(tmp_path, "a", {"id": "x", "question": "good"}, "c")
    assert batch(path, "--agent", config) == 0
    assert [row["answer"] for row in rows(tmp_path)][-1] == "You said good."
    assert len(rows(tmp_path)) == 3


def test_what_would_ask_is_refused_unless_it_is_allowed(tmp_path: Path) -> None:
    put = Reply(calls=[("storage", {"operate": "put", "key": "k", "value": "v"})])
    tools = [{"name": "storage", "parameters": {"storage_root_path": str(tmp_path / "kept")}}]
    for name, arguments in (("no", ()), ("yes", ("--allow", "stor*"))):
        with ModelServer([put, Reply(text="over")]) as server:
            config = agent(tmp_path, server, tools=tools)
            assert (
                batch(asked(tmp_path, "keep v"), "--agent", config, "--out", tmp_path / f"{name}.jsonl", *arguments)
                == 0
            )
    refused, allowed = rows(tmp_path, "no.jsonl")[0], rows(tmp_path, "yes.jsonl")[0]
    assert refused["refused"] == ["storage"]
    assert allowed["tools"] == ["storage"]
    assert "refused" not in allowed


def test_a_row_says_that_the_agent_had_to_stop(tmp_path: Path) -> None:
    again = Reply(calls=[("calculator", {"expression": "1+1"})])
    with ModelServer(again) as server:
        config = agent(tmp_path, server, tools=["calculator"], max_iteration=1)
        assert batch(asked(tmp_path, "count"), "--agent", config) == 0
    assert rows(tmp_path)[0]["stopped"] == "call_limit"


def test_nothing_is_asked_where_a_line_is_broken(
    tmp_path: Path, service: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('"a"\n{"question"\n', encoding="utf-8")
    assert batch(path, "--agent", agent(tmp_path, service)) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "Line 2 of q.jsonl" in said[0]
    assert not service.requests
    assert not (tmp_path / "q.answers.jsonl").exists()


def test_questions_are_never_overwritten(tmp_path: Path, service: ModelServer) -> None:
    path = asked(tmp_path, "a")
    before = path.read_bytes()
    assert batch(path, "--agent", agent(tmp_path, service), "--out", path) == 1
    assert path.read_bytes() == before


def test_a_folder_that_is_not_there_is_said(
    tmp_path: Path, service: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    config = agent(tmp_path, service)
    assert batch(asked(tmp_path, "a"), "--agent", config, "--out", tmp_path / "none" / "a.jsonl") == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("parlour: The file")


def test_without_an_agent_parlours_own_model_answers(
    tmp_path: Path, service: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARLOUR_BASE_URL", service.base_url)
    monkeypatch.setenv("PARLOUR_MODEL", "scripted")
    assert batch(asked(tmp_path, "a")) == 0
    assert rows(tmp_path)[0]["answer"] == "You said a."


def test_progress_is_one_line_on_a_screen() -> None:
    class Screen:
        text = ""

        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            self.text += text
            return len(text)

        def flush(self) -> None:
            pass

    screen = Screen()
    line = ProgressLine(Words("en"), screen)  # pyright: ignore[reportArgumentType]
    for done in (1, 2):
        line.tell(Tally(total=2, answered=done))
    line.end()
    assert screen.text == "\r1 of 2 questions, 0 failed\r2 of 2 questions, 0 failed\n"


def test_a_file_of_progress_has_a_line_at_the_start_and_each_half_minute_and_says_how_long_it_takes() -> None:
    now, file = [0.0], io.StringIO()
    line = ProgressLine(Words("en"), file, clock=lambda: now[0])
    for seconds, done in ((0, 0), (5, 1), (20, 2), (40, 3), (45, 4), (300, 100)):
        now[0] = seconds
        line.tell(Tally(total=100, answered=done))
    line.end()
    assert file.getvalue().splitlines() == [
        "0 of 100 questions, 0 failed",
        "3 of 100 questions, 0 failed, about 21 min 33 s left",
        "100 of 100 questions, 0 failed",
    ]


class Slow:
    """Answers the first questions, and lets the others wait."""

    def __init__(self, quick: int) -> None:
        self.quick = quick

    def __call__(self, request: Request) -> Reply:
        number = int(request["messages"][-1]["content"])
        return Reply(text=f"{number}", usage=(1, 1), hang=number >= self.quick)


def started(folder: Path, config: Path) -> Terminal:
    given = ["batch", str(folder / "q.jsonl"), "--agent", str(config), "--concurrency", "1", "--lang", "en"]
    return Terminal(*given, stderr=subprocess.PIPE)


def wait_for_lines(process: Terminal, wanted: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if line.decode().startswith(wanted):
            return
    raise AssertionError(f"It ended before it said {wanted!r}.")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_batch_that_is_broken_off_goes_on(tmp_path: Path, how: signal.Signals) -> None:
    script = Slow(quick=3)
    asked(tmp_path, *[str(number) for number in range(5)])
    with ModelServer(script) as server:
        config = agent(tmp_path, server)
        with started(tmp_path, config) as process:
            wait_for_lines(process, "3 of 5")
            process.send_signal(how)
            rest = process.communicate(timeout=30)[1].decode()
        assert process.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL)
        assert ("2 are left" in rest) is (how == signal.SIGINT)
        assert "Traceback" not in rest
        assert [row["answer"] for row in rows(tmp_path)] == ["0", "1", "2"]
        with (tmp_path / "q.answers.jsonl").open("ab") as torn:
            torn.write(b'{"id": "half an ans')
        script.quick = 5
        before = sum(1 for one in server.requests if one.messages[-1]["content"] in {"0", "1", "2"})
        assert batch(tmp_path / "q.jsonl", "--agent", config) == 0
        assert sum(1 for one in server.requests if one.messages[-1]["content"] in {"0", "1", "2"}) == before
    assert sorted(row["answer"] for row in rows(tmp_path)) == list("01234")


@pytest.mark.parametrize(
    ("lang", "said"),
    [
        ("en", ["2 are left", "About 1,200 tokens asked and 30 answered, US$ 0.0125."]),
        ("zh", ["还剩 2 个", "约 提问 1,200 个 token，回答 30 个 token，费用 0.0125 美元。"]),
    ],
)
def test_the_end_tells_what_is_left_and_what_it_cost(lang: Any, said: list[str]) -> None:
    usage = Usage(prompt_tokens=1200, completion_tokens=30, total_tokens=1230, cost=0.0125, estimated=True)
    lines = summary(Tally(total=3, answered=1, usage=usage), Path("a.jsonl"), Words(lang))
    assert lines[1].startswith(said[0])
    assert lines[-1] == said[1]
