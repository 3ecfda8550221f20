"""Agents that write a whole text: from an outline, chapter by chapter, or from the user's documents."""

from __future__ import annotations

import re
from contextlib import aclosing
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from core.agents.arguments import checked_int
from core.agents.assistant import Assistant
from core.agents.base import Agent
from core.agents.compat.outline import AROUND, CHAPTER, ShownPlan, SoFar, chapters_of, heading_of, place_in, up_to
from core.agents.compat.writing_steps import CITE_IN_TEXT, MOST_CHAPTERS, ContinueWriting, ExpandWriting, OutlineWriting
from core.agents.tool_loop import MOST_MODEL_CALLS, ToolLoop
from core.errors import LimitReachedError
from core.llm.usage import cost_of, estimated_usage
from core.messages.events import Event, ItemAdded, MessageFinished, MessageStarted, ReasoningDelta, TextDelta
from core.messages.message import ASSISTANT, FUNCTION, Message
from core.messages.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.agents.limits import Budget
    from core.languages import Lang
    from core.llm.base import BaseChatModel
    from core.llm.request import ChatRequest, Stream
    from core.tools.base import BaseTool

LONGEST_CHAPTER: Final = 16_000  # letters: some 2,500 words
LONGEST_THOUGHT: Final = 80_000  # letters: models that think do so at length


async def ended(events: Stream, model: BaseChatModel, asked: str) -> Stream:
    """The events of one step; a reply that does not end is stopped, with the reason `length`.

    Args:
        events: The step's reply.
        model: Its model.
        asked: Its prompt: no service reports the tokens of a reply that was stopped, so they are counted here.
    """
    said, text, thought = list[str](), 0, 0
    async with aclosing(events) as stream:
        async for event in stream:
            yield event
            if not isinstance(event, TextDelta | ReasoningDelta):
                continue
            said.append(event.text)
            text += len(event.text) if isinstance(event, TextDelta) else 0
            thought += len(event.text) if isinstance(event, ReasoningDelta) else 0
            if text > LONGEST_CHAPTER or thought > LONGEST_THOUGHT:
                break
        else:
            return
    usage = estimated_usage(model.count_tokens(asked), model.count_tokens("".join(said)))
    cost = await cost_of(usage, model.model, model.service)
    yield MessageFinished("length", usage.model_copy(update={"cost": cost}))


_TITLE = re.compile(r"^[ \t]*#[ \t]+(?:(?:Title|标题)[:：][ \t]*)?(\S.*)$", re.MULTILINE | re.IGNORECASE)
_HEADING = re.compile(r"##?[ \t]")  # as high as a chapter's; what is lower is within it
_LONGEST_HEADING = 200


class WriteFromScratch(Agent):
    """Writes a whole text: its model plans it (`OutlineWriting`), then writes each chapter (`ExpandWriting`).

    The plan streams as a thought before the text, the text as one message with its headings. Each chapter's writer
    reads the plan and how the chapters before it end. Where no chapters can be read from the plan, the text is written
    at once. What a model thinks while it writes a chapter is left out.

    Of a text that was broken off, what there is stays, and it goes on from there: in the middle of the chapter that it
    ends in, or with the next one. So it does where a budget let the reply pause between two chapters. A chapter that
    does not end is ended, and the next one written.

    `run(messages, knowledge="")`: the last user's message says what is to be written, `knowledge` is material for it.

    Args:
        arguments: As of `Agent`.
        most_chapters: How many chapters are written at most, 1 to 30: with the plan, one model call more than that.
        options: As of `Agent`.

    Raises:
        SettingsError: `most_chapters` makes no sense, or as of `Agent`.
    """

    calls_tools = False

    def __init__(self, *arguments: Any, most_chapters: int = MOST_CHAPTERS, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._most = checked_int("most_chapters", most_chapters, 1, 30)

    async def _stream_reply(
        self,
        messages: list[Message],
        *,
        lang: Lang,
        knowledge: str = "",
        budget: Budget | None = None,
        most_calls: int = MOST_MODEL_CALLS,
        **kwargs: Any,
    ) -> Stream:
        """The plan and the text.

        Args:
            messages: The conversation. What it ends with of a text that was broken off is gone on with.
            lang: The language of what Parlour says.
            knowledge: The material.
            budget: Lets the reply pause before a chapter that there are no means for; its heading is there by then.
            most_calls: The most model calls of one reply, where there is a budget.
            kwargs: Not used.

        Raises:
            LimitReachedError: The budget is used up.
        """
        del kwargs
        yield MessageStarted(self.name)
        context: dict[str, Any] = {"lang": lang, "knowledge": knowledge}
        before = SoFar.of(messages)
        text = _Text(budget, most_calls)
        if before is None:
            async with aclosing(self._planned(messages, text, context)) as events:
                async for event in events:
                    yield event
        else:
            messages, text.outline = before.asked, before.outline
            text.pieces.append(before.text)
        async with aclosing(self._all(messages, text, context)) as events:
            async for event in events:
                yield event
        yield MessageFinished("length" if text.was_cut else "stop", text.told.usage)
        if text.over is not None:
            raise text.over

    async def _planned(self, messages: list[Message], text: _Text, context: dict[str, Any]) -> Stream:
        """The plan as a thought, as far as it will be written.

        What its model thinks before is a thought of its own, so that the plan can be told apart.
        """
        thought, shown = False, ShownPlan(self._most)
        text.asks()
        plan = self._step(OutlineWriting).stream(messages, most=self._most, **context)
        async with aclosing(self._bounded(plan, messages, context)) as events:
            async for event in events:
                text.note(event)
                if isinstance(event, ReasoningDelta):
                    thought = True
                    yield event
                elif more := shown.after(event):
                    if thought:
                        yield MessageStarted(self.name)
                    thought = False
                    yield ReasoningDelta(more)
        planned = "\n".join(message.get_text_content() for message in text.told.messages())
        text.outline = up_to(self._most, planned).strip()

    async def _all(self, messages: list[Message], text: _Text, context: dict[str, Any]) -> Stream:
        """The chapters that are not written yet."""
        chapters = chapters_of(text.outline)[: self._most]
        begun, there = place_in(text.text, chapters) if chapters else (len(text.pieces), text.text)
        if not text.pieces and chapters and (title := _TITLE.search(text.outline)):
            yield text.add(f"# {title[1].strip(AROUND)}\n\n")
        for index, chapter in enumerate(chapters or [""], 1):
            if index < begun:
                continue
            if index > begun and chapter:
                yield text.add(text.gap + heading_of(chapter))
            if not text.asks():
                return
            place = {"chapter": chapter, "index": index, "chapters": len(chapters)}
            written = self._chapter(messages, text, there if index == begun else "", {**place, **context})
            async with aclosing(written) as events:
                async for event in events:
                    yield event

    async def _chapter(self, messages: list[Message], text: _Text, there: str, context: dict[str, Any]) -> Stream:
        """One chapter; the model continues after what is `there` of it."""
        first, gap = _FirstLine("" if there else context["chapter"]), "" if there else text.gap
        before = text.text.removesuffix(there)
        asked = [*messages, Message(ASSISTANT, there, name=self.name)] if there else messages
        events = self._step(ExpandWriting).stream(asked, outline=text.outline, written=before, **context)
        async with aclosing(self._bounded(events, asked, context, text.outline)) as writing:
            async for event in writing:
                if isinstance(event, TextDelta):
                    if said := first.feed(event.text):
                        yield text.add(gap + said)
                        gap = ""
                elif isinstance(event, ItemAdded):
                    yield event
                elif isinstance(event, MessageFinished):
                    text.ended(event)
        if rest := first.close():
            yield text.add(gap + rest)

    def _bounded(self, events: Stream, messages: list[Message], context: dict[str, Any], outline: str = "") -> Stream:
        read = [*(message.get_text_content() for message in messages), context["knowledge"], outline]
        return ended(events, self._model(), "\n".join(read))

    def _step(self, kind: type[Agent]) -> Agent:
        step = kind(llm=self._model(), name=self.name)
        step.extra_generate_cfg = self.extra_generate_cfg
        return step


@dataclass(slots=True)
class _Text:
    """The text so far, and its budget."""

    budget: Budget | None
    most_calls: int
    outline: str = ""
    told: Transcript = field(default_factory=Transcript)
    pieces: list[str] = field(default_factory=list[str])
    was_cut: bool = False
    over: LimitReachedError | None = None
    calls: int = 0

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def gap(self) -> str:
        """The line feeds between the text so far and a new paragraph."""
        return "" if not self.pieces or self.text.endswith("\n\n") else "\n\n"

    def add(self, text: str) -> TextDelta:
        self.pieces.append(text)
        return TextDelta(text)

    def asks(self) -> bool:
        """Count one more model call; False where the budget does not allow it, with the error in `over`."""
        try:
            if self.budget is not None and self.calls:
                self.budget.check(calls=self.calls, most_calls=self.most_calls)
        except LimitReachedError as error:
            self.over = error
            return False
        self.calls += 1
        return True

    def note(self, event: Event) -> None:
        self.told.apply(event)
        if self.budget is not None and isinstance(event, MessageFinished):
            self.budget.pay(event.usage)

    def ended(self, event: MessageFinished) -> None:
        self.note(event)
        self.was_cut = self.was_cut or event.reason == "length"


class _FirstLine:
    """Drops the heading with which a model begins its chapter although it was told not to."""

    def __init__(self, chapter: str) -> None:
        self._chapter, self._held, self._passed = chapter, "", not chapter

    def feed(self, text: str) -> str:
        """More of the chapter; returns what can be shown of it."""
        if self._passed:
            return text
        self._held = (self._held + text).lstrip()
        if "\n" not in self._held and len(self._held) <= _LONGEST_HEADING:
            return ""
        return self.close()

    def close(self) -> str:
        """The text that was held back."""
        line, _, rest = self._held.partition("\n")
        is_heading = not self._passed and self._is_heading(line)
        held, self._held, self._passed = self._held, "", True
        return rest.lstrip() if is_heading else held

    def _is_heading(self, line: str) -> bool:
        if len(line) > _LONGEST_HEADING:
            return False
        numbered = CHAPTER.match(line.strip())
        name = (numbered[1] if numbered else line).strip(AROUND)
        return bool(_HEADING.match(line)) or name.casefold() == self._chapter.casefold()


_SEARCHED = 250  # letters of a long text that are searched for, at each of its two ends


class ArticleAgent(Assistant):
    """Goes on with a text, or writes a whole article, with what the documents say to it.

    The documents are searched for the last message, which shows as a call of `ask_documents`; statements that come from
    a passage carry its `[n]`. Then the text goes on from where it ends (`ContinueWriting`), or, as a full article, is
    planned and written chapter by chapter (`WriteFromScratch`). Without documents it is written without. The tools of
    `function_list` are not used. An article that was broken off goes on where it ends, with a search of its own.

    Args:
        arguments: As of `Assistant`; with `max_iteration`, a full article has at most so many chapters, and 12. Where
            there is a budget, it pauses after so many model calls.
        full_article: Whether the last message asks for an article, not is a text to go on with; `run(messages,
            full_article=True)` says so for one reply.
        options: As of `Assistant`.

    Raises:
        SettingsError: As of `Assistant`.
    """

    calls_tools = False

    def __init__(self, *arguments: Any, full_article: bool = False, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._full = full_article
        self._budget: Budget | None = None  # of the one reply that a copy makes

    def _system_message(self, lang: Lang) -> str:
        del lang
        return self.system_message or ""  # each step says what is to be done

    def _how_to_cite(self, lang: Lang) -> str:
        return CITE_IN_TEXT[lang]

    def _stream_reply(
        self,
        messages: list[Message],
        *,
        lang: Lang,
        full_article: bool | None = None,
        budget: Budget | None = None,
        **kwargs: Any,
    ) -> Stream:
        own = copy(self)
        full = self._full if full_article is None else full_article
        own._full, own._budget = full, budget  # noqa: SLF001 - its own copy
        return super(ArticleAgent, own)._stream_reply(messages, lang=lang, **kwargs)

    async def _query(self, messages: list[Message], lang: Lang) -> str:
        asked = await super()._query(messages, lang)
        return asked if len(asked) <= 2 * _SEARCHED else f"{asked[:_SEARCHED]} {asked[-_SEARCHED:]}"

    def _loop(self, tools: Mapping[str, BaseTool], offered: Sequence[str] | None = None) -> ToolLoop:
        del offered
        model = self._model()
        most = min(MOST_CHAPTERS, self.max_iteration)
        writer = (
            WriteFromScratch(llm=model, name=self.name, most_chapters=most)
            if self._full
            else ContinueWriting(llm=model, name=self.name)
        )
        writer.extra_generate_cfg = self.extra_generate_cfg
        means = {"budget": self._budget, "most_calls": self.max_iteration}
        return ToolLoop(WritingModel(model, writer, means), tools, (), self.name)


class WritingModel:
    """Stands for a model in the tool loop; its turn is what a writing agent writes from the passages found.

    Args:
        model: The model whose settings count.
        writer: The agent; it takes `knowledge`.
        context: Further keywords for it.
    """

    def __init__(self, model: BaseChatModel, writer: Agent, context: Mapping[str, Any]) -> None:
        self._below, self._writer, self._context = model, writer, context

    @property
    def generate_cfg(self) -> Mapping[str, Any]:
        """Its own settings."""
        return self._below.generate_cfg

    def stream(self, request: ChatRequest) -> Stream:
        """What is written."""
        results = [message for message in request.messages if message.role == FUNCTION]
        found = [one.get_text_content() for one in results if (one.extra or {}).get("passages")]
        said = [one for one in request.messages if one.role != FUNCTION and one.function_call is None]
        return self._writer.stream(said, lang=request.lang, knowledge="\n\n".join(found), **self._context)
