"""Skills: folders with a `SKILL.md` that tells a model how to do something, read when it is needed.

The form is that of https://agentskills.io/specification: a head in YAML with `name` and `description`, then the
instructions in Markdown; beside it, files that these speak of, such as scripts.

>>> FnCallAgent(function_list=skills_in("skills"))
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import tempfile
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from core.errors import BadArgumentsError, SettingsError, shown
from core.tools.base import BaseTool, BaseToolWithFileAccess, ToolResult
from core.tools.builtin.code_interpreter import CodeInterpreter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_FILE: Final = "SKILL.md"
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_FENCE: Final = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_LONGEST_NAME: Final = 64
_LONGEST_DESCRIPTION: Final = 1024
_LONGEST_HEAD: Final = 16_384
_LARGEST_TEXT: Final = 256 * 1024  # bytes of one file that a model reads
_LARGEST: Final = 20 * 1024 * 1024  # bytes of all files of one skill, where a script is run
_MOST: Final = 100
_MOST_FILES: Final = 200
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill.

    Args:
        name: As its folder is called: lower-case letters, figures and hyphens.
        description: What it does, and when it is of use.
        folder: Where it is.
        text: Its instructions, in Markdown.
    """

    name: str
    description: str
    folder: Path
    text: str

    def files(self) -> list[str]:
        """The paths of the files beside its instructions, within its folder; links and hidden files are left out."""
        found: list[str] = []
        for path in sorted(self.folder.rglob("*")):
            inside = path.relative_to(self.folder)
            if any(part.startswith(".") or part == "__pycache__" for part in inside.parts):
                continue
            if path.is_symlink() or any((self.folder / one).is_symlink() for one in inside.parents):
                continue
            if path.is_file() and inside.as_posix() != _FILE:
                found.append(inside.as_posix())
            if len(found) == _MOST_FILES:
                break
        return found

    def path_of(self, name: str) -> Path:
        """The file of that path.

        Raises:
            BadArgumentsError: The skill has none; the sentence says which it has.
        """
        known, asked = self.files(), str(PurePosixPath(name.strip()))
        if asked not in known:
            has = f"It has: {', '.join(known)}." if known else "It has no files."
            raise BadArgumentsError(f"The skill {self.name!r} has no file {name!r}. {has}", field="file")
        return self.folder / asked


def find_skills(folder: str | Path, *, strict: bool = True) -> list[Skill]:
    """The skills of a folder: each is a folder in it with a `SKILL.md`; the folder may be a skill itself.

    Args:
        strict: Whether a skill that breaks the form is an error; else it is left out, and said in the log.

    Raises:
        SettingsError: There is no such folder, it has more than 100 skills, or one of them breaks the form.
    """
    if not isinstance(folder, str | Path) or not str(folder).strip():  # pyright: ignore[reportUnnecessaryIsInstance] - a program gives it
        said = f"folder must be the path of a folder of skills, not {shown(folder)}."
        raise SettingsError(said, hint='Write skills_in("skills").', name="folder")
    root = Path(folder)
    if not root.is_dir():
        raise SettingsError(
            f"There is no folder of skills {str(folder)!r}.", hint="Name one that has folders with a SKILL.md."
        )
    places = [root] if (root / _FILE).is_file() else sorted(path for path in root.iterdir() if (path / _FILE).is_file())
    if len(places) > _MOST:
        raise SettingsError(f"The folder {str(folder)!r} has more than {_MOST} skills.", hint="Give fewer of them.")
    found: list[Skill] = []
    for place in places:
        about = (place / _FILE).stat()
        one = _kept(place, about.st_mtime_ns, about.st_size)
        if isinstance(one, Skill):
            found.append(one)
        elif strict:
            raise SettingsError(one, hint="Mend its SKILL.md.")
    return found


@lru_cache(maxsize=4 * _MOST)  # a page looks for its skills with each question, and tells of a broken one once
def _kept(place: Path, _changed: int, _size: int) -> Skill | str:
    """The skill, or why it cannot be used."""
    try:
        return _read(place)
    except ValueError as error:
        said = f"The skill {place / _FILE} cannot be used: {error}."
        _log.warning("%s", said)
        return said


def skills_in(folder: str | Path, *, only: Sequence[str] | None = None) -> list[BaseTool]:
    """The tools that let an agent use the skills of a folder: one to read them, and one to run their scripts, if any.

    Args:
        folder: The folder, or one skill.
        only: The names of those that it uses; all of them by default.

    Raises:
        SettingsError: As `find_skills`; or there is none, or none of a name in `only`.
    """
    found = find_skills(folder)
    if not found:
        raise SettingsError(
            f"The folder {str(folder)!r} has no skill.", hint="A skill is a folder in it with a SKILL.md."
        )
    found = _chosen(found, only, strict=True)
    cfg = {"skills": found}
    return [UseSkill(cfg), RunSkill(cfg)] if any(_scripts(one) for one in found) else [UseSkill(cfg)]


def parse_skill(text: str) -> tuple[dict[str, Any], str]:
    """The head of a `SKILL.md` as a mapping (an empty one where it is none), and what stands below it.

    Raises:
        ValueError: It has no head, or the head is no YAML; the message says what is wrong.
    """
    fence = _FENCE.match(text)
    if fence is None:
        raise ValueError("it must begin with a head between two lines '---'")
    if len(fence[1]) > _LONGEST_HEAD:
        raise ValueError("its head is too long")
    yaml: Any = import_module("yaml")
    try:
        events = list(yaml.parse(fence[1], Loader=yaml.SafeLoader))
        if any(isinstance(one, yaml.AliasEvent) for one in events):  # a short text could expand into a huge one
            raise ValueError("its head uses aliases")
        head: object = yaml.safe_load(fence[1])
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"its head is no YAML: {getattr(error, 'problem', None) or 'nested too deep'}") from error
    fields = cast("dict[str, Any]", head) if isinstance(head, dict) else {}
    return fields, text[fence.end() :].strip()


def _read(folder: Path) -> Skill:
    """Raises ValueError, which says what is wrong."""
    place = folder / _FILE
    try:
        if place.stat().st_size > _LARGEST_TEXT:
            raise ValueError(f"it is larger than {_LARGEST_TEXT // 1024} kB")
        written = place.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError("it is not in UTF-8") from error
    except OSError as error:
        raise ValueError(f"it cannot be read ({error.strerror})") from error
    head, text = parse_skill(written)
    name, description = head.get("name"), head.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise ValueError("its name must be lower-case letters and figures, with single hyphens between them")
    if name != folder.resolve().name:
        raise ValueError(f"its name {name!r} must be that of its folder, {folder.resolve().name!r}")
    if not isinstance(description, str) or not 0 < len(description.strip()) <= _LONGEST_DESCRIPTION:
        raise ValueError(f"its description must be a text of at most {_LONGEST_DESCRIPTION} characters")
    return Skill(name, " ".join(description.split()), folder, text)


def _scripts(skill: Skill) -> list[str]:
    return [name for name in skill.files() if name.endswith(".py")]


def _chosen(found: Sequence[Skill], only: object, *, strict: bool) -> Sequence[Skill]:
    """The skills that `only` names; all of them where it is left out. Raises SettingsError."""
    if only is None:
        return found
    wanted = cast("Sequence[object]", only) if isinstance(only, list | tuple) else [only]
    known = [one.name for one in found]
    if strict and (isinstance(only, str) or not wanted or any(name not in known for name in wanted)):
        strays: list[object] = [only] if isinstance(only, str) else [name for name in wanted if name not in known]
        said = f"only must be a list of names of skills, and {shown(strays[0] if strays else only)} is none."
        raise SettingsError(said, hint=f"Give one or more of {', '.join(known)}.", name="only")
    return [one for one in found if one.name in wanted]


class _OverSkills(BaseToolWithFileAccess):
    """What both tools share: the skills that there are.

    Args:
        cfg: Options; `folder` names the folder of the skills, unless `skills` gives them. Without, there are none.
            `only` names those that count, `without` those that do not; all of them do by default.

    Raises:
        SettingsError: As `find_skills`; or the folder has no skill, or none of a name in `only`.
    """

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        given = dict(cfg or {})
        found: Sequence[Skill] | None = given.pop("skills", None)
        if found is None and (folder := given.get("folder")):
            found = find_skills(folder, strict=bool(given.get("strict", True)))
        if found is not None and not found:
            hint = "A skill is a folder with a SKILL.md."
            raise SettingsError(f"The folder {str(given.get('folder'))!r} has no skill.", hint=hint)
        only, without = given.pop("only", None), given.pop("without", ())
        chosen = _chosen(found or (), only, strict=bool(given.get("strict", True)))
        self.skills = {one.name: one for one in chosen if one.name not in without}
        self.parameters = self._parameters()
        super().__init__(given)

    def _parameters(self) -> dict[str, Any]:
        raise NotImplementedError

    def _which(self) -> dict[str, Any]:
        """The parameter that names a skill."""
        one_of = {"enum": list(self.skills)} if self.skills else {}
        return {"type": "string", **one_of, "description": "Which skill."}

    def _skill(self, arguments: Mapping[str, Any]) -> Skill:
        """Raises BadArgumentsError."""
        skill = self.skills.get(str(arguments.get("name", "")))
        if skill is None:
            known = ", ".join(self.skills) or "none"
            raise BadArgumentsError(f"There is no skill {arguments.get('name')!r}. There are: {known}.", field="name")
        return skill


class UseSkill(_OverSkills):
    """Reads the instructions of a skill, or a file beside them."""

    name = "use_skill"
    labels: ClassVar[Mapping[str, str]] = {"en": "Use a skill", "zh": "使用技能"}
    wishes: ClassVar[Mapping[str, str]] = {"en": "read a skill", "zh": "读取技能"}
    safe_output = True
    deduplicate = True
    longest = _LARGEST_TEXT

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        rows = "\n".join(f"- {one.name}: {one.description}" for one in self.skills.values())
        self.description = (
            "Returns the instructions of a skill, or a file that they speak of. When one of these fits the task, read "
            f"it first and do as it says:\n{rows}"
        )

    def _parameters(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {
                "name": self._which(),
                "file": {"type": "string", "description": "A file of the skill, in place of its instructions."},
            },
            "required": ["name"],
        }

    async def call(  # pyright: ignore[reportIncompatibleMethodOverride] - the base's keywords, each by name
        self, params: str | dict[str, Any], files: list[str] | None = None, **kwargs: Any
    ) -> ToolResult:
        """Read it.

        Raises:
            BadArgumentsError: There is no such skill or file, or the file is no text or too large.
        """
        del files, kwargs
        arguments = self._verify_json_format_args(params)
        skill = self._skill(arguments)
        if name := str(arguments.get("file") or ""):
            return ToolResult(await asyncio.to_thread(_text_of, skill, name))
        beside = await asyncio.to_thread(skill.files)
        listed = "\n\nFiles of this skill:\n" + "\n".join(f"- {one}" for one in beside) if beside else ""
        return ToolResult(skill.text + listed)


class RunSkill(_OverSkills):
    """Runs a Python script of a skill in the sandbox of the code interpreter, with the user's files around it.

    Args:
        cfg: As of `UseSkill`.
        interpreter: Where it runs; one of its own if left out.
    """

    name = "run_skill_script"
    description = (
        "Runs a Python script of a skill in a sandbox without network and returns what it prints and the files it "
        "writes. The user's files lie in its current folder. Read the skill first."
    )
    labels: ClassVar[Mapping[str, str]] = {"en": "Run a skill's script", "zh": "运行技能脚本"}
    wishes: ClassVar[Mapping[str, str]] = {"en": "run a script of a skill", "zh": "运行技能中的脚本"}
    runs_code = True
    idempotent = False
    timeout = CodeInterpreter.timeout

    def __init__(self, cfg: Mapping[str, Any] | None = None, *, interpreter: CodeInterpreter | None = None) -> None:
        super().__init__(cfg)
        self._interpreter = interpreter or CodeInterpreter()

    @property
    def has_scripts(self) -> bool:
        """Whether any skill has a script that could be run."""
        return any(_scripts(one) for one in self.skills.values())

    def _parameters(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {
                "name": self._which(),
                "script": {"type": "string", "description": "The script, such as scripts/fill.py."},
                "arguments": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "What stands after its name on a command line.",
                },
            },
            "required": ["name", "script"],
        }

    async def call(  # pyright: ignore[reportIncompatibleMethodOverride] - the base's keywords, each by name
        self,
        params: str | dict[str, Any],
        files: list[str] | None = None,
        *,
        progress: Callable[..., None] | None = None,
        **kwargs: Any,
    ) -> ToolResult:
        """Run it.

        Raises:
            BadArgumentsError: An argument is none of these, there is no such skill, it has no such script, or all its
                files are larger than 20 MB.
            ToolError: There is no sandbox here, or all kernels are busy.
        """
        del kwargs
        arguments = self._verify_json_format_args(params)
        takes = [*self._parameters()["properties"]]
        unknown = next((one for one in arguments if one not in takes), None)
        if unknown is not None:
            said = f"{self.name} takes no {unknown!r}, but {', '.join(takes)}."
            raise BadArgumentsError(said, field=unknown)
        skill, script = self._skill(arguments), str(arguments["script"])
        known = await asyncio.to_thread(_scripts, skill)
        if script not in known:
            has = f"It has: {', '.join(known)}." if known else "It has none."
            raise BadArgumentsError(f"The skill {skill.name!r} has no Python script {script!r}. {has}", field="script")
        with tempfile.TemporaryDirectory(prefix="parlour-skill-") as folder:
            packed = Path(folder) / f"skill-{skill.name}.zip"
            await asyncio.to_thread(_pack, skill, packed)
            code = _program(packed.name, script, [str(one) for one in arguments.get("arguments") or ()])
            return await self._interpreter.call({"code": code}, files, progress=progress, beside={packed.name: packed})


def _text_of(skill: Skill, name: str) -> str:
    """Raises BadArgumentsError."""
    path = skill.path_of(name)
    try:
        if path.stat().st_size > _LARGEST_TEXT:
            raise BadArgumentsError(f"The file {name!r} is larger than {_LARGEST_TEXT // 1024} kB.", field="file")
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadArgumentsError(f"The file {name!r} is no text.", field="file") from error


def _pack(skill: Skill, target: Path) -> None:
    """Raises BadArgumentsError."""
    names = [_FILE, *skill.files()]
    if sum((skill.folder / name).stat().st_size for name in names) > _LARGEST:
        raise BadArgumentsError(f"The files of the skill {skill.name!r} are larger than {_LARGEST // 2**20} MB.")
    with zipfile.ZipFile(target, "w") as packed:
        for name in names:
            packed.writestr(zipfile.ZipInfo(name), (skill.folder / name).read_bytes())


_PROGRAM: Final = """
def _run_skill(packed, script, arguments):
    import os, runpy, sys, tempfile, zipfile
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(packed) as files:
            files.extractall(folder)
        place = os.path.join(folder, script)
        before, sys.argv = sys.argv, [place, *arguments]
        sys.path.insert(0, os.path.dirname(place))
        try:
            runpy.run_path(place, run_name="__main__")
        except SystemExit as end:
            if end.code not in (None, 0):
                print(f"The script ended with: {end.code}")
        finally:
            sys.argv = before
            sys.path.remove(os.path.dirname(place))

"""


def _program(packed: str, script: str, arguments: list[str]) -> str:
    """The code that unpacks a skill and runs its script as a command line would."""
    given = ", ".join(json.dumps(one) for one in (packed, script))
    return f"{_PROGRAM}_run_skill({given}, {json.dumps(arguments)})\n"
