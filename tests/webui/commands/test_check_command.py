"""`parlour check` and `parlour schema`: a line for each problem, in both languages, and a schema that is current."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from core.agents.config.problems import SENTENCES as CONFIG
from core.agents.config.schema import AgentConfig
from core.batch.problems import SENTENCES as BATCH
from webui.__main__ import main
from webui.words import Words

ROOT = Path(__file__).resolve().parents[3]
GOOD = "model: scripted\ntools: [calculator]\n"


@pytest.fixture(autouse=True)
def english_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "en_GB.UTF-8")


def checked(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[str]]:
    code = main(["check", *map(str, arguments)])
    said = capsys.readouterr()
    return code, (said.out + said.err).splitlines()


def written(folder: Path, text: str, name: str = "agent.yaml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_a_good_file_is_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, GOOD)
    assert checked(capsys, path) == (0, [f"{path}: nothing is wrong."])


def test_each_problem_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "max_iteration: 100\nstratgy: cot\n")
    assert checked(capsys, path) == (
        1,
        [
            f"{path}: The field max_iteration must be from 1 to 99.",
            f"{path}: There is no field stratgy; did you mean strategy?",
        ],
    )


def test_what_only_shows_when_it_is_made_is_said_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "provider: opnai\nmodel: m\ntools: [calculater]\nprompt: Help {{who}}.\n")
    code, lines = checked(capsys, path)
    assert code == 1
    assert len(lines) == 3
    assert "Did you mean 'openai'" in lines[0]
    assert "who" in lines[1]
    assert "Did you mean 'calculator'" in lines[2]
    assert len(checked(capsys, path, "--var", "who=me")[1]) == 2


def test_fields_that_are_wrong_hide_nothing_else_that_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "max_iteration: 100\nstratgy: cot\nmodel: scripted\ntools: [calculater]\nfiles: [gone.pdf]\n"
    code, lines = checked(capsys, path := written(tmp_path, text))
    assert code == 1
    assert lines == [
        f"{path}: The field max_iteration must be from 1 to 99.",
        f"{path}: There is no field stratgy; did you mean strategy?",
        f"{path}: There is no tool named 'calculater'. Did you mean 'calculator'?",
        f"{path}: {lines[3].partition(': ')[2]}",
    ]
    assert "gone.pdf" in lines[3]


def test_what_hangs_on_a_wrong_field_is_not_called_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    member = "{name: a, description: d, model: scripted, tools: [clock], strategy: magic}"
    text = f"type: Routr\nllm: {{temperature: hot}}\nagents: [{member}]\nsystem_message: a\nprompt: Help {{{{who}}}}.\n"
    said = "\n".join(checked(capsys, written(tmp_path, text))[1])
    for told in ("type", "llm.temperature", "agents[0].strategy", "prompt", "who", "'clock'"):
        assert told in said
    assert len(said.splitlines()) == 6, said


def test_chinese_by_option_and_by_the_terminals_language(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "model: scripted\ntools: [calculater]\n")
    expected = f"{path}: 没有名为 calculater 的工具。你是不是想写 calculator？"
    assert checked(capsys, path, "--lang", "zh")[1] == [expected]
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert checked(capsys, path)[1] == [expected]
    written(tmp_path, "strategy: magic\n")
    assert checked(capsys, path)[1] == [f"{path}: 字段 strategy 必须是 'function_call' 或 'cot'。"]
    assert "nothing" not in checked(capsys, written(tmp_path, GOOD))[1][0]


def test_two_agents_of_one_name_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [written(tmp_path, f"name: Ann\n{GOOD}", name) for name in ("a.yaml", "b.yaml")]
    code, lines = checked(capsys, *files)
    assert code == 1
    assert lines[-1].endswith(f"Two agents are named Ann: {files[0]} and {files[1]}.")


def test_documents_that_cannot_be_read_are_named_with_where_they_were_sought(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.txt").touch()
    (tmp_path / "song.mp3").write_bytes(b"ID3\x04\x00\x00\x00")
    written(tmp_path, "What storms do.\n", "there.md")
    given = "[there.md, https://example.org/a.pdf, gone.pdf, folder, empty.txt, song.mp3]"
    path = written(tmp_path, f"{GOOD}files: {given}\n")
    code, lines = checked(capsys, path)
    assert code == 1
    assert lines == [
        f"{path}: The field files[2] names a document that is not there: {tmp_path / 'gone.pdf'}.",
        f"{path}: The field files[3] names what is no file: {tmp_path / 'folder'}.",
        *(
            f"{path}: The field files[{n}] names a document that is empty, locked or of no kind that is read: "
            f"{tmp_path / name}."
            for n, name in ((4, "empty.txt"), (5, "song.mp3"))
        ),
    ]
    chinese = checked(capsys, path, "--lang", "zh")[1]
    assert chinese[0] == f"{path}: 字段 files[2] 指定的文档不存在：{tmp_path / 'gone.pdf'}。"
    assert (
        chinese[2]
        == f"{path}: 字段 files[4] 指定的文档是空的、有密码保护，或是无法读取的类型：{tmp_path / 'empty.txt'}。"
    )


def test_a_document_of_a_member_is_looked_at_and_one_of_the_home_folder_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    written(tmp_path, "What storms do.\n", "there.md")
    path = written(tmp_path, "type: router\nmodel: scripted\nagents: [{name: Ann, files: ['~/there.md', b.md]}]\n")
    assert checked(capsys, path)[1] == [
        f"{path}: The field agents[0].files[1] names a document that is not there: {tmp_path / 'b.md'}."
    ]


def test_a_group_is_checked_with_all_its_members(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, "name: Ann\nmodel: scripted\ntools: [calculater]\n", "ann.yaml")
    team = "type: router\nmodel: scripted\nagents: [ann.yaml, {name: Bob, prompt: 'Help {{who}}.'}]\n"
    path = written(tmp_path, team)
    code, lines = checked(capsys, path)
    assert code == 1
    assert len(lines) == 2
    assert "Did you mean 'calculator'" in lines[0]
    assert "who" in lines[1]
    written(tmp_path, f"name: Ann\n{GOOD}", "ann.yaml")
    assert checked(capsys, path, "--var", "who=me")[0] == 0
    circle = written(tmp_path, "type: router\nagents: [agent.yaml]\n")
    assert checked(capsys, circle, "--lang", "zh")[1] == [
        f"{circle}: 这些智能体会自己带领自己：agent.yaml → agent.yaml。"
    ]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_a_file_says_steers_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str], lang: str) -> None:
    path = written(tmp_path, json.dumps({"model": "scripted", "tools": ["\x1b[31m\u202etool"]}), "agent.json")
    said = "".join(checked(capsys, path, "--lang", lang)[1])
    assert "tool" in said
    assert said.isprintable()


@pytest.mark.parametrize("text", ["", "model: [", "- 1"])
def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    code, lines = checked(capsys, written(tmp_path, text))
    assert code == 1
    assert len(lines) == 1


def test_a_key_that_is_missing_is_told_and_one_that_is_there_is_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "provider: openai\nmodel: m\nllm: {api_key: '${PARLOUR_TEST_KEY}'}\n")
    assert "PARLOUR_TEST_KEY" in checked(capsys, path)[1][0]
    monkeypatch.setenv("PARLOUR_TEST_KEY", "sk-secret")
    assert checked(capsys, path)[0] == 0


def test_arguments_that_are_wrong_are_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["check"], ["check", "a.yaml", "--var", "x"], ["batch"], ["schema", "x"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_every_sentence_is_there_in_both_languages() -> None:
    for key in [*CONFIG, *BATCH]:
        assert f"error.{key}" in Words("en")
        assert f"error.{key}" in Words("zh")


def test_the_published_schema_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    published = (ROOT / "docs" / "agent.schema.json").read_text(encoding="utf-8")
    assert capsys.readouterr().out == published, "run: parlour schema > docs/agent.schema.json"


@pytest.mark.parametrize(
    ("config", "fine"),
    [
        ({"model": "m", "tools": ["calculator", {"tool_name": "web_search"}], "prompt": "x", "llm": "m"}, True),
        ({"llm": {"model": "m", "generate_cfg": {"temperature": 0.5, "top_k": 3}}, "rag_cfg": {"top_k": 3}}, True),
        ({"max_iteration": 100}, False),
        ({"strategy": "magic"}, False),
        ({"tols": []}, False),
        ({"tools": [{"provider_type": "x"}]}, False),
        ({"type": "parallel_doc_qa", "part_tokens": 300}, True),
        ({"type": "router", "agents": [{"name": "Ann", "type": "ReActChat"}]}, True),
        ({"type": "ruter"}, False),
        ({"type": "router", "agents": [{"name": "Ann", "tols": []}]}, False),
    ],
)
def test_the_schema_says_what_the_configuration_says(config: dict[str, Any], fine: bool) -> None:
    schema = AgentConfig.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert jsonschema.Draft202012Validator(schema).is_valid(config) is fine
    try:
        AgentConfig.of(config)
    except ValueError:
        assert not fine
    else:
        assert fine
