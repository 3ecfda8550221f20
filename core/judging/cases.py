"""Cases made of replies: what an agent was asked, and what the answer had that was found right."""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from errno import ENOENT
from os import strerror
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from core.agents.config.reading import read_file
from core.agents.reply import Reply
from core.errors import SettingsError
from core.judging.checks import cited_places
from core.judging.problems import suite_problem
from core.judging.suite import Suite
from core.messages.message import USER
from core.storage.data_folder import drafted

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

_LONGEST: Final = 2_000  # characters of an answer that a judge is shown
_MOST_ROWS: Final = 10_000


def case_of(reply: Reply[Any], id: str, *, tags: Sequence[str] = ()) -> dict[str, Any]:
    """A task of a suite, made of a reply that was right.

    Its checks are the tools that were called and the places that were cited; a last one has a model judge whether
    another answer says the same. Leave out what does not matter.

    Args:
        reply: It.
        id: What reports call the task.
        tags: What it is counted under.

    Raises:
        SettingsError: It is no reply, or has no question or no answer.
    """
    if not isinstance(reply, Reply):  # pyright: ignore[reportUnnecessaryIsInstance] - a program gives it
        said = f"reply must be a Reply, not {type(reply).__name__}."
        raise SettingsError(said, hint="Pass what agent.ask(...) gives.", name="reply")
    if not reply.question.strip() or not reply.text.strip():
        missing = "question" if not reply.question.strip() else "answer"
        raise SettingsError(f"The reply has no {missing}, so it makes no case.", name="reply")
    asked = next(one for one in reversed(reply.asked) if one.role == USER)
    files = [item.value for item in asked.items if item.type == "file"]
    checks: list[dict[str, Any]] = [{"called": name} for name in dict.fromkeys(one.name for one in reply.calls)]
    cited = [{"document": name, **({"page": page} if page else {})} for name, page in cited_places(cast("Any", reply))]
    checks += [{"cites": cited}] if cited else []
    checks.append({"judged": same_as(reply.text)})
    case: dict[str, Any] = {"id": id, "question": reply.question, "checks": checks}
    return {**case, **({"files": files} if files else {}), **({"tags": list(tags)} if tags else {})}


def same_as(answer: str) -> str:
    """What a judge must find of an answer that is to say what another did."""
    text = answer.strip()
    shown = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return f"The answer says the same as this one, in whatever words: {shown}"


def cases_from(file: str | Path) -> list[dict[str, Any]]:
    """Tasks made of answers that `parlour batch` or `parlour eval` wrote: a line of JSON for each.

    Args:
        file: Such a file. Lines without an answer are left out.

    Raises:
        SettingsError: It cannot be read, or no line has an answer (key `suite_no_answers`).
    """
    path = Path(file)
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")[:_MOST_ROWS]  # a text may hold other ends of lines
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise suite_problem("suite_no_answers", file=str(path), why=why) from error
    cases: dict[str, dict[str, Any]] = {}
    for line in lines:
        try:
            row: Any = json.loads(line)
            name, question, answer = str(row["id"]), row["question"], row["answer"]
            tools = [str(one) for one in row.get("tools") or ()]
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
        if isinstance(question, str) and isinstance(answer, str) and question.strip() and answer.strip():
            checks: list[dict[str, Any]] = [{"called": one} for one in dict.fromkeys(tools)]
            cases[name] = {"id": name, "question": question, "checks": [*checks, {"judged": same_as(answer)}]}
    if not cases:
        raise suite_problem("suite_no_answers", file=str(path), why="no line has a question and an answer")
    return list(cases.values())


def add_cases(file: str | Path, cases: Iterable[dict[str, Any]]) -> Suite:
    """Put cases behind the tasks of a suite's file in JSON, which is made where it is not there.

    Programs that add at the same time wait for each other.

    Args:
        file: Its path, with the ending `.json`.
        cases: As `case_of` makes them. One whose id is there already takes its place.

    Raises:
        SettingsError: The file is none of JSON (key `suite_json`), or cannot be written.
        ConfigError: What comes of it is no suite.
    """
    path = Path(file)
    if path.suffix.lower() != ".json":
        raise suite_problem("suite_json", file=str(path))
    added = list(cases)  # before others wait for us: a program may still make them
    try:
        with _alone(path):
            there: dict[str, Any] = read_file(path) if path.exists() else {"name": path.stem, "tasks": []}
            whole = {**there, "tasks": _with(there.get("tasks") or [], added)}
            suite = Suite.of({"name": path.stem, **whole})
            _put(path, (json.dumps(whole, ensure_ascii=False, indent=2) + "\n").encode())
    except OSError as error:
        said = f"The suite cannot be written to {path}: {error.strerror or type(error).__name__}."
        raise SettingsError(said, name="file") from error
    return suite


@contextmanager
def _alone(path: Path) -> Generator[None]:
    """Keep other programs from the file as long as this one reads and writes it. Raises OSError."""
    from filelock import FileLock

    home = path.resolve()  # two names of one file are one lock
    if not home.parent.is_dir():
        raise FileNotFoundError(ENOENT, strerror(ENOENT))  # the lock would make the folder
    beside = home.with_name(f".{home.name}.lock")
    with FileLock(beside):
        try:
            yield
        finally:  # still locked: who has opened it meanwhile finds it gone, and makes another
            with suppress(OSError):
                beside.unlink()


def _put(path: Path, whole: bytes) -> None:
    """Write beside the file, then put that in its place, so that there is never half of it. Raises OSError."""
    home = path.resolve()  # a link stays one
    with drafted(home) as draft:
        draft.write_bytes(whole)


def _with(tasks: Any, cases: Iterable[dict[str, Any]]) -> Any:
    """The tasks with the cases; what is no task stays as it is, for the suite to say so."""
    if not isinstance(tasks, list):
        return tasks
    by_id: dict[Any, Any] = {}
    for at, one in enumerate((*cast("list[Any]", tasks), *cases)):
        has_id = isinstance(one, dict) and "id" in one
        by_id[str(cast("dict[str, Any]", one)["id"]) if has_id else at] = one
    return list(by_id.values())
