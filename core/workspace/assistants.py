"""Parlour's own answer to who answers: an assistant with the owner's tools, documents and libraries."""

from __future__ import annotations

from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from core.agents.conversation import language_of, prepend_system
from core.llm.parameters import generate_of
from core.messages.message import FUNCTION, SYSTEM, USER, Message
from core.messages.transcript import call_message
from core.tools.catalog import TOOL_REGISTRY

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from core.agents.assistant import Assistant
    from core.languages import Lang
    from core.llm.base import BaseChatModel
    from core.llm.request import Stream
    from core.workspace.services import OwnerServices
    from core.workspace.steering import Steering

_IN_PLACE: Final = frozenset({"code_interpreter", "use_skill"})  # what a small model is told of where it needs them
_ANY: Final[Mapping[Lang, str]] = {"en": "Hello!", "zh": "你好！"}
_A_LETTER: Final[Mapping[Lang, str]] = {"en": "Write a letter.", "zh": "写一封信。"}
_NOTHING: Final = nullcontext((None, ()))  # no documents, whatever the conversation has


class Assistants:
    """One assistant for each reply.

    Args:
        max_iteration: How often it may ask the model for one reply.
    """

    def __init__(self, max_iteration: int) -> None:
        self._max_iteration = max_iteration

    @property
    def goes_on(self) -> bool:
        """A reply goes on after the results of its calls."""
        return True

    @property
    def says_once(self) -> bool:
        """One message without calls is the answer."""
        return True

    @asynccontextmanager
    async def inside(self, services: OwnerServices, conversation_id: str, model: BaseChatModel) -> AsyncGenerator[Any]:
        """With the tools of a conversation, and all documents within its reach. Raises ParlourError."""
        from core.agents.assistant import Assistant  # brings the document readers with it
        from core.rag.config import RAGConfig

        steering = await services.steering.of(conversation_id)
        tools = await services.tools.for_model(conversation_id, small=model.small, here=steering.tools)
        reads = steering.uses_documents
        async with services.within_reach(conversation_id) if reads else _NOTHING as (library, documents):
            assistant = Assistant(
                tools,
                model,
                library=library,
                documents=documents,
                attached=partial(services.intake.attached, conversation_id) if reads else None,
                max_iteration=self._max_iteration,
                rag_cfg=RAGConfig(whole_documents=not steering.passages_only, keep_notes=not steering.temporary),
            )
            assistant.extra_generate_cfg = generate_of(steering.parameters, model.efforts)
            yield Steered(assistant, steering)

    async def label(self, services: object, conversation_id: str, thread: object, asked: object, model: str) -> str:
        """The one model that it answers with."""
        del services, conversation_id, thread, asked
        return model

    async def secrets(self) -> list[str]:
        """None: what the assistant is used with, its owner or the installation has."""
        return []

    async def read_ahead(self, model: BaseChatModel) -> None:
        """Let a small model of this process read what first questions begin with, in both languages.

        Each token of it costs such a model some milliseconds; who the assistant is and what it can do are hundreds, and
        so is the example that comes before a letter.
        """
        from core.agents.assistant import CITE_SMALL, WHO
        from core.tools.builtin.ask_documents import AskDocuments

        names = [one.name for one in TOOL_REGISTRY.on_page() if one.small and one.on and one.name not in _IN_PLACE]
        functions = [TOOL_REGISTRY.made(name).function for name in names]
        for lang, who in WHO.items():
            asked = Message(USER, _A_LETTER[lang])
            found = [call_message("1", AskDocuments.name, "{}"), Message(FUNCTION, "…", name=AskDocuments.name)]
            over = Message(SYSTEM, f"{who}\n\n{CITE_SMALL[lang]}")  # questions about documents come without tools
            # In this order: what llama.cpp has put aside and takes up for a prompt with the same beginning, it loses;
            # what it was reading last, it puts aside.
            await model.read_ahead([Message(SYSTEM, who), Message(USER, _ANY[lang])], functions, lang)
            await model.read_ahead([over, asked, *found], (), lang)

    @asynccontextmanager
    async def outside(
        self, services: OwnerServices, documents: Mapping[str, Sequence[str]]
    ) -> AsyncGenerator[Assistant]:
        """With the owner's tools but those that run code: without a conversation there is nothing to run it in.

        Args:
            documents: What each is called, by its id in the index.
        """
        from core.agents.assistant import Assistant

        model = await (await services.models.loader()).ready()
        offered = await services.tools.for_model("", small=model.small)
        tools = [tool for tool in offered if not tool.runs_code]
        async with services.index_for(documents, documents) as library:
            yield Assistant(tools, model, library=library, documents=[*documents], max_iteration=self._max_iteration)


class Steered:
    """The assistant, told what its conversation is steered by.

    Args:
        assistant: With the tools, documents and parameters of the conversation.
        steering: Has the instructions.
    """

    def __init__(self, assistant: Assistant, steering: Steering) -> None:
        self.assistant = assistant
        self.steering = steering

    def system_message(self, lang: Lang) -> str:
        """What the model is told first, in one of the two languages."""
        from core.agents.assistant import WHO

        return "\n\n".join(text for text in (WHO[lang], self.steering.told(lang)) if text)

    def stream(self, messages: list[Message], **kwargs: Any) -> Stream:
        """The reply as events; the instructions stand in the language of the question, below who the assistant is."""
        told = self.steering.told(kwargs.get("lang") or language_of(messages))
        return self.assistant.stream(prepend_system(messages, told), **kwargs)
