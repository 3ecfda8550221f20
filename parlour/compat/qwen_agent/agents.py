"""Agents under the names that they have in Qwen-Agent: `agents`, `agents.router`, `agent`, `memory` and so on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, wraps
from inspect import signature
from pathlib import Path
from typing import Any, cast

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
    RAGConfig,
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


def _hearing(kind: type[Agent]) -> Callable[..., None]:
    """The constructor of a kind of agent, with what variables of the environment say under what its program says."""
    takes = signature(kind)

    @wraps(kind.__init__)
    def constructor(self: Agent, *args: Any, **kwargs: Any) -> None:
        given: dict[str, Any] = takes.bind_partial(*args, **kwargs).arguments
        if given.get("llm") is not None:
            given["llm"] = as_told(given["llm"])
        if given.get("function_list"):
            given["function_list"] = [_tool_as_told(one) for one in cast("Iterable[object]", given["function_list"])]
        if "rag_cfg" in takes.parameters and not isinstance(given.get("rag_cfg"), RAGConfig) and settings.RAG_CFG:
            given["rag_cfg"] = {**settings.RAG_CFG, **(given.get("rag_cfg") or {})}
        if "max_iteration" in takes.parameters:
            given = {**settings.CALLS, **given}
        kind.__init__(self, **given)

    return constructor


@cache
def _with_variables(kind: type[Agent]) -> type[Agent]:
    """A kind of agent that hears variables of the environment.

    It is a kind of what its own bases become here, so `isinstance` says the same as without variables. A constructor
    that passes on what it is given, whatever that is, stays as it is: the one that it passes it to hears.
    """
    above = [_with_variables(base) for base in kind.__bases__ if issubclass(base, Agent)]
    own: dict[str, Any] = {"__module__": __name__, "__doc__": kind.__doc__}
    if "__init__" in vars(kind) and all(one.kind is not one.VAR_KEYWORD for one in signature(kind).parameters.values()):
        own["__init__"] = _hearing(kind)
    return type(kind.__name__, (kind, *above), own)


if settings.GENERATE_CFG or settings.RAG_CFG or settings.TOOL_CFG or settings.CALLS or settings.WORK_DIR:
    for _name in __all__:
        _kind = getattr(library, _name, None)
        if isinstance(_kind, type) and issubclass(_kind, Agent) and _kind not in {Agent, UserAgent}:
            globals()[_name] = _with_variables(_kind)

BasicDocQA = DocQAAgent = Assistant  # an assistant searches its documents, or gives them whole
