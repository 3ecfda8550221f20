"""The agents there are, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.registry import Entry, Registry

if TYPE_CHECKING:
    from core.agents.base import Agent

AGENTS: Registry[type[Agent]] = Registry(
    "agent",
    {
        "BasicAgent": Entry("core.agents.basic:BasicAgent"),
        "FnCallAgent": Entry("core.agents.fn_call:FnCallAgent"),
        "Assistant": Entry("core.agents.assistant:Assistant"),
        "ReActChat": Entry("core.agents.react:ReActChat"),
        "ArticleAgent": Entry("core.agents.article:ArticleAgent"),
        "ContinueWriting": Entry("core.agents.writing:ContinueWriting"),
        "DialogueRetrievalAgent": Entry("core.agents.dialogue_retrieval:DialogueRetrievalAgent"),
        "ExpandWriting": Entry("core.agents.writing:ExpandWriting"),
        "GroupChat": Entry("core.agents.group_chat:GroupChat"),
        "GroupChatCreator": Entry("core.agents.group_chat_creator:GroupChatCreator"),
        "Memory": Entry("core.agents.memory:Memory"),
        "OutlineWriting": Entry("core.agents.writing:OutlineWriting"),
        "ParallelDocQA": Entry("core.agents.parallel_doc_qa:ParallelDocQA"),
        "Router": Entry("core.agents.router:Router"),
        "TIRMathAgent": Entry("core.agents.tir_math:TIRMathAgent"),
        "UserAgent": Entry("core.agents.user_agent:UserAgent"),
        "VirtualMemoryAgent": Entry("core.agents.virtual_memory:VirtualMemoryAgent"),
        "WriteFromScratch": Entry("core.agents.write_from_scratch:WriteFromScratch"),
    },
)
