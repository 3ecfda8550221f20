"""Reads a group that a model proposes: what is nearly right is mended, the rest is told."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from core.agents.base import Agent
from core.agents.conversation import prepend_system
from core.agents.group_chat import GroupChat
from core.agents.hub import joined_names, sentence_events
from core.bridge.snapshots import as_messages
from core.errors import SettingsError
from core.llm.request import ChatRequest
from core.messages.events import MessageFinished, MessageStarted, ReasoningDelta
from core.messages.json_text import read_object
from core.messages.message import ASSISTANT, USER, Message
from core.messages.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from core.agents.base import Given
    from core.agents.group_chat import Method
    from core.languages import Lang
    from core.llm.request import Stream

PROPOSE: Mapping[Lang, str] = {
    "en": "Propose a group conversation for what the user wants: its topic, and two to six members who differ in what "
    "they know or want. If the user asks to change an earlier proposal, give the whole of it anew. "
    "Answer with one JSON object and nothing else:\n"
    '{{"background": "topic and setting", "agents": [{{"name": "short name", "description": "who this is, in a '
    'sentence", "instructions": "how this member behaves and speaks"{tools}}}]}}\n'
    'If the user takes part, add a member {{"name": ..., "description": ..., "is_human": true}}.',
    "zh": "请根据用户的要求设计一个群聊：主题，以及二至六位各有所长或立场不同的成员。"
    "如果用户要求修改之前的方案，请重新给出完整方案。只回答一个 JSON 对象，不要写别的：\n"
    '{{"background": "主题和背景", "agents": [{{"name": "简短的名字", "description": "一句话说明其身份", '
    '"instructions": "该成员如何行事、如何说话"{tools}}}]}}\n'
    '如果用户本人也参加，就加一位成员 {{"name": ..., "description": ..., "is_human": true}}。',
}
PROPOSE_TOOLS: Mapping[Lang, str] = {
    "en": ', "selected_tools": ["any of: {names}"]',
    "zh": ', "selected_tools": ["可选：{names}"]',
}
PROPOSE_AGAIN: Mapping[Lang, str] = {
    "en": "This cannot be used: {why} Answer once more with the whole JSON object and nothing else.",
    "zh": "这个方案无法使用：{why} 请重新回答完整的 JSON 对象，不要写别的。",
}
NOT_PROPOSED: Mapping[Lang, str] = {
    "en": "The model did not propose a group that can be used, also after it was told twice: {why} "
    "Say more about who should talk about what, or choose another model.",
    "zh": "提醒两次后，模型仍未给出可用的群聊方案：{why} 请更具体地说明由谁谈论什么，或换一个模型。",
}
WRONG_PROPOSAL: Mapping[Lang, Mapping[str, str]] = {
    "en": {
        "no_object": "It is no JSON object.",
        "no_members": "There is no list of agents.",
        "no_name": "A member has no name.",
        "persons": "There is nobody but persons.",
    },
    "zh": {
        "no_object": "它不是 JSON 对象。",
        "no_members": "没有成员列表 agents。",
        "no_name": "有成员没有名字。",
        "persons": "成员中只有真人。",
    },
}


Wrong: TypeAlias = Literal["no_object", "no_members", "no_name", "persons"]

_MOST_MEMBERS = 10
_LISTS = ("agents", "members", "roles", "成员", "角色")
_TOPICS = ("background", "topic", "背景", "主题")
_YES = (True, 1, "true", "yes", "是")


class WrongProposalError(ValueError):
    """A proposal that cannot be used: `why` is the key of the sentence."""

    def __init__(self, why: Wrong) -> None:
        super().__init__(why)
        self.why: Wrong = why


def proposal(text: str, tools: Collection[str] = ()) -> dict[str, Any]:
    """The group in what a model wrote, as `GroupChat` takes it.

    Mended are JSON that is nearly right or stands among words, other names for the lists, members given by name or as a
    dict, names that occur twice, and fields of a wrong type. Files are never taken over, and of tools only those there
    are: what a model writes gives nobody a right.

    Args:
        text: What the model wrote.
        tools: The names of the tools that members may have.

    Raises:
        WrongProposalError: There is no group in it.
    """
    found = _object(text)
    background = next((found[key] for key in _TOPICS if isinstance(found.get(key), str)), "")
    rows = next((found[key] for key in _LISTS if found.get(key)), None)
    if isinstance(rows, dict):
        rows = _from_mapping(cast("dict[str, Any]", rows))
    if not isinstance(rows, list) or not rows:
        raise WrongProposalError("no_members")
    members: list[dict[str, Any]] = []
    for row in cast("list[Any]", rows)[:_MOST_MEMBERS]:
        member = _member(row, tools)
        member["name"] = _free(member["name"], [other["name"] for other in members])
        members.append(member)
    if all(member.get("is_human") for member in members):
        raise WrongProposalError("persons")
    return {"background": background.strip(), "agents": members}


def _object(text: str) -> dict[str, Any]:
    for part in (text, text[text.find("{") : text.rfind("}") + 1]):
        try:
            return read_object(part)
        except (ValueError, RecursionError):
            continue
    raise WrongProposalError("no_object")


def _from_mapping(given: dict[str, Any]) -> list[Any]:
    """Members as `{name: description}` or `{name: {...}}`, or one alone."""
    if "name" in given:
        return [given]
    return [{"name": name, **(row if isinstance(row, dict) else {"description": row})} for name, row in given.items()]


def _member(row: Any, tools: Collection[str]) -> dict[str, Any]:
    fields = cast("dict[str, Any]", row if isinstance(row, dict) else {"name": row})
    name = " ".join(_text(fields.get("name")).strip("@＠ ").split())
    if not name:
        raise WrongProposalError("no_name")
    instructions = _text(fields.get("instructions"))
    description = _text(fields.get("description")) or instructions.partition("\n")[0]
    if fields.get("is_human") in _YES:
        return {"name": name, "description": description, "is_human": True}
    wanted = fields.get("selected_tools")
    named = cast("list[Any]", wanted) if isinstance(wanted, list) else [wanted]
    selected = [one for one in named if isinstance(one, str) and one in tools]
    return {"name": name, "description": description, "instructions": instructions, "selected_tools": selected}


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(_text(one) for one in cast("list[Any]", value))
    return value.strip() if isinstance(value, str) else ""


def _free(name: str, taken: Collection[str]) -> str:
    """The name, with a number if it is taken."""
    free, number = name, 2
    while free in taken:
        free, number = f"{name} {number}", number + 1
    return free


_MOST_TRIES = 3


class GroupChatCreator(Agent):
    """Answers with a group, as JSON in a code fence; `group` makes a `GroupChat` of that.

    What the model writes is held back until it can be used, but for its thoughts. What is nearly right is mended, what
    is not is told the model, twice at most; then the answer is a sentence that says what is wrong. Members have no
    files, and only such tools as are in `function_list`.

    >>> creator = GroupChatCreator(llm=model)
    >>> reply = creator.run_nonstream([{"role": "user", "content": "Three cooks quarrel about soup."}])
    >>> creator.group(reply).run(...)
    """

    async def _stream_reply(self, messages: list[Message], *, lang: Lang, **kwargs: Any) -> Stream:
        del kwargs
        tools = (
            PROPOSE_TOOLS[lang].format(names=joined_names(list(self.function_map), lang)) if self.function_map else ""
        )
        told = prepend_system(messages, PROPOSE[lang].format(tools=tools))
        why = ""
        for _ in range(_MOST_TRIES):
            turn = Transcript()
            async with aclosing(self._tried(told, lang, turn)) as events:
                async for event in events:
                    yield event
            text = "\n".join(message.get_text_content() for message in turn.messages())
            try:
                found = proposal(text, self.function_map)
            except WrongProposalError as error:
                why = WRONG_PROPOSAL[lang][error.why]
                again = Message(USER, PROPOSE_AGAIN[lang].format(why=why))
                told = [*told, Message(ASSISTANT, text or "…"), again]
            else:
                for event in sentence_events(
                    self.name, f"```json\n{json.dumps(found, ensure_ascii=False, indent=2)}\n```"
                ):
                    yield event
                return
        for event in sentence_events(self.name, NOT_PROPOSED[lang].format(why=why)):
            yield event

    def group(
        self, reply: Sequence[Given], agent_selection_method: Method = "auto", name: str | None = None
    ) -> GroupChat:
        """The group that a reply proposes; its members and whoever picks the next speaker have the creator's model.

        Args:
            reply: What `run_nonstream` gave, or a conversation with it; the last proposal counts.
            agent_selection_method: How the next speaker is found.
            name: The group's.

        Raises:
            SettingsError: There is no proposal in it.
        """
        spoken, _ = as_messages(reply)
        for message in reversed(spoken):
            if message.role != ASSISTANT:
                continue
            try:
                found = proposal(message.get_text_content(), self.function_map)
            except WrongProposalError:
                continue
            for member in found["agents"]:
                member["selected_tools"] = [self.function_map[one] for one in member.get("selected_tools", ())]
            return GroupChat(found, agent_selection_method, llm=self._model(), name=name)
        raise SettingsError("Nothing in this reply proposes a group.", hint="Ask the creator again.")

    async def _tried(self, told: Sequence[Message], lang: Lang, turn: Transcript) -> Stream:
        """One answer of the model, collected in `turn`; yields the events that may be shown at once."""
        yield MessageStarted(self.name)
        async with aclosing(
            self._model().stream(ChatRequest(tuple(told), (), self.extra_generate_cfg, lang))
        ) as events:
            async for event in events:
                turn.apply(event)
                if isinstance(event, ReasoningDelta):
                    yield event
        yield MessageFinished("stop", turn.usage)
