"""Agents under the names that they have in Qwen-Agent: `agents`, `agents.router`, `agent`, `memory` and so on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar, cast

import core as library
from core import (
    PENDING_USER_INPUT,
    Agent,
    ArticleAgent,
    Assistant,
    BasicAgent,
    ContinueWriting,
    DialogueRetrievalAgent,
    ExpandWriting,
    FnCallAgent,
    GroupChat,
    GroupChatCreator,
    Memory,
    MultiAgentHub,
    OutlineWriting,
    ParallelDocQA,
    ReActChat,
    Router,
    TIRMathAgent,
    UserAgent,
    VirtualMemoryAgent,
    WriteFromScratch,
)
from core.tools.base import BaseToolWithFileAccess
from core.tools.catalog import TOOL_REGISTRY
from parlour.compat.qwen_agent import settings
from parlour.compat.qwen_agent.llm import as_told

__path__: list[str] = []  # `agents.router` and so on are this module

__all__ = [
    "PENDING_USER_INPUT",
    "Agent",
    "ArticleAgent",
    "Assistant",
    "BasicAgent",
    "BasicDocQA",
    "ContinueWriting",
    "DialogueRetrievalAgent",
    "DocQAAgent",
    "ExpandWriting",
    "FnCallAgent",
    "GroupChat",
    "GroupChatCreator",
    "Memory",
    "MultiAgentHub",
    "OutlineWriting",
    "ParallelDocQA",
    "ReActChat",
    "Router",
    "TIRMathAgent",
    "UserAgent",
    "VirtualMemoryAgent",
    "WriteFromScratch",
]
Kind = TypeVar("Kind", bound=type[Agent])


def _tool_as_told(item: object) -> object:
    """A tool given by name or as a dict, with what variables of the environment say about it."""
    match item:
        case str():
            cfg: dict[str, Any] = {"name": item}
        case Mapping():
            cfg = dict(cast("Mapping[str, Any]", item))
        case _:
            return item
    name = cfg.get("name")
    if not isinstance(name, str) or name not in TOOL_REGISTRY:
        return cfg
    said: dict[str, Any] = dict(settings.TOOL_CFG.get(name, {}))
    if settings.WORK_DIR and issubclass(TOOL_REGISTRY[name], BaseToolWithFileAccess):
        said["work_dir"] = str(Path(settings.WORK_DIR) / "tools" / name)
    return {**said, **cfg}


def _with_variables(kind: Kind) -> Kind:
    """An agent that hears what variables of the environment say, under what its program says."""
    taken = signature(kind).parameters

    def __init__(self: Agent, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - becomes the class's own
        given = signature(kind).bind_partial(*args, **kwargs).arguments
        given.update(given.pop("kwargs", {}))
        if given.get("llm") is not None:
            given["llm"] = as_told(given["llm"])
        if given.get("function_list"):
            given["function_list"] = [_tool_as_told(one) for one in cast("Iterable[object]", given["function_list"])]
        if "rag_cfg" in taken and settings.RAG_CFG:
            given["rag_cfg"] = {**settings.RAG_CFG, **(given.get("rag_cfg") or {})}
        if "max_iteration" in taken:
            given = {**settings.CALLS, **given}
        cast("Any", kind).__init__(self, **given)

    return cast("Kind", type(kind.__name__, (kind,), {"__init__": __init__, "__module__": __name__}))


if settings.GENERATE_CFG or settings.RAG_CFG or settings.TOOL_CFG or settings.CALLS or settings.WORK_DIR:
    for _name in __all__:
        _kind = getattr(library, _name, None)
        if isinstance(_kind, type) and issubclass(_kind, Agent) and _kind not in {Agent, UserAgent}:
            globals()[_name] = _with_variables(_kind)

BasicDocQA = DocQAAgent = Assistant  # an assistant searches its documents, or gives them whole
