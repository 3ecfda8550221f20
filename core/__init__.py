"""Parlour's library: an agent in three lines.

    >>> from core import Assistant
    >>> agent = Assistant(llm={"model": "gpt-5-mini"}, files=["manual.pdf"])
    >>> agent.run_nonstream([{"role": "user", "content": "What does chapter 2 say?"}])

Each name is imported when it is first used, so that `import core` is quick and pulls in no vendor's package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.agents.asks import Partial as Partial
    from core.agents.assistant import Assistant as Assistant
    from core.agents.base import Agent as Agent
    from core.agents.basic import BasicAgent as BasicAgent
    from core.agents.basic import FnCallAgent as FnCallAgent
    from core.agents.cited import Cited as Cited
    from core.agents.compat.articles import ArticleAgent as ArticleAgent
    from core.agents.compat.articles import WriteFromScratch as WriteFromScratch
    from core.agents.compat.dialogue_retrieval import DialogueRetrievalAgent as DialogueRetrievalAgent
    from core.agents.compat.group_chat_creator import GroupChatCreator as GroupChatCreator
    from core.agents.compat.history import AgentScratchpadUnit as AgentScratchpadUnit
    from core.agents.compat.history import TokenBufferMemory as TokenBufferMemory
    from core.agents.compat.parallel_doc_qa import ParallelDocQA as ParallelDocQA
    from core.agents.compat.tir_math import TIRMathAgent as TIRMathAgent
    from core.agents.compat.virtual_memory import VirtualMemoryAgent as VirtualMemoryAgent
    from core.agents.compat.writing_steps import ContinueWriting as ContinueWriting
    from core.agents.compat.writing_steps import ExpandWriting as ExpandWriting
    from core.agents.compat.writing_steps import OutlineWriting as OutlineWriting
    from core.agents.conduct import Confirm as Confirm
    from core.agents.conduct import Stop as Stop
    from core.agents.config.schema import AgentConfig as AgentConfig
    from core.agents.config.schema import GenerateConfig as GenerateConfig
    from core.agents.config.schema import LLMConfig as LLMConfig
    from core.agents.group_chat import GroupChat as GroupChat
    from core.agents.handoff import handoff as handoff
    from core.agents.hub import PENDING_USER_INPUT as PENDING_USER_INPUT
    from core.agents.hub import MultiAgentHub as MultiAgentHub
    from core.agents.hub import UserAgent as UserAgent
    from core.agents.memory import Memory as Memory
    from core.agents.output import OutputError as OutputError
    from core.agents.react import ReActChat as ReActChat
    from core.agents.react_parser import OutputParser as OutputParser
    from core.agents.reply import Citation as Citation
    from core.agents.reply import Reply as Reply
    from core.agents.reply import ToolCall as ToolCall
    from core.agents.reply import afold as afold
    from core.agents.reply import fold as fold
    from core.agents.router import Router as Router
    from core.agents.session import Session as Session
    from core.errors import ModelServiceError as ModelServiceError
    from core.errors import ParlourError as ParlourError
    from core.export.traces import trace_to as trace_to
    from core.judging.cases import add_cases as add_cases
    from core.judging.cases import case_of as case_of
    from core.judging.compare import compare as compare
    from core.judging.evaluators import Score as Score
    from core.judging.run import aevaluate as aevaluate
    from core.judging.run import evaluate as evaluate
    from core.judging.suite import Suite as Suite
    from core.llm.base import BaseChatModel as BaseChatModel
    from core.llm.catalog import LLM_REGISTRY as LLM_REGISTRY
    from core.llm.catalog import register_llm as register_llm
    from core.llm.fallback import FallbackModel as FallbackModel
    from core.llm.open_model import get_chat_model as get_chat_model
    from core.mcp.pool import MCPClient as MCPClient
    from core.mcp.pool import MCPManager as MCPManager
    from core.messages.content import AUDIO as AUDIO
    from core.messages.content import FILE as FILE
    from core.messages.content import IMAGE as IMAGE
    from core.messages.content import TEXT as TEXT
    from core.messages.content import VIDEO as VIDEO
    from core.messages.content import BaseModelCompatibleDict as BaseModelCompatibleDict
    from core.messages.content import ContentItem as ContentItem
    from core.messages.message import ASSISTANT as ASSISTANT
    from core.messages.message import CONTENT as CONTENT
    from core.messages.message import EXTRA as EXTRA
    from core.messages.message import FUNCTION as FUNCTION
    from core.messages.message import FUNCTION_CALL as FUNCTION_CALL
    from core.messages.message import NAME as NAME
    from core.messages.message import REASONING_CONTENT as REASONING_CONTENT
    from core.messages.message import ROLE as ROLE
    from core.messages.message import SYSTEM as SYSTEM
    from core.messages.message import USER as USER
    from core.messages.message import FunctionCall as FunctionCall
    from core.messages.message import Message as Message
    from core.messages.message import ModelResponse as ModelResponse
    from core.messages.message import Usage as Usage
    from core.rag.claims.check import acheck_claims as acheck_claims
    from core.rag.claims.check import check_claims as check_claims
    from core.rag.claims.weighing import Claim as Claim
    from core.rag.config import RAGConfig as RAGConfig
    from core.rag.library import Library as Library
    from core.storage.base import AgentThought as AgentThought
    from core.tools.approval import ApprovalRequest as ApprovalRequest
    from core.tools.approval import Decision as Decision
    from core.tools.approval import Guard as Guard
    from core.tools.approval import Policy as Policy
    from core.tools.base import BaseTool as BaseTool
    from core.tools.base import BaseToolWithFileAccess as BaseToolWithFileAccess
    from core.tools.base import ToolResult as ToolResult
    from core.tools.builtin.skills import skills_in as skills_in
    from core.tools.catalog import TOOL_REGISTRY as TOOL_REGISTRY
    from core.tools.catalog import register_tool as register_tool
    from core.tools.from_function import tool as tool
    from core.tools.run_context import ModelRetry as ModelRetry
    from core.tools.run_context import RunContext as RunContext
    from core.tools.run_state import Limits as Limits

_NAMES = {
    "core.agents.compat.articles": ["ArticleAgent", "WriteFromScratch"],
    "core.agents.assistant": ["Assistant"],
    "core.agents.base": ["Agent"],
    "core.agents.basic": ["BasicAgent", "FnCallAgent"],
    "core.agents.config.schema": ["AgentConfig", "GenerateConfig", "LLMConfig"],
    "core.agents.compat.dialogue_retrieval": ["DialogueRetrievalAgent"],
    "core.agents.group_chat": ["GroupChat"],
    "core.agents.compat.group_chat_creator": ["GroupChatCreator"],
    "core.agents.hub": ["MultiAgentHub", "PENDING_USER_INPUT", "UserAgent"],
    "core.agents.handoff": ["handoff"],
    "core.agents.memory": ["Memory"],
    "core.agents.compat.parallel_doc_qa": ["ParallelDocQA"],
    "core.agents.react": ["ReActChat"],
    "core.agents.react_parser": ["OutputParser"],
    "core.agents.router": ["Router"],
    "core.agents.compat.history": ["AgentScratchpadUnit", "TokenBufferMemory"],
    "core.agents.compat.tir_math": ["TIRMathAgent"],
    "core.agents.compat.virtual_memory": ["VirtualMemoryAgent"],
    "core.agents.compat.writing_steps": ["ContinueWriting", "ExpandWriting", "OutlineWriting"],
    "core.errors": ["ModelServiceError", "ParlourError"],
    "core.export.traces": ["trace_to"],
    "core.judging.cases": ["add_cases", "case_of"],
    "core.judging.compare": ["compare"],
    "core.judging.evaluators": ["Score"],
    "core.judging.run": ["aevaluate", "evaluate"],
    "core.judging.suite": ["Suite"],
    "core.llm.base": ["BaseChatModel"],
    "core.llm.catalog": ["LLM_REGISTRY", "register_llm"],
    "core.llm.fallback": ["FallbackModel"],
    "core.llm.open_model": ["get_chat_model"],
    "core.mcp.pool": ["MCPClient", "MCPManager"],
    "core.messages.content": ["AUDIO", "BaseModelCompatibleDict", "ContentItem", "FILE", "IMAGE", "TEXT", "VIDEO"],
    "core.messages.message": [
        "ASSISTANT",
        "CONTENT",
        "EXTRA",
        "FUNCTION",
        "FUNCTION_CALL",
        "FunctionCall",
        "Message",
        "ModelResponse",
        "NAME",
        "REASONING_CONTENT",
        "ROLE",
        "SYSTEM",
        "USER",
        "Usage",
    ],
    "core.rag.claims.check": ["acheck_claims", "check_claims"],
    "core.rag.claims.weighing": ["Claim"],
    "core.rag.config": ["RAGConfig"],
    "core.rag.library": ["Library"],
    "core.storage.base": ["AgentThought"],
    "core.tools.approval": ["ApprovalRequest", "Decision", "Guard", "Policy"],
    "core.tools.base": ["BaseTool", "BaseToolWithFileAccess", "ToolResult"],
    "core.tools.builtin.skills": ["skills_in"],
    "core.tools.catalog": ["TOOL_REGISTRY", "register_tool"],
    "core.tools.from_function": ["tool"],
    "core.agents.asks": ["Partial"],
    "core.agents.cited": ["Cited"],
    "core.agents.conduct": ["Confirm", "Stop"],
    "core.agents.output": ["OutputError"],
    "core.agents.reply": ["Citation", "Reply", "ToolCall", "afold", "fold"],
    "core.agents.session": ["Session"],
    "core.tools.run_context": ["ModelRetry", "RunContext"],
    "core.tools.run_state": ["Limits"],
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll] - the table above is the list


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from core.errors import extra_for

    with extra_for(name):
        home = import_module(_HOME[name])
        value = getattr(home, name)
    if callable(value):
        from core.plain_parameters import says_which_parameter

        value = globals().setdefault(name, says_which_parameter(value))  # another thread may have been faster
        setattr(home, name, value)  # it is one and the same, also for pickle
    return globals().setdefault(name, value)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
