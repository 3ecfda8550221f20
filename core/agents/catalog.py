"""The agents there are, by name."""

from __future__ import annotations

from typing import Any

from core.registry import Entry, Registry

AGENTS: Registry[type[Any]] = Registry(
    "agent",
    {
        "BasicAgent": Entry("core.agents.basic:BasicAgent"),
        "FnCallAgent": Entry("core.agents.basic:FnCallAgent"),
        "Assistant": Entry("core.agents.assistant:Assistant"),
        "ReActChat": Entry("core.agents.react:ReActChat"),
        "ArticleAgent": Entry("core.agents.compat.articles:ArticleAgent"),
        "ContinueWriting": Entry("core.agents.compat.writing_steps:ContinueWriting"),
        "DialogueRetrievalAgent": Entry("core.agents.compat.dialogue_retrieval:DialogueRetrievalAgent"),
        "ExpandWriting": Entry("core.agents.compat.writing_steps:ExpandWriting"),
        "GroupChat": Entry("core.agents.group_chat:GroupChat"),
        "GroupChatCreator": Entry("core.agents.compat.group_chat_creator:GroupChatCreator"),
        "Memory": Entry("core.agents.memory:Memory"),
        "OutlineWriting": Entry("core.agents.compat.writing_steps:OutlineWriting"),
        "ParallelDocQA": Entry("core.agents.compat.parallel_doc_qa:ParallelDocQA"),
        "Router": Entry("core.agents.router:Router"),
        "TIRMathAgent": Entry("core.agents.compat.tir_math:TIRMathAgent"),
        "UserAgent": Entry("core.agents.hub:UserAgent"),
        "VirtualMemoryAgent": Entry("core.agents.compat.virtual_memory:VirtualMemoryAgent"),
        "WriteFromScratch": Entry("core.agents.compat.articles:WriteFromScratch"),
    },
)
