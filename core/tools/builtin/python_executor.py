"""Python under the name that some programs know, which there runs code without any sandbox; here it has one."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from core.tools.builtin.code_interpreter import CodeInterpreter

if TYPE_CHECKING:
    from collections.abc import Mapping


class PythonExecutor(CodeInterpreter):
    """The code interpreter by another name."""

    name = "python_executor"
    labels: ClassVar[Mapping[str, str]] = {"en": "Run Python", "zh": "运行 Python"}
