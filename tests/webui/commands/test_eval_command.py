"""`parlour eval`: reports, exit codes, comparison, what is wrong in a sentence, and going on."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.errors import ParlourError
from core.judging.problems import SENTENCES
from core.judging.result import SuiteRun
from core.judging.run import evaluate
from core.testing.model_server import ModelServer
from core.testing.script import Reply, Request, refusal
from tests.webui.commands.own_terminal import Terminal
from webui.__main__ import main
from webui.commands.command_line import sentence
from webui.commands.eval import report_names
from webui.words import Words

ROOT = Path(__file__).resolve().parents[3]


def echo(request: Request) -> Reply:
    return Reply(text=f"You said {request['messages'][-1]['content']}", usage=(10, 2))


@pytest.fixture
def service() -> Iterator[ModelServer]:
    with ModelServer(echo) as server:
        yield server


def agent(folder: Path, server: ModelServer) -> Path:
    llm = {"model": "scripted", "model_server": server.base_url, "api_key": "any"}
    path = folder / "agent.json"
    path.write_text(json.dumps({"llm": llm}), encoding="utf-8")
    return path


def suite(folder: Path, *tasks: Any, **more: Any) -> Path:
    path = folder / "s.json"
    path.write_text(json.dumps({"tasks": tasks, **more}), encoding="utf-8")
    return path


def task(name: str, contains: str) -> dict[str, Any]:
    return {"id": name, "question": f"Say {name}.", "checks": [{"contains": contains}]}


def evaluated(*arguments: object, lang: str = "en") -> int:
    return main(["eval", *map(str, arguments), "--lang", lang])


def test_the_share_that_passes_decides_the_exit_code(
    tmp_path: Path, service: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    path = suite(tmp_path, task("one", "one"), task("two", "three"))
    given = [path, "--agent", agent(tmp_path, service), "--out", tmp_path / "o"]
    assert evaluated(*given) == 1
    said = capsys.readouterr().err
    assert f"1 of 2 passed (50%): {tmp_path / 'o' / 'report-s.html'}" in said
    assert "That is less than 100%." in said
    assert evaluated(*given, "--at-least", 0.5, lang="zh") == 0
    assert "2 个任务中通过 1 个（50%）" in capsys.readouterr().err
    assert len(service.requests) == 2  # the second run had its replies from the folder
    report = (tmp_path / "o" / "report-s.md").read_text(encoding="utf-8")
    assert report.startswith("# s: 1 / 2 通过 (50%)")
    assert "没有变化。" in report
    suite(tmp_path, task("one", "one"), task("three", "three"))
    assert evaluated(*given) == 0
    assert {"New: three", "Gone: two"} <= set(capsys.readouterr().err.splitlines())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tasks": []}, ["parlour: The field tasks must not be empty."]),
        (
            {"tasks": [{"id": "a", "question": "?", "checks": [{"cotains": "x"}, {"regex": 3}]}]},
            [
                "parlour: There is no field tasks[0].checks[0].cotains; did you mean contains?",
                "parlour: The field tasks[0].checks[1].regex must be a text.",
            ],
        ),
    ],
)
def test_each_thing_that_is_wrong_is_a_line(
    tmp_path: Path, given: Any, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(given), encoding="utf-8")
    assert evaluated(path, "--out", tmp_path / "o") == 1
    assert capsys.readouterr().err.splitlines() == said
    assert not (tmp_path / "o").exists()


def test_an_agent_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = suite(tmp_path, task("a", "a"))
    assert evaluated(path, "--agent", tmp_path / "no.yaml", "--out", tmp_path / "o") == 1
    assert capsys.readouterr().err == f"parlour: There is no file {tmp_path / 'no.yaml'}.\n"


def test_a_suite_is_a_file_or_one_that_comes_along(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluated("simples", "--out", tmp_path) == 1
    assert "there is samples." in capsys.readouterr().err
    assert evaluated(tmp_path / "no.yaml", "--out", tmp_path) == 1
    assert "There is no file" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        evaluated("samples", "--at-least", "80")
    assert ended.value.code == 2
    assert "must be a number from 0 to 1" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "o").write_text("a file", encoding="utf-8")
    assert evaluated(suite(tmp_path, task("a", "a")), "--out", tmp_path / "o") == 1
    assert capsys.readouterr().err.startswith("parlour: The folder ")


def test_a_report_that_cannot_be_written_leaves_the_one_before_whole(
    tmp_path: Path, service: ModelServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [suite(tmp_path, task("one", "one")), "--agent", agent(tmp_path, service), "--out", tmp_path / "o"]
    assert evaluated(*given) == 0
    before = {name: (tmp_path / "o" / name).read_bytes() for name in report_names("s")}
    write = Path.write_text

    def half(path: Path, text: str, **more: Any) -> int:
        if "report" not in path.name:
            return write(path, text, **more)
        write(path, text[: len(text) // 2], **more)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", half)
    assert evaluated(*given, lang="zh") == 1
    assert "No space left on device" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in (tmp_path / "o").glob("*report*")} == before


def test_reports_of_suites_that_share_a_folder_stay_apart(tmp_path: Path, service: ModelServer) -> None:
    for name, asked in (("storms", "one"), ("floods", "two")):
        path = suite(tmp_path, task(asked, asked), name=name)
        assert evaluated(path, "--agent", agent(tmp_path, service), "--out", tmp_path / "o") == 0
    for name, other in (("storms", "floods"), ("floods", "storms")):
        for report in report_names(name):
            text = (tmp_path / "o" / report).read_text(encoding="utf-8")
            assert name in text
            assert other not in text
    assert report_names("samples") == ("report-samples.md", "report-samples.html")
    assert len({name for suite in ("a/b", "a b", "a:b", "", "x" * 99, "x" * 98) for name in report_names(suite)}) == 12
    assert all(Path(name).name == name for name in report_names("../a"))


def test_a_failure_in_the_terminal_names_nothing_of_the_page() -> None:
    for key in ("model_slow", "model_cut_off", "document_cancelled", "key_unreadable", "busy", "conflict"):
        said = sentence(ParlourError("It.", key=key, host="h", name="n"), Words("zh"))
        assert said == f"{Words('zh')(f'error.{key}', host='h', name='n')}。"
    assert sentence(ParlourError("It.", key="no_space"), Words("zh")).endswith(
        "请腾出空间后重新发送。已保存的内容都在。"
    )


def test_every_sentence_is_there_in_both_languages() -> None:
    for key in SENTENCES:
        assert f"error.{key}" in Words("en")
        assert f"error.{key}" in Words("zh")


def test_the_published_schema_of_a_suite_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "suite"]) == 0
    published = (ROOT / "docs" / "suite.schema.json").read_text(encoding="utf-8")
    assert capsys.readouterr().out == published, "run: parlour schema suite > docs/suite.schema.json"


def test_a_limit_and_a_time_end_a_run_that_the_next_one_goes_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = suite(tmp_path, *[task(name, name) for name in ("one", "two", "three")])
    hangs = ["two"]

    def script(request: Request) -> Reply:
        said = request["messages"][-1]["content"]
        return Reply(text=said, usage=(1, 1), hang=any(one in said for one in hangs))

    with ModelServer(script) as server:
        given = [path, "--agent", agent(tmp_path, server), "--out", tmp_path / "o"]
        assert evaluated(*given, "--limit", 1) == 0
        said = capsys.readouterr().err
        assert "1 of 1 passed (100%): " in said
        assert "Still to do: 2; start it again to go on." in said
        assert evaluated(*given, "--minutes", 0.02, "--concurrency", 1) == 0
        assert "Still to do: 2" in capsys.readouterr().err
        assert "1 of 1 passed (100%); not asked: 2" in (tmp_path / "o" / "report-s.md").read_text(encoding="utf-8")
        hangs.clear()
        assert evaluated(*given) == 0
        assert "Still to do" not in capsys.readouterr().err
        assert sum("one" in one.messages[-1]["content"] for one in server.requests) == 1


@pytest.mark.parametrize("against", [False, True])
def test_a_run_whose_time_is_over_before_anything_is_done_has_not_passed_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, against: bool
) -> None:
    path = suite(tmp_path, task("one", "one"))
    with ModelServer(lambda _: Reply(hang=True)) as server:
        asked = agent(tmp_path, server)
        given = [path, "--agent", asked, "--out", tmp_path / "o", *(["--against", asked] if against else [])]
        assert evaluated(*given, "--minutes", 0.02, "--at-least", 0) == 1
    said = capsys.readouterr().err.splitlines()
    report = tmp_path / "o" / "report-s.html"
    assert said[-2:] == [f"No task was asked to its end: {report}", "Still to do: 1; start it again to go on."]


def test_two_agents_of_which_one_was_stopped_before_a_task_of_the_other_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two, hangs = task("one", "one"), task("two", "two"), [False]
    with ModelServer(lambda request: Reply(text=request["messages"][-1]["content"], hang=hangs[0])) as server:
        asked, out = agent(tmp_path, server), tmp_path / "o"
        assert evaluated(suite(tmp_path, one, two), "--agent", asked, "--out", out / "against", "--limit", 1) == 0
        assert evaluated(suite(tmp_path, two, one), "--agent", asked, "--out", out, "--limit", 1) == 0
        capsys.readouterr()
        hangs[0] = True
        path = suite(tmp_path, one, two)
        assert evaluated(path, "--agent", asked, "--out", out, "--against", asked, "--minutes", 0.01) == 0
    assert "no task in common" not in capsys.readouterr().err


@pytest.mark.slow
def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    waits = [True]

    def script(request: Request) -> Reply:
        said = request["messages"][-1]["content"]
        return Reply(text=said, usage=(1, 1), hang=waits[0] and "three" in said)

    path = suite(tmp_path, *[task(name, name) for name in ("one", "two", "three")])
    with ModelServer(script) as server:
        config = agent(tmp_path, server)
        more = ["--out", str(tmp_path / "o"), "--concurrency", "1"]
        given = ["eval", str(path), "--agent", str(config), *more, "--lang", "en"]
        with Terminal(*given, stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            assert any(line.startswith(b"2 of 3") for line in process.stderr)
            rest = process.interrupt()
        assert process.returncode == 130
        report = tmp_path / "o" / "report-s.html"
        assert rest.splitlines() == [f"2 of 2 passed (100%): {report}", "Still to do: 1; start it again to go on."]
        assert "not asked: 1" in report.read_text(encoding="utf-8")
        waits[0] = False
        assert evaluated(path, "--agent", config, *more) == 0
        assert sum("one" in one.messages[-1]["content"] for one in server.requests) == 1


def test_a_service_that_fails_is_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ModelServer(lambda _: refusal(400, "No such model.")) as server:
        path = suite(tmp_path, task("one", "one"), task("two", "two"))
        assert evaluated(path, "--agent", agent(tmp_path, server), "--out", tmp_path / "o") == 1
        assert capsys.readouterr().err.count("The first failure: Error code: 400. No such model.") == 1


def test_a_report_says_what_failed_in_its_own_language(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = suite(tmp_path, task("one", "one"))
    with ModelServer(lambda _: refusal(400, "No such model.")) as server:
        given = [path, "--agent", agent(tmp_path, server), "--out", tmp_path / "o"]
        assert evaluated(*given) == 1
        assert "Error code: 400. No such model." in (tmp_path / "o" / "report-s.md").read_text(encoding="utf-8")
        capsys.readouterr()
        assert evaluated(*given, lang="zh") == 1
    said = "模型服务拒绝了请求（No such model）。"
    assert f"第一个失败：{said}" in capsys.readouterr().err
    for report in report_names("s"):
        assert f"失败：{said}" in (tmp_path / "o" / report).read_text(encoding="utf-8")


def test_an_agent_that_is_wrong_is_told_before_anything_runs(
    tmp_path: Path, service: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    own = agent(tmp_path, service)
    config = json.loads(own.read_text(encoding="utf-8"))
    own.write_text(json.dumps({**config, "tools": ["calculater"], "files": ["gone.md"]}), encoding="utf-8")
    agents = {"brief": {"tools": [], "files": []}}  # which is all that the suite asks
    path = suite(tmp_path, {**task("one", "one"), "agent": "brief"}, agents=agents)
    assert evaluated(path, "--agent", own, "--out", tmp_path / "o") == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert "Did you mean 'calculator'" in said[0]
    assert said[1].endswith(f"names a document that is not there: {tmp_path / 'gone.md'}.")
    assert service.requests == []
    assert not (tmp_path / "o" / "report-s.md").exists()


def test_the_smallest_built_in_model_that_passes_in_each_language_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(request: Request) -> Reply:
        fails = request["model"] == "smollm2-135m" and "北京" in str(request["messages"])
        return Reply(text="Sorry." if fails else "Yes, 是的。", usage=(10, 2))

    asked: list[str] = []

    def served(suite: Any, agent: Any, **more: Any) -> SuiteRun:
        llm = agent["llm"]
        assert llm["model_type"] == "llama_cpp"
        asked.append(llm["model"])
        llm = {"model": llm["model"], "model_server": server.base_url, "api_key": "any"}
        return evaluate(suite, {"llm": llm}, **more)

    monkeypatch.setattr("webui.commands.eval.evaluate", served)
    monkeypatch.setenv("PARLOUR_WEIGHTS_DIR", str(tmp_path / "weights"))
    path = suite(
        tmp_path,
        {"id": "en", "question": "Is it so?", "checks": [{"contains": "Yes"}], "lang": "en"},
        {"id": "zh", "question": "北京是首都吗？", "checks": [{"contains": "是的"}], "lang": "zh"},
    )
    names = "smollm2-135m,qwen2.5-coder-1.5b,qwen2.5-coder-0.5b"
    with ModelServer(answer) as server:
        assert evaluated(path, "--built-in", names, "--out", tmp_path / "o") == 0
        said = capsys.readouterr().out
        assert "smollm2-135m (98 MB): en 100%, zh 0%" in said
        assert said.endswith("The smallest that passes 100% in each language: qwen2.5-coder-0.5b\n")
        assert (tmp_path / "o" / "qwen2.5-coder-0.5b" / "report-s.md").is_file()
        assert evaluated(path, "--built-in", "smollm2-135m", "--out", tmp_path / "o", lang="zh") == 1
        assert "没有一个模型" in capsys.readouterr().out
    assert asked == [*names.split(","), "smollm2-135m"]
    assert evaluated(path, "--built-in", "smollm-2") == 1
    assert "smollm2-135m" in capsys.readouterr().err


def test_a_built_in_model_that_was_stopped_is_not_said_to_pass_whatever_was_asked_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hangs = ["one", "two"]

    def answer(request: Request) -> Reply:
        said = request["messages"][-1]["content"]
        return Reply(text=said, usage=(1, 1), hang=any(one in said for one in hangs))

    def served(suite: Any, _: Any, **more: Any) -> SuiteRun:
        return evaluate(suite, {"llm": {"model": "m", "model_server": server.base_url, "api_key": "any"}}, **more)

    monkeypatch.setattr("webui.commands.eval.evaluate", served)
    monkeypatch.setenv("PARLOUR_WEIGHTS_DIR", str(tmp_path / "weights"))
    path = suite(tmp_path, task("one", "one"), task("two", "two"))
    with ModelServer(answer) as server:
        given = [path, "--built-in", "smollm2-135m", "--out", tmp_path / "o", "--limit", 1]
        assert evaluated(*given, "--minutes", 0.01) == 1
        assert "smollm2-135m (98 MB): no task was asked to its end\n" in capsys.readouterr().out
        hangs.remove("one")
        assert evaluated(*given) == 0
        assert evaluated(*given, "--minutes", 0.01) == 1
        assert "en 100%" in capsys.readouterr().out


def test_a_pipeline_gets_junit_and_json_and_cases_come_of_answers(
    tmp_path: Path, service: ModelServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "checks_of_this_test.py").write_text(
        "def words(case, reply):\n    return float(len(reply.text.split()))\n"
    )
    own, asked = agent(tmp_path, service), suite(tmp_path, task("alpha", "alpha"), task("beta", "gamma"))
    given = (asked, "--agent", own, "--out", tmp_path / "out", "--junit", tmp_path / "deep" / "r.xml", "--json")
    code = evaluated(*given, "--evaluator", "checks_of_this_test:words", "--against", own)
    out = capsys.readouterr()
    told = json.loads(out.out)
    assert (code, told["passed"], told["of"], told["scores"]) == (1, 1, 2, {"words": 4.0})
    assert [(one["name"], one["difference"]) for one in told["differences"]] == [("passed", 0.0), ("words", 0.0)]
    assert "passed: 50% → 50%, +0% (95 % interval +0% to +0%, 2 tasks); exact test p = 1.000" in out.err
    assert '<failure type="contains"' in (tmp_path / "deep" / "r.xml").read_text()
    answers = tmp_path / "answers.jsonl"
    answers.write_text(json.dumps({"id": "x", "question": "Q?", "answer": "A."}))
    assert evaluated("cases.json", "--from", answers) == 0
    assert "1 cases stand in cases.json" in capsys.readouterr().err
    assert evaluated("cases.yaml", "--from", answers) == 1
    assert evaluated(asked, "--agent", own, "--evaluator", "nothing:here") == 1
    assert "There is no evaluator nothing:here" in capsys.readouterr().err
