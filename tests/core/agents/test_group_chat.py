"""`GroupChat`: who speaks next, what each member hears, and when it ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import aclosing
from itertools import pairwise
from typing import Any

import pytest

from core.agents.assistant import Assistant
from core.agents.base import Agent
from core.agents.basic import BasicAgent, FnCallAgent
from core.agents.group_chat import GroupChat
from core.agents.hub import PENDING_USER_INPUT, UserAgent
from core.errors import BadMessagesError, LimitReachedError, SettingsError
from core.llm.request import ChatRequest
from core.messages.message import Message
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import Policy
from core.tools.from_function import tool
from core.tools.run_state import Limits
from core.tools.taint import Taint

ASKED = [Message("user", "What shall we eat?")]


@tool
def double(n: int) -> int:
    """Double a number."""
    return 2 * n


def member(name: str, *turns: Any) -> BasicAgent:
    return BasicAgent(llm=ScriptedModel(*turns or [f"I am {name}."]), name=name, description=f"Is {name}.")


def members(*names: str) -> list[Agent]:
    return [member(name) for name in names or ("Ada", "Bob", "Cleo")]


def read(agent: Agent, call: int = -1) -> tuple[Message, ...]:
    """What a member's model was asked."""
    assert isinstance(agent.llm, ScriptedModel)
    return agent.llm.requests[call].messages


def speakers(reply: list[Message]) -> list[str | None]:
    return [message.name for message in reply]


# -- who speaks next


def test_in_turn_each_speaks_once_and_the_next_reply_begins_after_the_last_speaker():
    group = GroupChat(members(), "round_robin")
    assert speakers(group.run_nonstream(ASKED)) == ["Ada", "Bob", "Cleo"]
    assert speakers(group.run_nonstream(ASKED, max_round=5)) == ["Ada", "Bob", "Cleo", "Ada", "Bob"]
    assert speakers(group.run_nonstream([*ASKED, Message("user", "Hm.", name="Ada")], max_round=1)) == ["Bob"]
    assert speakers(group.run_nonstream(ASKED, need_batch_response=False)) == ["Ada"]


def test_at_random_nobody_speaks_twice_in_a_row_and_a_seed_repeats_the_order():
    def order(seed: int, conversation: list[Message]) -> list[str | None]:
        return speakers(GroupChat(members(), "random", seed=seed).run_nonstream(conversation, max_round=12))

    first = order(1, ASKED)
    assert first == order(1, ASKED)
    assert all(one != other for one, other in pairwise(first))
    assert len({tuple(order(seed, ASKED)) for seed in range(5)}) > 1
    assert first != order(1, [*ASKED, *ASKED])


def test_the_model_picks_until_it_stops():
    host = ScriptedModel("Bob", "“Ada”.", "Next is Bob", "[STOP]")
    group = GroupChat(members(), llm=host)
    assert speakers(group.run_nonstream(ASKED, max_round=9)) == ["Bob", "Ada", "Bob"]
    told, question = host.requests[2].messages
    assert "- Cleo: Is Cleo." in told.get_text_content()
    assert "User: What shall we eat?\nBob: I am Bob.\nAda: I am Ada." in question.get_text_content()
    assert not host.requests[0].functions


def test_a_conversation_that_is_over_at_once_says_so():
    reply = GroupChat(members(), llm=ScriptedModel("[STOP]"), name="Table").run_nonstream(ASKED)
    assert [(m.name, m.content) for m in reply] == [("Table", "The conversation has come to its end.")]


def test_a_model_that_never_picks_anybody_lets_them_speak_in_turn_and_ends():
    group = GroupChat(members(), llm=ScriptedModel("Let us see."))
    assert speakers(group.run_nonstream(ASKED, max_round=4)) == ["Ada", "Bob", "Cleo", "Ada"]


@pytest.mark.anyio
async def test_what_the_picking_cost_counts():
    group = GroupChat(members(), llm=ScriptedModel(Reply(text="Ada", usage=(10, 1)), "[STOP]"))
    used = [getattr(event, "usage", None) async for event in group.stream(ASKED)]
    assert any(usage is not None and usage.prompt_tokens == 10 for usage in used)


def test_who_is_mentioned_speaks_and_then_whom_those_mention():
    three = [member("Ada"), member("Bob Cook", "Ask @Cleo!"), member("Cleo")]
    group = GroupChat(three, "round_robin")
    assert speakers(group.run_nonstream([Message("user", "@bob cook, you?")], max_round=9)) == ["Bob Cook", "Cleo"]
    asked = [Message("user", "@Cleo and @Ada")]
    assert speakers(group.run_nonstream(asked, mentioned_agents_name=["Ada"])) == ["Ada", "Cleo"]


def test_two_who_mention_each_other_for_ever_come_to_an_end():
    group = GroupChat([member("Ada", "@Bob!"), member("Bob", "@Ada!")], "round_robin")
    assert speakers(group.run_nonstream(ASKED, max_round=6)) == ["Ada", "Bob"] * 3


def test_by_hand_only_who_is_called_speaks():
    group = GroupChat([member("小塘", "@小红 你好"), member("小红")], "manual")
    assert speakers(group.run_nonstream([Message("user", "＠小塘，在吗？")], max_round=9)) == ["小塘"]
    assert group.run_nonstream([Message("user", "有人吗？")])[0].content == "请用 @ 加名字指明由谁回答：@小塘、@小红。"


# -- what each hears


def test_each_hears_the_others_by_name_and_its_own_words_as_its_own():
    ada, bob = member("Ada"), member("Bob")
    GroupChat([ada, bob], "round_robin", system_message="It is noon.").run_nonstream(ASKED, max_round=3)
    assert [(m.role, m.get_text_content()) for m in read(ada)[1:]] == [
        ("user", "What shall we eat?"),
        ("assistant", "I am Ada."),
        ("user", "Bob: I am Bob."),
    ]
    assert [m.get_text_content() for m in read(bob)[1:]] == ["What shall we eat?", "Ada: I am Ada."]
    told = read(bob)[0].get_text_content()
    assert told.startswith("It is noon.\n\nYou are Bob")
    assert "- Ada: Is Ada." in told


def test_a_member_that_speaks_twice_in_a_row_is_asked_again():
    ada = member("Ada")
    GroupChat([ada], "round_robin").run_nonstream(ASKED, max_round=2)
    assert [m.role for m in read(ada)] == ["user", "assistant", "user"]


def test_calls_stay_with_the_member_that_made_them():
    counting = ScriptedModel(Reply(calls=[("double", {"n": 21})]), "It is 42.", "Still 42.")
    counter = FnCallAgent([double], counting, name="Counter")
    bob = member("Bob")
    group = GroupChat([counter, bob], "round_robin")
    reply = group.run_nonstream(ASKED, max_round=3)
    assert speakers(reply) == ["Counter", "double", "Counter", "Bob", "Counter"]
    assert [m.get_text_content() for m in read(bob)[1:]] == ["What shall we eat?", "Counter: It is 42."]
    assert [m.role for m in counting.requests[-1].messages[1:]] == [
        "user",
        "assistant",
        "function",
        "assistant",
        "user",
    ]


def test_what_agents_write_is_no_address_that_a_person_gave_and_what_tools_found_stays_private():
    counter = FnCallAgent([double], ScriptedModel(Reply(calls=[("double", {"n": 1})]), "See evil.example/a"), name="C")
    bob = member("Bob")
    GroupChat([counter, bob], "round_robin").run_nonstream([Message("user", "Read good.example/b")])
    seen = Taint.of(read(bob))
    assert seen.private
    assert seen.knows("https://good.example/b")
    assert not seen.knows("https://evil.example/a")


def test_calls_of_two_members_never_share_an_id():
    def calling(name: str) -> FnCallAgent:
        text = '<tool_call>\n{"name": "double", "arguments": {"n": 21}}\n</tool_call>'
        return FnCallAgent([double], ScriptedModel(text, "42", native=False), name=name)

    reply = GroupChat([calling("Ada"), calling("Bob")], "round_robin").run_nonstream(ASKED)
    ids = [(m.extra or {})["function_id"] for m in reply if m.function_call is not None]
    assert len(set(ids)) == 2


def test_what_a_rule_forbids_is_forbidden_to_every_member():
    counter = FnCallAgent([double], ScriptedModel(Reply(calls=[("double", {"n": 1})]), "no"), name="Counter")
    reply = GroupChat([counter], "round_robin").run_nonstream(ASKED, approval=Policy(deny=("double",)))
    assert (reply[1].extra or {})["failed"] == "refused_rule"


# -- persons


def test_when_it_is_a_persons_turn_the_reply_ends_and_goes_on_after_the_answer():
    ada, bob = member("Ada"), member("Bob")
    group = GroupChat([ada, UserAgent(name="Kim"), bob], "round_robin")
    reply = group.run_nonstream(ASKED, max_round=9)
    assert [(m.name, m.content) for m in reply[-1:]] == [("Kim", PENDING_USER_INPUT)]
    # A message of a user's is the one person's; so the first to speak was the one after Kim.
    assert speakers(reply) == ["Bob", "Ada", "Kim"]
    more = group.run_nonstream([*ASKED, *reply, Message("user", "Soup.")], max_round=1)
    assert speakers(more) == ["Bob"]
    heard = [m.get_text_content() for m in read(bob)[1:]]
    assert heard == ["Kim: What shall we eat?", "I am Bob.", "Ada: I am Ada.", "Kim: Soup."]


def test_the_model_may_pick_a_person():
    group = GroupChat([member("Ada"), UserAgent(name="Kim")], llm=ScriptedModel("Ada", "Kim", "Ada"))
    assert speakers(group.run_nonstream(ASKED, max_round=9)) == ["Ada", "Kim"]


GROUP: dict[str, Any] = {
    "background": "五子棋群组",
    "agents": [
        {"name": "小塘", "description": "白棋玩家", "is_human": True},
        {"name": "棋盘", "description": "负责更新棋盘", "instructions": "画出棋盘。", "selected_tools": ["calculator"]},
        {"name": "小黑", "description": "黑棋玩家"},
    ],
}


def test_a_reply_that_goes_on_lets_speak_who_was_called_and_has_not_spoken():
    asked = [Message("user", "@Ada @Cid, what do you think?")]
    for method in ("round_robin", "manual"):
        group = GroupChat([member("Ada"), member("Ben"), member("Cid")], method)
        spoken = group.run_nonstream(asked, max_round=1)
        assert [one.name for one in spoken] == ["Ada"]
        assert [one.name for one in group.run_nonstream([*asked, *spoken])] == ["Cid"]


def test_a_member_of_a_dict_that_only_says_how_to_write_has_the_groups_model():
    model, rows = ScriptedModel("Hello."), [{"name": "Ada", "llm": {"generate_cfg": {"seed": 1}}}, {"name": "Ben"}]
    group = GroupChat({"agents": rows}, "round_robin", llm=model)
    group.run_nonstream(ASKED)
    assert [request.generate.get("seed") for request in model.requests] == [1, None]


def test_a_group_is_made_of_a_dict_which_stays_as_it_is():
    before = repr(GROUP)

    def host_or_member(request: ChatRequest) -> str:
        return "棋盘" if "下一位" in request.messages[-1].get_text_content() else "好。"

    model = ScriptedModel(host_or_member)
    group = GroupChat(agents=GROUP, llm=model)
    assert [type(agent) for agent in group.agents] == [UserAgent, Assistant, Assistant]
    assert group.nonuser_agents == group.agents[1:]
    assert list(group.agents[1].function_map) == ["calculator"]
    assert speakers(group.run_nonstream([Message("user", "下在<1,1>")], max_round=1)) == ["棋盘"]
    told, said = model.requests[-1].messages
    assert told.get_text_content().startswith("负责更新棋盘\n\n画出棋盘。\n\n五子棋群组\n\n你是棋盘")
    assert said.get_text_content() == "小塘：下在<1,1>"
    assert repr(GROUP) == before


@pytest.mark.parametrize(
    ("agents", "said"),
    [
        ({}, "'agents' of a group must be a list"),
        ({"agents": []}, "has no agents"),
        ({"agents": ["Ada"]}, "Member 1 of the group must be a dict"),
        ({"agents": [{"name": "Ada"}, {"description": "?"}]}, "Member 2 of the group has no name"),
        ({"agents": [{"name": "Ada", "is_human": "yes"}]}, "'is_human' of member 1 of the group must be true or false"),
        ({"agents": [{"name": "Ada", "selected_tools": "calculator"}]}, "'selected_tools' of member 1"),
        ({"agents": [{"name": "Ada", "selected_tools": ["calculater"]}]}, "Did you mean 'calculator'"),
        ({"agents": [{"name": "Ada"}, {"name": "Ada"}]}, "Two agents are named 'Ada'"),
        ({"agents": [{"name": "Ada"}], "background": 3}, "'background' of a group must be text"),
    ],
)
def test_a_wrong_dict_is_told_at_once(agents: dict[str, Any], said: str):
    with pytest.raises(SettingsError, match=said):
        GroupChat(agents, llm=ScriptedModel("x"))


# -- what goes wrong


def test_a_group_that_cannot_be_is_told_at_once():
    with pytest.raises(SettingsError, match="has no model"):
        GroupChat(members())
    with pytest.raises(SettingsError, match="no way 'loudest'"):
        GroupChat(members(), "loudest")  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="Two agents are named 'Ada'"):
        GroupChat(members("Ada", "Ada"), "random")


def test_a_group_that_nobody_asked_anything_says_so():
    with pytest.raises(BadMessagesError, match="Nobody has said anything to the group"):
        GroupChat(members(), "random").run_nonstream([Message("assistant", "Hello!", name="Ada")])


@pytest.mark.parametrize("rounds", [0, 100, -1, "3", True])
def test_rounds_are_bounded(rounds: Any):
    with pytest.raises(SettingsError, match="max_round must be 1 to 99"):
        GroupChat(members(), "random").run_nonstream(ASKED, max_round=rounds)


def test_a_member_that_is_not_there_cannot_be_called():
    with pytest.raises(SettingsError, match="no member named 'Dan'"):
        GroupChat(members(), "manual").run_nonstream(ASKED, mentioned_agents_name=["Dan"])


def test_a_member_that_says_nothing_is_passed_over():
    group = GroupChat([member("Ada", ""), member("Bob")], "round_robin")
    assert speakers(group.run_nonstream(ASKED)) == ["Bob"]
    silent = GroupChat([member("Ada", "")], "round_robin", name="Table")
    assert [(m.name, m.content) for m in silent.run_nonstream(ASKED)] == [("Table", "Nobody had anything to say.")]


class Broken(Agent):
    """Fails in the middle, as Qwen-Agent's hook may."""

    def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
        yield [Message("assistant", "one")]
        raise RuntimeError("out of paper")


def test_a_member_that_fails_fails_the_reply_after_what_was_said():
    said: list[list[Message]] = []
    with pytest.raises(RuntimeError, match="out of paper"):
        said.extend(GroupChat([member("Ada"), Broken(name="Bob")], "round_robin").run(ASKED))
    assert [(m.name, m.content) for m in said[-1]] == [("Ada", "I am Ada."), ("Bob", "one")]


class Endless(Agent):
    """Never ends."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.closed = threading.Event()

    def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
        try:
            text = "on"
            while True:
                yield [Message("assistant", text)]
                text += " and on"
        finally:
            self.closed.set()


@pytest.mark.anyio
async def test_a_member_that_never_ends_can_be_closed():
    endless = Endless(name="Bob")
    async with aclosing(GroupChat([endless], "round_robin").stream(ASKED)) as events:
        async for event in events:
            if event.kind == "text_delta":
                break
    assert endless.closed.wait(60)


def test_a_reply_that_was_broken_off_goes_on_with_the_member_in_the_middle_of_its_call():
    counting = ScriptedModel("It is 42.")
    counter = FnCallAgent([double], counting, name="Counter")
    call = Message("assistant", "", "Counter", {"name": "double", "arguments": '{"n": 21}'}, extra={"function_id": "7"})
    said = [Message("assistant", "I am Ada.", "Ada"), call]
    group = GroupChat([member("Ada"), counter], "round_robin")
    reply = group.run_nonstream([*ASKED, *said], max_round=1, may_have_run=())
    assert [(m.name, m.get_text_content()) for m in reply] == [("double", "42"), ("Counter", "It is 42.")]
    assert [m.role for m in counting.requests[0].messages[1:]] == ["user", "user", "assistant", "function"]


@pytest.mark.parametrize(("limits", "key"), [(Limits(calls=3), "call_limit"), (Limits(tokens=35), "token_limit")])
def test_the_choice_of_who_speaks_counts_against_the_limits_of_the_reply(limits: Limits, key: str) -> None:
    members = [FnCallAgent([], ScriptedModel(Reply("Tea.", usage=(9, 1))), name=name) for name in ("Ann", "Bob")]
    host = ScriptedModel(Reply("Ann", usage=(10, 5)), Reply("Bob", usage=(10, 5)), "[STOP]")
    group = GroupChat(members, "auto", llm=host)
    with pytest.raises(LimitReachedError) as error:
        group.ask("What is there?", limits=limits)
    assert error.value.words_key == key
    assert len(host.requests) == 2
    assert group.ask("And now?", limits=Limits(calls=1_000)).stop_reason == "stop"
