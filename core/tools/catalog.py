"""The tools there are, by name."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

from core.errors import SettingsError
from core.registry import Entry
from core.tools.base import BaseTool
from core.tools.plugins import ToolRegistry

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)

T = TypeVar("T", bound=type[BaseTool])

TOOL_REGISTRY = ToolRegistry(
    "tool",
    {
        "amap_weather": Entry("core.tools.builtin.amap_weather:AmapWeather"),
        "calculator": Entry("core.tools.builtin.calculator:Calculator"),
        "code_interpreter": Entry("core.tools.builtin.code_interpreter:CodeInterpreter", extra="code"),
        "current_time": Entry("core.tools.builtin.current_time:CurrentTime"),
        "doc_parser": Entry("core.tools.builtin.doc_parser:DocParser"),
        "extract_doc_vocabulary": Entry("core.tools.builtin.extract_doc_vocabulary:ExtractDocVocabulary"),
        "front_page_search": Entry("core.tools.builtin.document_search:FrontPageSearch"),
        "hybrid_search": Entry("core.tools.builtin.document_search:HybridSearch"),
        "image_gen": Entry("core.tools.builtin.image_gen:ImageGen"),
        "image_search": Entry("core.tools.builtin.image_search:ImageSearch"),
        "image_zoom_in_tool": Entry("core.tools.builtin.image_zoom_in_tool:ImageZoomInTool"),
        "python_executor": Entry("core.tools.builtin.python_executor:PythonExecutor", extra="code"),
        "keyword_search": Entry("core.tools.builtin.document_search:KeywordSearch"),
        "retrieval": Entry("core.tools.builtin.document_search:Retrieval"),
        "simple_doc_parser": Entry("core.tools.builtin.simple_doc_parser:SimpleDocParser"),
        "storage": Entry("core.tools.builtin.storage:Storage"),
        "vector_search": Entry("core.tools.builtin.document_search:VectorSearch"),
        "web_extractor": Entry("core.tools.builtin.web_extractor:WebExtractor"),
        "web_search": Entry("core.tools.builtin.web_search:WebSearch"),
    },
)
"""The tools, by name: a mapping. Naming them imports nothing; `register_tool` adds one."""


class ToolNameError(SettingsError, ValueError):
    """A tool's name is taken, or two names contradict each other."""


def register_tool(name: str, allow_overwrite: bool = False) -> Callable[[T], T]:  # noqa: FBT001, FBT002 - the seed's signature
    """A decorator that puts a `BaseTool` class under `name`; `allow_overwrite` lets it take the place of another.

    Raises:
        ToolNameError: The name is taken, or the class already has another one. It is a `ValueError` too.
    """

    def add(cls: T) -> T:
        if cls.name and cls.name != name:
            raise ToolNameError(f"{cls.__name__} is named {cls.name!r}, which conflicts with {name!r}.")
        if name in TOOL_REGISTRY:
            if not allow_overwrite:
                raise ToolNameError(
                    f"There is already a tool named {name!r}.",
                    hint="Choose another name, or pass allow_overwrite=True.",
                )
            _log.warning("The tool %r already exists; %s takes its place.", name, cls.__name__)
        cls.name = name
        TOOL_REGISTRY.add(name, cls)
        return cls

    return add
