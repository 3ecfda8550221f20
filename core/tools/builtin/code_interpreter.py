"""Runs Python for a model, in a sandbox, with a memory from one call to the next."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import quote

from core.errors import BadArgumentsError
from core.messages.content import ContentItem
from core.tools.arguments import extract_code
from core.tools.base import BaseToolWithFileAccess, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from core.tools.sandbox.results import CodeResult, Made
    from core.tools.sandbox.runner import CodeRunner


_LONGEST: Final = 200_000
_WITHIN: Final = 120.0
_BESIDE: Final = 45.0  # seconds for starting a kernel, and for breaking off what does not end
_PARAMETERS: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"code": {"type": "string", "description": "Python code, as in a cell of a notebook."}},
    "required": ["code"],
}


class CodeInterpreter(BaseToolWithFileAccess):
    """A notebook's cell, run in a sandbox without network; variables stay for the next call.

    Args:
        cfg: Options; `work_dir` is where a program finds what code makes, `timeout` are the seconds of a call.
        kernels: Where the code runs; left out, this process has its own, which end with it.
        key: The conversation whose variables are meant; without it, this tool has its own.
        files: Makes the files that the code finds in its folder files of this machine, by name.
    """

    name = "code_interpreter"
    description = (
        "Runs Python code in a sandbox and returns what it prints, its last value, plots and the files it writes. "
        "Use it for data, files, plots and longer calculations. Variables stay for the next call. numpy, pandas and "
        "matplotlib are there; the user's files lie in the current folder; there is no network. "
        "Show plots with plt.show()."
    )
    parameters = _PARAMETERS
    labels: ClassVar[Mapping[str, str]] = {"en": "Run Python", "zh": "运行 Python"}
    wishes: ClassVar[Mapping[str, str]] = {"en": "run Python code", "zh": "运行 Python 代码"}
    runs_code = True
    idempotent = False
    timeout = _WITHIN + _BESIDE

    def __init__(
        self,
        cfg: Mapping[str, Any] | None = None,
        *,
        kernels: CodeRunner | None = None,
        key: str = "",
        owner: str = "",
        files: Callable[[], AbstractAsyncContextManager[Mapping[str, Path]]] | None = None,
    ) -> None:
        super().__init__(cfg)
        self._within = float(self.cfg.get("timeout", _WITHIN))
        self.timeout = self._within + _BESIDE
        self._kernels, self._files = kernels, files
        self._key, self._owner = key or secrets.token_hex(8), owner

    @property
    def args_format(self) -> str:
        """Models that write calls as text put code into a fence."""
        return str(self.cfg.get("args_format", "Put the code into a ``` fence."))

    async def call(  # pyright: ignore[reportIncompatibleMethodOverride] - the base's keywords, each by name
        self,
        params: str | dict[str, Any],
        files: list[str] | None = None,
        *,
        progress: Callable[..., None] | None = None,
        beside: Mapping[str, Path] | None = None,
        **kwargs: Any,
    ) -> ToolResult:
        """Run the code: as `{"code": …}`, in a fence, or bare.

        Args:
            params: The code.
            files: Files of this machine that it finds in its folder, where it has no others.
            progress: Called with what it prints.
            beside: Further files that it finds there, by name.

        Raises:
            BadArgumentsError: There is no code, or too much.
            ToolError: There is no sandbox here, or all kernels are busy.
        """
        del kwargs
        code = extract_code(params if isinstance(params, str) else json.dumps(params, ensure_ascii=False))
        if not code.strip():
            raise BadArgumentsError("The field 'code' is empty.", field="code")
        if len(code) > _LONGEST:
            raise BadArgumentsError(f"The code is longer than {_LONGEST} characters.", field="code")
        if self._kernels is not None:
            none: Mapping[str, Path] = {}
            async with self._files() if self._files is not None else nullcontext(none) as mine:
                given = {**mine, **(beside or {})}
                result = await self._kernels.run(
                    self._key, code, owner=self._owner, files=given, timeout=self._within, progress=progress
                )
            # In a thread: pictures and files of many megabytes become text.
            items = await asyncio.to_thread(lambda: [_whole(made, kind) for made, kind in _kinds(result)])
            return _told(result, items)
        from core.tools.sandbox.kernels import run_here

        local = {path.name: path for file in files or [] if (path := Path(file.removeprefix("file://"))).is_file()}
        result = await run_here(self._key, code, {**local, **(beside or {})}, self._within, progress)
        return _told(result, await asyncio.to_thread(self._kept, _kinds(result)))

    def _kept(self, made: Sequence[tuple[Made, str]]) -> list[ContentItem]:
        """What was made as files of the program, under names that nobody inside chose."""
        folder = Path(self.work_dir)
        items: list[ContentItem] = []
        for one, kind in made:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{secrets.token_hex(6)}-{one.name}"
            path.write_bytes(one.data)
            items.append(ContentItem(**{kind: str(path.resolve())}))
        return items


def _told(result: CodeResult, items: list[ContentItem]) -> ToolResult:
    """The result with a line on what it brought, since most models see no pictures."""
    lines = [result.text] if result.text else []
    if result.pictures:
        lines.append(f"[{_count(len(result.pictures), 'picture')}, shown to the user]")
    if result.files:
        names = ", ".join(one.name for one in result.files)
        lines.append(f"[{_count(len(result.files), 'file')}, handed to the user: {names}]")
    text = "\n".join(lines) or "Finished execution, no output."
    extra = {"failed": "code_failed"} if result.failed else {}
    return ToolResult(text, tuple(items), extra=extra)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _kinds(result: CodeResult) -> list[tuple[Made, str]]:
    """All that was made, as pictures to be shown or files to be taken.

    A plot is often saved and shown, too: where something was shown, what was saved is a file.
    """
    shown = [(made, "image") for made in result.pictures]
    return [*shown, *((made, "file" if shown else _kind(made)) for made in result.files)]


def _whole(made: Made, kind: str) -> ContentItem:
    data = base64.b64encode(made.data).decode("ascii")
    return ContentItem(**{kind: f"data:{made.media_type};name={quote(made.name)};base64,{data}"})


def _kind(made: Made) -> str:
    return "image" if made.media_type in {"image/png", "image/jpeg"} else "file"


class PythonExecutor(CodeInterpreter):
    """The code interpreter by another name."""

    name = "python_executor"
    labels: ClassVar[Mapping[str, str]] = {"en": "Run Python", "zh": "运行 Python"}
