"""Qwen-Agent's settings: its variables of the environment, and what they are where none is set."""

from __future__ import annotations

import ast
import os
from typing import Any


def _number(name: str, usual: int) -> int:
    return int(os.environ.get(f"QWEN_AGENT_{name}", usual))


DEFAULT_MAX_INPUT_TOKENS = _number("DEFAULT_MAX_INPUT_TOKENS", 58_000)
MAX_LLM_CALL_PER_RUN = _number("MAX_LLM_CALL_PER_RUN", 20)
DEFAULT_WORKSPACE = os.environ.get("QWEN_AGENT_DEFAULT_WORKSPACE", "workspace")
DEFAULT_MAX_REF_TOKEN = _number("DEFAULT_MAX_REF_TOKEN", 20_000)
DEFAULT_PARSER_PAGE_SIZE = _number("DEFAULT_PARSER_PAGE_SIZE", 500)
DEFAULT_RAG_KEYGEN_STRATEGY = os.environ.get("QWEN_AGENT_DEFAULT_RAG_KEYGEN_STRATEGY", "GenKeyword")
DEFAULT_RAG_SEARCHERS: list[str] = ast.literal_eval(
    os.environ.get("QWEN_AGENT_DEFAULT_RAG_SEARCHERS", "['keyword_search', 'front_page_search']")
)

_MODEL = {
    "QWEN_AGENT_DEFAULT_MAX_INPUT_TOKENS": {"max_input_tokens": DEFAULT_MAX_INPUT_TOKENS},
    "QWEN_AGENT_USE_RAW_API": {"use_raw_api": os.environ.get("QWEN_AGENT_USE_RAW_API", "").lower() == "true"},
}
_DOCUMENTS = {
    "QWEN_AGENT_DEFAULT_MAX_REF_TOKEN": {"max_ref_token": DEFAULT_MAX_REF_TOKEN},
    "QWEN_AGENT_DEFAULT_PARSER_PAGE_SIZE": {"parser_page_size": DEFAULT_PARSER_PAGE_SIZE},
    "QWEN_AGENT_DEFAULT_RAG_KEYGEN_STRATEGY": {"rag_keygen_strategy": DEFAULT_RAG_KEYGEN_STRATEGY},
    "QWEN_AGENT_DEFAULT_RAG_SEARCHERS": {"rag_searchers": DEFAULT_RAG_SEARCHERS},
}
_KEYS: dict[str, tuple[str, dict[str, str]]] = {
    "SERPER_API_KEY": ("web_search", {"provider": "serper", "api_key": os.environ.get("SERPER_API_KEY", "")}),
    "AMAP_TOKEN": ("amap_weather", {"token": os.environ.get("AMAP_TOKEN", "")}),
}


def _set(table: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {name: value for variable, one in table.items() if variable in os.environ for name, value in one.items()}


GENERATE_CFG: dict[str, Any] = _set(_MODEL)
"""What variables say about every model."""
RAG_CFG: dict[str, Any] = _set(_DOCUMENTS)
"""What variables say about documents."""
TOOL_CFG: dict[str, dict[str, str]] = {tool: cfg for name, (tool, cfg) in _KEYS.items() if os.environ.get(name)}
"""What variables say about tools, by their names."""
CALLS: dict[str, Any] = _set({"QWEN_AGENT_MAX_LLM_CALL_PER_RUN": {"max_iteration": MAX_LLM_CALL_PER_RUN}})
"""What a variable says about every agent."""
WORK_DIR: str = DEFAULT_WORKSPACE if "QWEN_AGENT_DEFAULT_WORKSPACE" in os.environ else ""
"""Where tools keep their files; "" for the usual place."""
