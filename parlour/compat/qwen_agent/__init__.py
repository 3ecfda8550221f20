"""Qwen-Agent's names: a program runs when `qwen_agent` in its imports becomes `parlour.compat.qwen_agent`.

Its many modules are six here: `agents.router`, `agents.doc_qa` and so on are all `agents`. docs/compatibility.md says
what is the same, what is better, and what has no counterpart.
"""

from __future__ import annotations

import sys

from parlour.same_modules import SameModules

_OURS: dict[str, tuple[str, ...]] = {
    "agents": (
        *("agent", "multi_agent_hub", "memory", "memory.memory"),
        *("agents.article_agent", "agents.assistant", "agents.dialogue_retrieval_agent", "agents.doc_qa"),
        *("agents.doc_qa.basic_doc_qa", "agents.doc_qa.parallel_doc_qa", "agents.fncall_agent", "agents.group_chat"),
        *("agents.group_chat_creator", "agents.react_chat", "agents.router", "agents.tir_agent", "agents.user_agent"),
        *("agents.virtual_memory_agent", "agents.write_from_scratch", "agents.writing"),
        *("agents.writing.continue_writing", "agents.writing.expand_writing", "agents.writing.outline_writing"),
    ),
    "gui": ("gui.web_ui",),
    "llm": ("llm.base", "llm.function_calling", "llm.schema"),
    "tools": (
        *("tools.amap_weather", "tools.base", "tools.code_interpreter", "tools.doc_parser"),
        *("tools.extract_doc_vocabulary", "tools.image_gen", "tools.image_search", "tools.image_zoom_in_qwen3vl"),
        *("tools.mcp_manager", "tools.python_executor", "tools.retrieval", "tools.search_tools"),
        *("tools.simple_doc_parser", "tools.storage", "tools.web_extractor", "tools.web_search"),
    ),
    "functions": ("utils", "utils.output_beautify", "utils.tokenization_qwen", "utils.utils"),
}
_REAL = {f"{__name__}.{other}": f"{__name__}.{ours}" for ours, others in _OURS.items() for other in others}

sys.meta_path.insert(0, SameModules(lambda name: _REAL.get(name, "")))

from parlour.compat.qwen_agent.agents import Agent, MultiAgentHub  # noqa: E402 - needs what stands above

__all__ = ["Agent", "MultiAgentHub"]
