"""What a program adds to an agent: deps for its functions, instructions, toolsets, hooks, guards, checks, handovers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from core import Confirm, Message, ModelRetry, Policy, Reply, RunContext, Stop, ToolResult, handoff, tool
from core.agents.basic import BasicAgent, FnCallAgent
from core.agents.router import Router
from core.errors import LimitReachedError, SettingsError
from core.llm.request import ChatRequest
from core.testing.script import Reply as Said
from core.testing.scripted_model import ScriptedModel


@dataclass
class Shop:
    """What the tools of these tests work with."""

    prices: dict[str, float]

    @tool(retries=1)
    def price(self, context: RunContext[Any], name: str) -> float:
        """What something costs.

        Args:
            name: What.
        """
        if name not in self.prices:
            raise ModelRetry(f"There is no {name}; this is try {context.attempt}.")
        return self.prices[name]


@tool
async def owner(context: RunContext[Shop], loud: bool) -> str:
    """Who owns it."""
    return f"{context.tool} {len(context.deps.prices)} {context.question} {loud}"


def calling(name: str, /, **arguments: Any) -> Said:
    return Said(calls=[(name, arguments)])


def test_a_tool_is_given_deps_and_the_reply_and_the_model_does_not_see_them():
    model = ScriptedModel(calling("owner", loud=True), "Done.")
    reply = FnCallAgent([owner], model).ask("Whose?", deps=Shop({"tea": 2.5}))
    assert reply.calls[0].result == "owner 1 Whose? True"
    assert list(model.requests[0].functions[0]["parameters"]["properties"]) == ["loud"]


@pytest.mark.parametrize(("deps", "got"), [(None, "nothing"), (3, "3")])
def test_deps_of_another_type_are_one_sentence_to_the_program_and_none_to_the_model(deps: object, got: str):
    model = ScriptedModel(calling("owner", loud=True), "Done.")
    with pytest.raises(SettingsError) as raised:
        FnCallAgent([owner], model).ask("Whose?", deps=deps)
    assert (
        str(raised.value)
        == f"'owner' wants deps of the type Shop, and was given {got}. Write ask(..., deps=Shop(...))."
    )
    assert len(model.requests) == 1


def test_a_method_is_a_tool_of_its_object():
    asks = [calling("price", name="tea"), "It is 2.5."]
    assert FnCallAgent([Shop({"tea": 2.5}).price], ScriptedModel(*asks)).ask("?").calls[0].result == "2.5"
    assert FnCallAgent([Shop({"tea": 4.0}).price], ScriptedModel(*asks)).ask("?").calls[0].result == "4.0"
    lost = FnCallAgent([Shop.price], ScriptedModel(*asks)).ask("?").calls[0].result
    assert (
        lost
        == "The tool 'price' is a method, and was given without its object. Write function_list=[the_object.price]."
    )


def test_a_call_goes_back_to_the_model_as_often_as_the_tool_says_and_is_made_no_more_after_that():
    model = ScriptedModel(*[calling("price", name=name) for name in ("gold", "salt", "tea")], "Done.")
    calls = FnCallAgent([Shop({"tea": 2.5}).price], model).ask("?").calls
    assert [one.result for one in calls] == [
        "There is no gold; this is try 0. Call it again with corrected arguments.",
        "There is no salt; this is try 1. This was the last try of 2: answer without it.",
        "'price' had its last try before: answer without it.",
    ]


def test_a_call_that_is_corrected_in_time_is_made():
    model = ScriptedModel(*[calling("price", name=name) for name in ("gold", "tea", "tea")], "Done.")
    calls = FnCallAgent([Shop({"tea": 2.5}).price], model).ask("?").calls
    assert [one.result for one in calls][1:] == ["2.5", "2.5"]


def test_a_tool_that_yields_tells_its_progress_and_returns_its_result():
    @tool
    def steps(count: int) -> Iterator[object]:
        """Count."""
        for number in range(count):
            yield f"step {number}", number, count
        return ToolResult("counted", data=[count])  # type: ignore[return-value]

    @tool
    async def later(count: int) -> AsyncIterator[object]:
        """Count later."""
        for number in range(count):
            yield f"later {number}"
        yield ToolResult("counted later")

    told: list[object] = []
    model = ScriptedModel(Said(calls=[("steps", {"count": 2}), ("later", {"count": 1})]), "Done.")
    reply = FnCallAgent([steps, later], model).ask("?", progress=lambda *said: told.append(said[1:]))
    assert [one.result for one in reply.calls] == ["counted", "counted later"]
    assert reply.calls[0].data == [2]
    assert sorted(told, key=str) == [("later 0", None, None), ("step 0", 0, 2), ("step 1", 1, 2)]


def test_a_tool_of_its_own_time_is_stopped_when_that_is_over():
    @tool(timeout=0.05)
    async def slow() -> str:
        """Wait."""
        await asyncio.Event().wait()
        return ""

    reply = FnCallAgent([slow], ScriptedModel(calling("slow"), "Done.")).ask("?")
    assert (reply.calls[0].failed, reply.calls[0].result) == (
        "tool_timeout",
        "The tool 'slow' did not finish within 0.05 seconds.",
    )


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"timeout": "5"}, "timeout of the tool 'it' must be"),
        ({"timeout": 0}, "timeout of the tool 'it' must be a number of seconds above 0, not"),
        ({"timeout": -1}, "timeout of the tool 'it' must be a number of seconds above 0, not"),
        ({"retries": -1}, "retries of the tool 'it' must be"),
    ],
)
def test_options_of_a_tool_are_checked(wrong: dict[str, Any], sentence: str):
    def it() -> str:
        return ""

    with pytest.raises(SettingsError, match=rf"^{sentence} .* Write @tool\("):
        tool(**wrong)(it)


def test_instructions_and_toolsets_are_made_for_each_reply():
    model = ScriptedModel(calling("owner", loud=False), "Done.")
    agent = FnCallAgent(llm=model, system_message="Be brief.")

    @agent.instructions
    async def who(context: RunContext[Shop]) -> str:
        return f"There are {len(context.deps.prices)} prices."

    @agent.toolset
    def tools(context: RunContext[Shop]) -> list[Any]:
        return [owner] if context.deps.prices else []

    assert agent.ask("Whose?", deps=Shop({"tea": 2.5})).calls[0].name == "owner"
    assert model.requests[0].messages[0].content == "Be brief.\n\nThere are 1 prices."
    assert not agent.function_map
    agent.ask("Whose?", deps=Shop({}))
    assert model.requests[-1].functions == ()


def test_functions_of_the_program_run_around_each_step_in_their_order():
    seen: list[str] = []
    agent = FnCallAgent([Shop({"tea": 2.5}).price], ScriptedModel(calling("price", name="gold"), "2.5"))

    @agent.before_reply
    def first(messages: list[Message]) -> None:
        seen.append(f"reply {len(messages)}")

    @agent.before_model
    def asks(request: ChatRequest) -> ChatRequest:
        seen.append("model")
        return replace(request, generate={**request.generate, "seed": 7})

    @agent.after_model
    async def said(context: RunContext[None], messages: list[Message]) -> None:
        seen.append(f"said {context.calls}")

    @agent.before_tool
    def calls(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        seen.append(f"call {name} {arguments['name']}")
        return {"name": "tea"}

    @agent.after_tool
    def called(name: str, result: ToolResult) -> str:
        seen.append(f"result {result.text}")
        return f"{result.text} euros"

    @agent.check
    def is_number(output: str) -> str:
        seen.append(f"check {output}")
        return output.strip()

    @agent.after_reply
    def last(reply: Reply[Any]) -> Reply[Any]:
        seen.append("over")
        return replace(reply, output=float(reply.output))

    reply = agent.ask("How much?")
    assert seen == [
        "reply 1",
        "model",
        "said 1",
        "call price gold",
        "result 2.5",
        "model",
        "said 2",
        "check 2.5",
        "over",
    ]
    assert (reply.output, reply.calls[0].result) == (2.5, "2.5 euros")
    assert isinstance(agent.llm, ScriptedModel)
    assert agent.llm.requests[0].generate["seed"] == 7


def in_place(name: str, arguments: dict[str, Any]) -> None:
    arguments["name"] = "tea"


@pytest.mark.parametrize("hook", [in_place, lambda name, arguments: {"name": "tea"}])
def test_a_call_of_the_reply_has_the_arguments_that_a_function_of_the_program_put_in(hook: Any):
    agent = FnCallAgent([Shop({"tea": 2.5}).price], ScriptedModel(calling("price", name="gold"), "2.5"))
    agent.before_tool(hook)
    (call,) = agent.ask("How much?").calls
    assert (call.arguments, call.result) == ({"name": "tea"}, "2.5")


def test_arguments_that_a_function_of_the_program_spoils_in_place_call_nothing():
    agent = FnCallAgent([Shop({}).price], ScriptedModel(calling("price", name="gold"), "Never mind."))
    agent.before_tool(lambda name, arguments: arguments.update(name=[1]))
    assert agent.ask("How much?").calls[0].failed == "bad_arguments"


def test_a_check_sends_an_answer_back():
    agent = BasicAgent(llm=ScriptedModel("no", "No, thank you."))

    @agent.check
    def is_polite(output: str) -> None:
        if "thank" not in output:
            raise ModelRetry("Be polite.")

    assert agent.ask("Tea?").text == "No, thank you."


@pytest.mark.parametrize(
    ("verdict", "approval", "text", "reason"),
    [
        (None, None, "You said: secret", "stop"),
        ("open", None, "You said: open", "stop"),
        (Stop("Not this."), None, "Not this.", "guard"),
        (Confirm("answer it"), lambda asking: asking.wants["en"] == "answer it", "You said: secret", "stop"),
        (Confirm("answer it", "Nobody agreed."), lambda asking: False, "Nobody agreed.", "guard"),
        (Confirm("answer it"), None, "This needs somebody's consent, and it was not given.", "guard"),
        (Confirm("answer it", "Nobody agreed."), Policy("never"), "Nobody agreed.", "guard"),
        (Confirm("answer it", "Nobody agreed."), Policy(allow=("*",)), "Nobody agreed.", "guard"),
    ],
)
def test_a_guard_of_questions_passes_rewrites_stops_or_asks(verdict: Any, approval: Any, text: str, reason: str):
    agent = BasicAgent(llm=ScriptedModel())
    agent.input_guard(lambda text: verdict)
    reply = agent.ask("secret", approval=approval)
    assert (reply.text, reply.stop_reason) == (text, reason)


@pytest.mark.anyio
async def test_nobody_sees_an_answer_before_its_guard_does():
    agent = BasicAgent(llm=ScriptedModel("The key is 1234567890123456, so there."))
    agent.output_guard(lambda text: text.replace("1234567890123456", "…"))
    seen = [event async for event in agent.stream([Message("user", "Key?")])]
    assert "".join(event.text for event in seen if event.kind == "text_delta") == "The key is …, so there."
    assert "1234567890123456" not in str((await agent.aask("Key?")).messages)


def test_what_a_guard_of_answers_stops_calls_nothing():
    agent = FnCallAgent([owner], ScriptedModel(Said("It is 1234.", calls=[("owner", {"loud": True})]), "Never said."))
    agent.output_guard(lambda text: Stop("No.") if "1234" in text else None)
    reply = agent.ask("Key?", deps=Shop({}))
    assert (reply.text, reply.stop_reason, reply.calls) == ("No.", "guard", [])


@pytest.mark.parametrize("add", ["instructions", "check", "before_tool", "input_guard"])
def test_a_function_that_takes_something_else_is_refused_where_it_is_added(add: str):
    with pytest.raises(
        SettingsError, match=rf"^{add} calls its function with .*, and 'wrong' takes 3\. Write def wrong\("
    ):

        def wrong(a: int, b: int, c: int) -> None: ...

        getattr(BasicAgent(), add)(wrong)


def test_a_guard_that_returns_something_else_is_one_sentence():
    agent = BasicAgent(llm=ScriptedModel("Yes."))
    agent.input_guard(lambda text: 3)
    with pytest.raises(SettingsError, match=r"returned int, which is no verdict\. Return None, another text, Stop"):
        agent.ask("Hello?")


def test_an_agent_within_is_given_the_deps_and_not_the_form_of_the_answer():
    inner = FnCallAgent([owner], ScriptedModel(calling("owner", loud=True), "Ann."), name="clerk")
    outer = FnCallAgent([inner], ScriptedModel(calling("clerk", question="Who?"), '{"result": 3}'))
    reply = outer.ask("Whose?", output_type=int, deps=Shop({}))
    assert (reply.output, reply.calls[0].result) == (3, "Ann.")


def test_a_led_agent_answers_in_the_form_that_is_wanted():
    members = [BasicAgent(llm=ScriptedModel("three", "3"), name="sums"), BasicAgent(llm=ScriptedModel(), name="other")]
    assert Router(llm=ScriptedModel("Call: sums"), agents=members).ask("1+2?", output_type=int).output == 3


def refunds(*turns: Any) -> FnCallAgent:
    return FnCallAgent([owner], ScriptedModel(*turns), name="Refunds", description="Gives money back.")


def test_another_agent_takes_over_with_the_whole_conversation():
    taker = refunds("Refunded, Ann.")
    first = FnCallAgent(
        [handoff(taker)],
        ScriptedModel(Said("One moment.", calls=[("transfer_to_refunds", {})]), "Never said."),
        name="Desk",
    )
    reply = first.ask("My money back.", history=[Message("user", "I am Ann."), Message("assistant", "Hello.")])
    assert (reply.text, reply.messages[-1].name) == ("Refunded, Ann.", "Refunds")
    assert isinstance(taker.llm, ScriptedModel)
    seen = taker.llm.requests[0].messages
    assert [one.get_text_content() for one in seen if one.role == "user"] == ["I am Ann.", "My money back."]
    assert isinstance(first.llm, ScriptedModel)
    assert len(first.llm.requests) == 1
    assert first.function_map["transfer_to_refunds"].description == "Hands over to Refunds. Gives money back."


@pytest.mark.parametrize(
    ("history", "seen"),
    [
        ("talk", ["user", "assistant"]),
        (lambda messages: messages[:1], ["user"]),
        ("all", ["user", "assistant", "assistant", "function"]),
    ],
)
def test_what_the_other_agent_sees_can_be_chosen(history: Any, seen: list[str]):
    taker = refunds("Refunded.")
    moment = Said("One moment.", calls=[("transfer_to_refunds", {})])
    FnCallAgent([handoff(taker, history=history)], ScriptedModel(moment)).ask("My money back.")
    assert isinstance(taker.llm, ScriptedModel)
    assert [one.role for one in taker.llm.requests[0].messages] == seen


def test_a_reply_can_be_given_back_and_then_has_the_form_that_is_wanted():
    taker = refunds(calling("hand_back", reason="It was paid."))
    desk = FnCallAgent([handoff(taker, back=True)], ScriptedModel(calling("transfer_to_refunds"), '{"result": 7}'))
    assert desk.ask("My money back.", output_type=int).output == 7
    assert "hand_back" not in taker.function_map
    straight = FnCallAgent([handoff(refunds("7 euros", "7"))], ScriptedModel(calling("transfer_to_refunds")))
    assert straight.ask("My money back.", output_type=int).output == 7


def test_a_guard_of_the_agent_that_takes_over_ends_the_reply():
    taker = refunds("The key is 1234.")
    taker.output_guard(lambda text: Stop("No."))
    desk = FnCallAgent([handoff(taker)], ScriptedModel(calling("transfer_to_refunds")))
    desk.before_model(lambda request: None)
    reply = desk.ask("Key?", output_type=int)
    assert (reply.text, reply.stop_reason) == ("No.", "guard")


@pytest.mark.parametrize("back", [False, True])
def test_whoever_takes_over_brings_its_own_hooks_guards_and_checks_and_the_first_one_guards_what_is_seen(back: bool):
    ran: list[str] = []

    def watched(agent: FnCallAgent, who: str) -> FnCallAgent:
        def note(what: str) -> None:
            ran.append(f"{who} {what}")

        agent.before_reply(lambda messages: note("before_reply"))
        agent.input_guard(lambda text: note("input_guard"))
        agent.before_model(lambda request: note("before_model"))
        agent.before_tool(lambda name, arguments: note("before_tool"))
        agent.output_guard(lambda text: note("output_guard"))
        agent.check(lambda output: note("check"))
        return agent

    taker = watched(refunds(calling("owner", loud=True), "Refunded."), "taker")
    desk = FnCallAgent([handoff(taker, back=back)], ScriptedModel(calling("transfer_to_refunds")))
    assert watched(desk, "desk").ask("My money back.", deps=Shop({})).text == "Refunded."
    entering = ["before_reply", "input_guard", "before_model", "before_tool"]
    assert ran == [
        *(f"desk {what}" for what in entering),
        *(f"taker {what}" for what in entering),
        *("taker before_model", "taker output_guard"),
        *("desk output_guard", "taker check"),
    ]


def test_two_agents_do_not_send_a_question_to_and_fro_for_ever():
    one, two = (
        FnCallAgent(llm=ScriptedModel(calling("transfer_to_two")), name="one"),
        FnCallAgent(llm=ScriptedModel(calling("transfer_to_one")), name="two"),
    )
    one.function_map, two.function_map = {"transfer_to_two": handoff(two)}, {"transfer_to_one": handoff(one)}
    with pytest.raises(LimitReachedError, match="handed over more than 10 times"):
        one.ask("Who?")


def test_the_guard_of_the_reply_decides_about_whoever_takes_over():
    @tool
    def pay() -> str:
        """Pay."""
        raise AssertionError("It was not allowed.")

    pay.writes = True
    taker = FnCallAgent([pay], ScriptedModel(calling("pay"), "Not paid."), name="Refunds")
    desk = FnCallAgent([handoff(taker)], ScriptedModel(calling("transfer_to_refunds")))
    reply = desk.ask("My money back.", approval=Policy())
    assert (reply.text, reply.calls[1].failed) == ("Not paid.", "refused_unattended")


@pytest.mark.parametrize("history", ["talk", lambda messages: messages[:1]])
def test_whoever_takes_over_reaches_no_unknown_address_after_documents_were_read(history: Any):
    @tool
    def read() -> str:
        """Read the contract."""
        return "The price is 1234."

    @tool
    def send(url: str) -> str:
        """Send it."""
        raise AssertionError("It was not allowed.")

    send.reaches_out = True
    taker = FnCallAgent([send], ScriptedModel(calling("send", url="https://x.example/1234"), "Not sent."), name="Two")
    desk = FnCallAgent(
        [read, handoff(taker, history=history)], ScriptedModel(calling("read"), calling("transfer_to_two"))
    )
    reply = desk.ask("What does it cost?", approval=Policy())
    assert (reply.text, reply.calls[-1].failed) == ("Not sent.", "refused_unattended")


def test_what_tools_of_the_agent_that_takes_over_give_the_program_is_in_the_reply():
    given = object()

    @tool
    def pay() -> ToolResult:
        """Pay."""
        return ToolResult("Paid.", data=given)

    taker = FnCallAgent([pay], ScriptedModel(calling("pay"), "It is paid."), name="Refunds")
    reply = FnCallAgent([handoff(taker)], ScriptedModel(calling("transfer_to_refunds"))).ask("My money back.")
    assert reply.calls[-1].data is given


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ((3,), "handoff takes an agent, not 3."),
        ((BasicAgent(),), "agent of handoff must have a name, and this BasicAgent has none."),
    ],
)
def test_only_an_agent_with_a_name_can_take_over(wrong: Any, sentence: str):
    with pytest.raises(SettingsError, match=sentence):
        handoff(*wrong)
