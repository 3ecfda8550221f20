"""Tools under the names that they have in Qwen-Agent: `tools`, `tools.base`, `tools.web_search` and so on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core import TOOL_REGISTRY, BaseTool, BaseToolWithFileAccess, register_tool
from core.errors import ToolError as ToolServiceError
from core.tools.builtin.amap_weather import AmapWeather
from core.tools.builtin.code_interpreter import CodeInterpreter, PythonExecutor
from core.tools.builtin.doc_parser import DocParser, ExtractDocVocabulary, SimpleDocParser
from core.tools.builtin.document_search import FrontPageSearch, HybridSearch, KeywordSearch, Retrieval, VectorSearch
from core.tools.builtin.image_gen import ImageGen
from core.tools.builtin.image_zoom_in_tool import ImageZoomInTool as ImageZoomInToolQwen3VL
from core.tools.builtin.storage import Storage
from core.tools.builtin.web_extractor import WebExtractor
from core.tools.builtin.web_search import ImageSearch, WebSearch

if TYPE_CHECKING:
    from core import MCPManager

__path__: list[str] = []  # `tools.base` and so on are this module

__all__ = [
    "TOOL_REGISTRY",
    "AmapWeather",
    "BaseTool",
    "BaseToolWithFileAccess",
    "CodeInterpreter",
    "DocParser",
    "ExtractDocVocabulary",
    "FrontPageSearch",
    "HybridSearch",
    "ImageGen",
    "ImageSearch",
    "ImageZoomInToolQwen3VL",
    "KeywordSearch",
    "MCPManager",
    "PythonExecutor",
    "Retrieval",
    "SimpleDocParser",
    "Storage",
    "ToolServiceError",
    "VectorSearch",
    "WebExtractor",
    "WebSearch",
    "register_tool",
]


def __getattr__(name: str) -> Any:
    """`MCPManager`, which needs the extra `mcp`: tools of a program's own do not."""
    if name == "MCPManager":
        from core import MCPManager

        return MCPManager
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
