"""What agents that lead others say to models and to the reader; in both languages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.agents.base import Agent
    from core.llm.request import Lang

# -- Router

ROUTE: Mapping[Lang, str] = {
    "en": "You can hand a question over to these helpers:\n{members}\n\n"
    "Decide who answers the user's last message. If one of the helpers is better suited than you, write one line and "
    "nothing else:\nCall: the helper's name\nThe name must be one of: {names}. "
    "Otherwise answer yourself, without such a line.",
    "zh": "你可以把问题交给以下助手：\n{members}\n\n"
    "请判断由谁来回答用户的最后一条消息。如果某位助手比你更合适，就只写一行，不要写别的：\n"
    "Call: 助手的名字\n名字必须是其中之一：{names}。否则由你自己直接回答，不要写这样的一行。",
}
REMIND: Mapping[Lang, str] = {
    "en": "(Write “Call: ” and one of: {names}. Only if none of them fits, answer.)",
    "zh": "（请写“Call: ”加其中一个名字：{names}。都不合适时才直接回答。）",
}
HANDED_OVER: Mapping[Lang, str] = {"en": "Call: {name}\nReply: {text}", "zh": "Call: {name}\nReply: {text}"}
NO_SUCH_HELPER: Mapping[Lang, str] = {
    "en": "There is no helper named “{wanted}”, so “{name}” answers.",
    "zh": "没有名为“{wanted}”的助手，由“{name}”来回答。",
}
NAMED_NOBODY: Mapping[Lang, str] = {
    "en": "No helper was named, so “{name}” answers.",
    "zh": "没有指明由哪位助手回答，由“{name}”来回答。",
}
SAID_NOTHING: Mapping[Lang, str] = {
    "en": "“{name}” had nothing to say.",
    "zh": "“{name}”没有作出回答。",
}


def listed(agents: Sequence[Agent], lang: Lang) -> str:
    """A line for each agent: its name and what it is good at."""
    colon = "：" if lang == "zh" else ": "
    rows = ((agent.name or "", " ".join((agent.description or "").split())) for agent in agents)
    return "\n".join(f"- {name}{colon}{description}" if description else f"- {name}" for name, description in rows)


def in_a_row(names: Sequence[str], lang: Lang) -> str:
    """The names in one line."""
    return ("、" if lang == "zh" else ", ").join(names)


# -- GroupChat

GROUP: Mapping[Lang, str] = {
    "en": "You are {name}, one of several who talk with each other. The others:\n{others}\n\n"
    "What they say comes with their name in front. Speak for yourself alone, and put no name in front of it.",
    "zh": "你是{name}，正在和其他人一起交谈。其他人：\n{others}\n\n"
    "他们的话前面带有名字。请只以你自己的身份发言，发言前不要加名字。",
}
HEARD: Mapping[Lang, str] = {"en": "{name}: {text}", "zh": "{name}：{text}"}
SOMEBODY: Mapping[Lang, Mapping[str, str]] = {
    "en": {"user": "User", "assistant": "Assistant"},
    "zh": {"user": "用户", "assistant": "助手"},
}
GO_ON: Mapping[Lang, str] = {"en": "(It is your turn again.)", "zh": "（又轮到你发言了。）"}
HOST: Mapping[Lang, str] = {
    "en": "You lead a conversation between these members:\n{members}\n\n"
    "Read it and decide who speaks next; what was said last counts most. Answer with one of these names and nothing "
    "else: {names}. If the user wants to stop, or all has been said, answer [STOP].",
    "zh": "你主持以下成员之间的对话：\n{members}\n\n请阅读对话，决定下一位由谁发言；越靠后的话越重要。"
    "只回答其中一个名字，不要写别的：{names}。如果用户想结束，或者话已说完，就回答 [STOP]。",
}
WHO_NEXT: Mapping[Lang, str] = {
    "en": "{dialogue}\n\nWho speaks next? One of {names}, or [STOP].",
    "zh": "{dialogue}\n\n下一位由谁发言？从 {names} 中选一个，或回答 [STOP]。",
}
NOBODY_SPOKE: Mapping[Lang, str] = {"en": "Nobody had anything to say.", "zh": "没有人发言。"}
OVER: Mapping[Lang, str] = {"en": "The conversation has come to its end.", "zh": "对话已经结束。"}
CALL_SOMEBODY: Mapping[Lang, str] = {
    "en": "Say who is to answer, with an @ in front of the name: {names}.",
    "zh": "请用 @ 加名字指明由谁回答：{names}。",
}

# -- AgentTool

ASK_AGENT: Mapping[Lang, str] = {
    "en": "The question or task, with everything that is needed to answer it.",
    "zh": "要提的问题或任务，须包含回答所需的全部信息。",
}

# -- GroupChatCreator

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
