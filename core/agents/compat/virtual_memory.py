"""An assistant whose model looks things up when it needs them, and keeps what it found in its system message."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from core.agents.assistant import Assistant, is_resumed, last_question, resumed_messages
from core.agents.conversation import append_system
from core.agents.named_files import followed, within
from core.agents.retrieval import is_small_talk
from core.agents.tool_loop import ToolLoop
from core.llm.layers.fit_context import DEFAULT_MAX_INPUT_TOKENS
from core.messages.message import FUNCTION, Message
from core.rag.attached import without_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from core.agents.tool_loop import LoopModel
    from core.languages import Lang
    from core.llm.base import BaseChatModel
    from core.llm.request import ChatRequest, Stream
    from core.rag.library import Library
    from core.tools.builtin.ask_documents import AskDocuments

AT_HAND: Mapping[Lang, str] = {
    "en": "The user has these documents, of which you have read nothing yet:\n{names}\n"
    "Where an answer may be in them, call {tool} before you answer, once for each thing that you need to know. What it "
    "finds is put below, and stays there. What needs no document, answer at once.",
    "zh": "用户有以下文档，你还没有读过其中的内容：\n{names}\n"
    "如果答案可能在文档里，请先调用 {tool} 再回答，每件需要查明的事调用一次。查到的内容会放在下面，并一直保留。"
    "与文档无关的问题可以直接回答。",
}
REMEMBERED: Mapping[Lang, str] = {
    "en": "Found: {numbers}. The passages stand at the end of your system message.",
    "zh": "已找到：{numbers}。段落位于系统消息的末尾。",
}
LET_GO: Mapping[Lang, str] = {
    "en": "Found: {numbers}. There was no more room for these passages: search again if you still need them.",
    "zh": "已找到：{numbers}。这些段落已因篇幅所限移出：如仍需要，请重新查找。",
}


_NAMED = 50  # documents that the model is told of by name
_FULL_SEARCHES = 2  # for how many of `max_ref_token` there is room


class VirtualMemoryAgent(Assistant):
    """Lets the model decide when to look into the documents; what was found becomes what it knows.

    An `Assistant` searches before it asks its model. Here the model is told which documents there are, and calls
    `ask_documents` where a question needs them: a greeting or a sum costs no search, and a question of several parts as
    many as it has. The passages then stand in the system message, so that they stay in sight whatever follows; where
    they take more than twice `max_ref_token`, or half of what the model can read, those found first are let go, and can
    be searched for again. They show as an ordinary call, and the answer carries `[n]` marks. A small model cannot be
    relied on to call: it has to, unless it is greeted, and reads what was found where it stands. Where there are no
    documents it is an `Assistant`.

    Args: as of `Assistant`.

    Raises:
        SettingsError: As of `Assistant`.
    """

    async def _over_documents(
        self,
        messages: list[Message],
        library: Library,
        documents: Collection[str],
        lang: Lang,
        context: dict[str, Any],
    ) -> Stream:
        wanted = set(documents)
        there = [one for one in await asyncio.to_thread(library.documents) if one.id in wanted]
        unread = without_text(there, lang) if self._attached is None else ()
        earlier = followed(messages, self._rag)
        place = await within(last_question(messages), library, documents, self._attached, earlier)
        finder = self._finder(messages, library, place, lang, self._fits_whole(messages))
        ask = self._search(finder, unread)
        told = self._citing(messages, documents, lang, found=resumed_messages(messages, context))
        told = append_system(told, AT_HAND[lang].format(names=_listed([one.name for one in there]), tool=ask.name))
        return self._loop_with(ask, messages, lang, context).reply(told, lang=lang, **context)

    def _loop_with(
        self, ask: AskDocuments, messages: list[Message], lang: Lang, context: Mapping[str, Any]
    ) -> ToolLoop:
        model: LoopModel = self._model()
        generate = self.extra_generate_cfg
        if not self._model().small:
            model = Remembering(self._model(), ask.name, _FULL_SEARCHES * self._rag.max_ref_token, lang)
        elif not is_resumed(context) and not is_small_talk(last_question(messages)):
            generate = {**generate, "function_choice": ask.name}  # until it has called
        tools = {**self.function_map, ask.name: ask}
        return ToolLoop(model, tools, None, self.name, generate, self.max_iteration)


class Remembering:
    """Wraps a model so that it reads the passages of its searches in its system message.

    Args:
        model: The model.
        tool: The search tool's name.
        room: The most tokens of passages; the newest stay.
        lang: The language of Parlour's own sentences.
    """

    def __init__(self, model: BaseChatModel, tool: str, room: int, lang: Lang) -> None:
        self._below, self._tool, self._room = model, tool, room
        self._lang: Lang = lang

    @property
    def generate_cfg(self) -> Mapping[str, Any]:
        """Its own settings."""
        return self._below.generate_cfg

    def stream(self, request: ChatRequest) -> Stream:
        """Its next turn."""
        read = self._remembered(request.messages, self._room_in(request))
        return self._below.stream(replace(request, messages=tuple(read)))

    def _room_in(self, request: ChatRequest) -> int:
        """The most tokens of passages in the system message, which is never shortened to fit the context."""
        given = {**self.generate_cfg, **request.generate}.get("max_input_tokens")
        limit = DEFAULT_MAX_INPUT_TOKENS if given is None else int(float(given))  # a setting may be text
        return min(self._room, limit // 2) if limit > 0 else self._room

    def _remembered(self, messages: Sequence[Message], room: int) -> list[Message]:
        """The conversation with the passages moved from the results to the end of the system message."""
        read, known, newest = list(messages), list[str](), True
        for at in range(len(read) - 1, -1, -1):
            result = read[at]
            rows = (result.extra or {}).get("passages")
            if result.role != FUNCTION or result.name != self._tool or not rows:
                continue
            text = result.get_text_content()
            size = self._below.count_tokens(text)
            fits = size <= room
            room = room - size if fits else 0
            if fits:
                known.insert(0, text)
            if fits or not newest:  # where the newest is too long it stays a result, which can be shortened
                said = (REMEMBERED if fits else LET_GO)[self._lang].format(numbers=_numbers(rows))
                read[at] = result.model_copy(update={"content": said})
            newest = False
        return append_system(read, "\n\n".join(known)) if known else read


def _numbers(rows: Sequence[Mapping[str, Any]]) -> str:
    return " ".join(f"[{row['number']}]" for row in rows if row.get("number"))


def _listed(names: Sequence[str]) -> str:
    shown = [f"- {' '.join(name.split())}" for name in names[:_NAMED]]
    return "\n".join([*shown, "- …"] if len(names) > _NAMED else shown)
