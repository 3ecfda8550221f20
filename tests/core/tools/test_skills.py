"""Skills: folders that tell a model how to do something; read when needed, and their scripts run in the sandbox."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.agents.basic import FnCallAgent
from core.errors import BadArgumentsError, SettingsError
from core.messages.message import FUNCTION
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.builtin.code_interpreter import CodeInterpreter
from core.tools.builtin.skills import RunSkill, UseSkill, find_skills, parse_skill, skills_in

pytestmark = pytest.mark.anyio

HEAD = "---\nname: {name}\ndescription: Fills in forms. Use it when a form is to be filled in.\nlicense: MIT\n---\n"
SCRIPT = """
import sys
from helper import shout
print(shout(" ".join(sys.argv[1:])))
open("filled.txt", "w").write("done")
sys.exit(3)
"""


def skill(folder: Path, name: str = "forms", text: str | None = None) -> Path:
    """A skill with a script that needs a module beside it, a text, and what no skill may bring."""
    place = folder / name
    (place / "scripts").mkdir(parents=True)
    (place / "SKILL.md").write_text(HEAD.format(name=name) + "# How\n\nFirst read fields.md." if text is None else text)
    (place / "fields.md").write_text("# Fields")
    (place / "logo.png").write_bytes(b"\x89PNG\xff")
    (place / "scripts/fill.py").write_text(SCRIPT)
    (place / "scripts/helper.py").write_text("def shout(text):\n    return text.upper()\n")
    (place / ".secret").write_text("hidden")
    (place / "outside.txt").symlink_to("/etc/passwd")
    return place


async def test_a_model_reads_the_skill_that_fits_and_then_a_file_of_it(tmp_path: Path):
    skill(tmp_path)
    calls = [("use_skill", {"name": "forms"})], [("use_skill", {"name": "forms", "file": "fields.md"})]
    model = ScriptedModel(*(Reply(calls=one) for one in calls), "Done.")
    reply = FnCallAgent(function_list=skills_in(tmp_path), llm=model).run_nonstream([{"role": "user", "content": "Hi"}])
    results = [one["content"] for one in reply if one["role"] == FUNCTION]
    listed = "- fields.md\n- logo.png\n- scripts/fill.py\n- scripts/helper.py"
    assert results == [f"# How\n\nFirst read fields.md.\n\nFiles of this skill:\n{listed}", "# Fields"]
    told = (model.requests[0].functions or [])[0]["description"]
    assert told.endswith("\n- forms: Fills in forms. Use it when a form is to be filled in.")


async def test_a_script_runs_in_the_sandbox_as_on_a_command_line_and_what_it_writes_comes_back(tmp_path: Path):
    skill(tmp_path)
    runner = RunSkill({"folder": tmp_path}, interpreter=CodeInterpreter({"work_dir": str(tmp_path / "made")}))
    result = await runner.call({"name": "forms", "script": "scripts/fill.py", "arguments": ["a", 'b "c"']})
    assert result.text.startswith('A B "C"\nThe script ended with: 3')
    assert "filled.txt" in result.text
    assert len(result.items) == 1  # and not the skill's own files


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name": "other"}, "name"),
        ({"name": "forms", "file": "../forms/fields.md"}, "has no file"),
        ({"name": "forms", "file": "/etc/passwd"}, "has no file"),
        ({"name": "forms", "file": "outside.txt"}, "has no file"),
        ({"name": "forms", "file": ".secret"}, "has no file"),
        ({"name": "forms", "file": "logo.png"}, "is no text"),
    ],
)
async def test_nothing_but_the_files_of_the_skill_can_be_read(tmp_path: Path, arguments: dict[str, str], said: str):
    skill(tmp_path)
    with pytest.raises(BadArgumentsError, match=said):
        await UseSkill({"folder": tmp_path}).call(arguments)


async def test_only_its_own_scripts_are_run(tmp_path: Path):
    skill(tmp_path)
    for script in ("fields.md", "../x.py", "scripts/none.py"):
        with pytest.raises(BadArgumentsError, match=r"It has: scripts/fill\.py, scripts/helper\.py"):
            await RunSkill({"folder": tmp_path}).call({"name": "forms", "script": script})
    misnamed = {"name": "forms", "script": "scripts/fill.py", "args": ["a"]}
    with pytest.raises(BadArgumentsError, match="takes no 'args', but name, script, arguments"):
        await RunSkill({"folder": tmp_path}).call(misnamed)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# No head", "must begin with a head"),
        ("---\nname: forms\n", "must begin with a head"),
        ("---\n- a\n---\n", "its name must be"),
        ("---\nname: [\n---\n", "its head is no YAML"),
        ("---\nname: &a forms\ndescription: *a\n---\n", "uses aliases"),
        ("---\nname: Forms\ndescription: x\n---\n", "its name must be lower-case"),
        ("---\nname: other\ndescription: x\n---\n", "must be that of its folder, 'forms'"),
        ("---\nname: forms\ndescription: ''\n---\n", "its description must be"),
        (f"---\nname: forms\ndescription: {'x' * 1025}\n---\n", "its description must be"),
    ],
)
def test_what_breaks_the_form_is_named_to_a_program_and_left_out_on_the_page(tmp_path: Path, text: str, said: str):
    skill(tmp_path, text=text)
    with pytest.raises(SettingsError, match=said):
        find_skills(tmp_path)
    skill(tmp_path, "good")
    assert [one.name for one in find_skills(tmp_path, strict=False)] == ["good"]


def test_a_folder_without_skills_is_an_error_and_a_skill_without_scripts_needs_no_sandbox(tmp_path: Path):
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(SettingsError):
            skills_in(folder)
    place = tmp_path / "plain"
    place.mkdir()
    (place / "SKILL.md").write_text(HEAD.format(name="plain"))
    assert [one.name for one in skills_in(place)] == ["use_skill"]


@given(st.text() | st.text().map(lambda text: f"---\n{text}\n---\nbody"))
def test_whatever_a_skill_says_it_is_read_or_refused_in_a_sentence(text: str):
    with suppress(ValueError):
        head, body = parse_skill(text)
        assert isinstance(head, dict)
        assert body == body.strip()


def test_an_agent_may_have_some_of_a_folders_skills(tmp_path: Path):
    skill(tmp_path, "forms")
    skill(tmp_path, "letters")
    assert list(UseSkill({"folder": tmp_path}).skills) == ["forms", "letters"]
    reads, *_ = skills_in(tmp_path, only=["letters"])
    assert reads.function["parameters"]["properties"]["name"]["enum"] == ["letters"]
    made = FnCallAgent([{"name": "use_skill", "folder": str(tmp_path), "only": ["forms"]}], ScriptedModel("So."))
    assert list(getattr(made.function_map["use_skill"], "skills", {})) == ["forms"]


@pytest.mark.parametrize(
    ("only", "given"), [(["leters"], "'leters'"), ("letters", "'letters'"), ([], "a list"), ([5], "5")]
)
def test_a_skill_that_is_not_there_is_one_sentence_with_those_that_are(tmp_path: Path, only: list[str], given: str):
    skill(tmp_path, "forms")
    skill(tmp_path, "letters")
    with pytest.raises(SettingsError) as raised:
        skills_in(tmp_path, only=only)
    assert str(raised.value) == (
        f"only must be a list of names of skills, and {given} is none. Give one or more of forms, letters."
    )
