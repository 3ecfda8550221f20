"""A batch: an agent, the questions that are left, and the file that their answers go to."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self, cast

from core.agents.mapping import Answer, ask_agent
from core.batch.problems import BatchError
from core.errors import ParlourError
from core.llm.concurrency import in_order
from core.messages.message import FUNCTION, Usage
from core.storage.data_folder import drafted
from core.tools.approval import Guard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    from filelock import BaseFileLock

    from core.agents.base import Agent
    from core.batch.questions import BatchQuestion
    from core.tools.approval import Policy


_START = b'{"id": '


class AnswerFile:
    """The file; a context manager, within which no other batch writes to it.

    A row has `id` and `mark` of its question, and `answer` or `error`. A question whose row has an answer is not asked
    again. Rows with an error, those of a question that was changed since, and a last line that was torn when the
    process was killed, make room for new ones; all others stay, those of other questions too.

    Args:
        path: Made where there is none; its folder must be there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None
        self._lock: BaseFileLock | None = None

    def left(self, questions: Iterable[BatchQuestion]) -> list[BatchQuestion]:
        """The questions without an answer, in their order. The file is mended.

        Raises:
            BatchError: A line of the file is no answer; the file stays as it is.
            OSError: It cannot be read or written.
        """
        asked = {question.id: question for question in questions}
        kept: list[bytes] = []
        answered: set[str] = set()
        before = self.path.read_bytes() if self.path.is_file() else b""
        for row, written in self._rows(before):
            name = str(row["id"])
            stale = name in asked and ("error" in row or row.get("mark") != asked[name].mark)
            if not stale and name not in answered:
                kept.append(written + b"\n")
                answered.add(name)
        if (whole := b"".join(kept)) != before:
            self._replace(whole)
        return [question for question in asked.values() if question.id not in answered]

    def add(self, row: Mapping[str, Any]) -> None:
        """Write a row; it is in the file when this returns. Raises OSError."""
        if self._file is None:
            self._file = self.path.open("ab", buffering=0)
        line = json.dumps(row, ensure_ascii=False, default=str).encode(errors="replace") + b"\n"
        while line:  # a disk that is nearly full takes a part
            line = line[self._file.write(line) or 0 :]

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._lock is not None:
            with suppress(OSError):  # where an open file cannot be removed it stays, and is in nobody's way
                Path(self._lock.lock_file).unlink()
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        """Raises BatchError where another batch writes to the file, OSError where its folder cannot be written."""
        from filelock import FileLock, Timeout  # here, for those who only ask

        home = self.path.resolve()
        if home.parent.is_dir():  # else the first answer says what is wrong
            lock = FileLock(home.with_name(f".{home.name}.lock"))
            try:
                lock.acquire(blocking=False)
            except Timeout:
                raise BatchError("batch_in_use", file=self.path.name) from None
            self._lock = lock
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _rows(self, written: bytes) -> Iterable[tuple[Mapping[str, Any], bytes]]:
        *lines, last = written.split(b"\n")
        for number, line in enumerate([*lines, last], 1):
            if not line.strip():
                continue
            row = _row(line)
            if row is not None:
                yield row, line
            elif number <= len(lines) or not (line.startswith(_START) or _START.startswith(line)):
                raise BatchError("batch_no_answer", file=self.path.name, line=number)

    def _replace(self, whole: bytes) -> None:
        """Put the rows in place of the file, so that there is never half of them."""
        home = self.path.resolve()  # a link stays one
        with drafted(home) as draft:
            draft.write_bytes(whole)


def _row(line: bytes) -> Mapping[str, Any] | None:
    try:
        row: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    own: Mapping[str, Any] = cast("Mapping[str, Any]", row) if isinstance(row, dict) else {}
    return own if isinstance(own.get("id"), str) and ("answer" in own or "error" in own) else None


@dataclass(slots=True)
class Tally:
    """How far a batch has come.

    Args:
        total: Questions to ask in this run.
        there: Questions that had an answer before.
        answered: Those that have one now.
        failed: Those whose row is an error.
        usage: Tokens and cost of this run.
        first_error: What the first failure was.
    """

    total: int
    there: int = 0
    answered: int = 0
    failed: int = 0
    usage: Usage = field(default_factory=Usage)
    first_error: ParlourError | None = None

    @property
    def done(self) -> int:
        """Questions of this run that are over."""
        return self.answered + self.failed


async def run_batch(  # noqa: PLR0913 - four things, and by name how
    agent: Agent,
    questions: Sequence[BatchQuestion],
    file: AnswerFile,
    tally: Tally,
    *,
    concurrency: int,
    policy: Guard | Policy,
    told: Callable[[Tally], None] | None = None,
) -> None:
    """Ask the questions and write each answer as it comes; one that fails is a row with its error.

    Cancelled, what is done is in the file, and what is under way is not.

    Args:
        agent: Who answers.
        tally: Kept up to date.
        concurrency: How many are asked at the same time.
        policy: Decides about the calls; what it would ask about is refused, for nobody is there. The `rules` of a
            guard are read anew at each call.
        told: Called after each question.

    Raises:
        SettingsError: `concurrency` is below 1.
        OSError: An answer cannot be written.
    """
    guard = Guard.of(policy)

    async def ask(question: BatchQuestion) -> None:
        try:
            answer = await ask_agent(agent, question.messages, approval=guard)
        except ParlourError as error:
            file.add(_failed(question, error))
            tally.failed += 1
            tally.first_error = tally.first_error or error
        else:
            file.add(_answer(question, answer))
            tally.answered += 1
            tally.usage += answer.usage or Usage()
        if told is not None:
            told(tally)

    await in_order(ask, questions, concurrency, keep_errors=False)


def _answer(question: BatchQuestion, answer: Answer) -> dict[str, Any]:
    results = [message for message in answer.messages if message.role == FUNCTION]
    row: dict[str, Any] = {
        "id": question.id,
        "mark": question.mark,
        "question": question.text,
        "answer": answer.text,
        "seconds": round(answer.seconds, 3),
    }
    if answer.usage is not None:
        row["usage"] = answer.usage.model_dump()
    if results:
        row["tools"] = [message.name for message in results]
    failures = [(one.name, str((one.extra or {}).get("failed") or "")) for one in results]
    if refused := [name for name, why in failures if why.startswith("refused")]:
        row["refused"] = refused
    if any(why == "call_limit" for _, why in failures):
        row["stopped"] = "call_limit"
    passages = [passage for message in answer.messages for passage in (message.extra or {}).get("passages") or ()]
    if passages:
        places = [{"document": one.get("document"), "page": one.get("page")} for one in passages]
        row["sources"] = [place for n, place in enumerate(places) if place not in places[:n]]
    return row


def _failed(question: BatchQuestion, error: ParlourError) -> dict[str, Any]:
    said = {"key": error.words_key, "message": str(error.args[0]) if error.args else "", "hint": error.hint}
    return {"id": question.id, "mark": question.mark, "question": question.text, "error": said}
