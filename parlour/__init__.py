"""Parlour under the one name that an installed wheel has: `from parlour import Assistant`.

In a wheel the library is `parlour.core` and the page `parlour.webui`; in a checkout both stand at the top, and here are
other names of the same modules.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import core as library

if TYPE_CHECKING:
    from core import ASSISTANT as ASSISTANT
    from core import AUDIO as AUDIO
    from core import CONTENT as CONTENT
    from core import EXTRA as EXTRA
    from core import FILE as FILE
    from core import FUNCTION as FUNCTION
    from core import FUNCTION_CALL as FUNCTION_CALL
    from core import IMAGE as IMAGE
    from core import LLM_REGISTRY as LLM_REGISTRY
    from core import NAME as NAME
    from core import PENDING_USER_INPUT as PENDING_USER_INPUT
    from core import REASONING_CONTENT as REASONING_CONTENT
    from core import ROLE as ROLE
    from core import SYSTEM as SYSTEM
    from core import TEXT as TEXT
    from core import TOOL_REGISTRY as TOOL_REGISTRY
    from core import USER as USER
    from core import VIDEO as VIDEO
    from core import Agent as Agent
    from core import AgentConfig as AgentConfig
    from core import AgentScratchpadUnit as AgentScratchpadUnit
    from core import AgentThought as AgentThought
    from core import ApprovalRequest as ApprovalRequest
    from core import ArticleAgent as ArticleAgent
    from core import Assistant as Assistant
    from core import BaseChatModel as BaseChatModel
    from core import BaseModelCompatibleDict as BaseModelCompatibleDict
    from core import BaseTool as BaseTool
    from core import BaseToolWithFileAccess as BaseToolWithFileAccess
    from core import BasicAgent as BasicAgent
    from core import Citation as Citation
    from core import Cited as Cited
    from core import Claim as Claim
    from core import Confirm as Confirm
    from core import ContentItem as ContentItem
    from core import ContinueWriting as ContinueWriting
    from core import Decision as Decision
    from core import DialogueRetrievalAgent as DialogueRetrievalAgent
    from core import ExpandWriting as ExpandWriting
    from core import FallbackModel as FallbackModel
    from core import FnCallAgent as FnCallAgent
    from core import FunctionCall as FunctionCall
    from core import GenerateConfig as GenerateConfig
    from core import GroupChat as GroupChat
    from core import GroupChatCreator as GroupChatCreator
    from core import Guard as Guard
    from core import Library as Library
    from core import Limits as Limits
    from core import LLMConfig as LLMConfig
    from core import MCPClient as MCPClient
    from core import MCPManager as MCPManager
    from core import Memory as Memory
    from core import Message as Message
    from core import ModelResponse as ModelResponse
    from core import ModelRetry as ModelRetry
    from core import ModelServiceError as ModelServiceError
    from core import MultiAgentHub as MultiAgentHub
    from core import OutlineWriting as OutlineWriting
    from core import OutputError as OutputError
    from core import OutputParser as OutputParser
    from core import ParallelDocQA as ParallelDocQA
    from core import ParlourError as ParlourError
    from core import Partial as Partial
    from core import Policy as Policy
    from core import RAGConfig as RAGConfig
    from core import ReActChat as ReActChat
    from core import Reply as Reply
    from core import Router as Router
    from core import RunContext as RunContext
    from core import Score as Score
    from core import Session as Session
    from core import Stop as Stop
    from core import Suite as Suite
    from core import TIRMathAgent as TIRMathAgent
    from core import TokenBufferMemory as TokenBufferMemory
    from core import ToolCall as ToolCall
    from core import ToolResult as ToolResult
    from core import Usage as Usage
    from core import UserAgent as UserAgent
    from core import VirtualMemoryAgent as VirtualMemoryAgent
    from core import WriteFromScratch as WriteFromScratch
    from core import acheck_claims as acheck_claims
    from core import add_cases as add_cases
    from core import aevaluate as aevaluate
    from core import afold as afold
    from core import case_of as case_of
    from core import check_claims as check_claims
    from core import compare as compare
    from core import evaluate as evaluate
    from core import fold as fold
    from core import get_chat_model as get_chat_model
    from core import handoff as handoff
    from core import register_llm as register_llm
    from core import register_tool as register_tool
    from core import skills_in as skills_in
    from core import tool as tool
    from core import trace_to as trace_to

__all__ = library.__all__  # pyright: ignore[reportUnsupportedDunderAll] - the library's own list


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'parlour' has no attribute {name!r}")
    return getattr(library, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if library.__name__ == "core":  # a checkout
    from parlour.same_modules import SameModules, in_checkout

    sys.meta_path.insert(0, SameModules(in_checkout))
