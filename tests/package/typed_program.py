"""A user's program that names every public name: it is only read, by type checkers at their strictest.

It is checked in a stranger's folder against an installed wheel, with no settings of ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, assert_type

from pydantic import BaseModel

from parlour import (
    ASSISTANT,
    AUDIO,
    CONTENT,
    EXTRA,
    FILE,
    FUNCTION,
    FUNCTION_CALL,
    IMAGE,
    LLM_REGISTRY,
    NAME,
    PENDING_USER_INPUT,
    REASONING_CONTENT,
    ROLE,
    SYSTEM,
    TEXT,
    TOOL_REGISTRY,
    USER,
    VIDEO,
    Agent,
    AgentConfig,
    AgentScratchpadUnit,
    AgentThought,
    ApprovalRequest,
    ArticleAgent,
    Assistant,
    BaseChatModel,
    BaseModelCompatibleDict,
    BaseTool,
    BaseToolWithFileAccess,
    BasicAgent,
    Citation,
    Cited,
    Claim,
    Confirm,
    ContentItem,
    ContinueWriting,
    Decision,
    DialogueRetrievalAgent,
    ExpandWriting,
    FallbackModel,
    FnCallAgent,
    FunctionCall,
    GenerateConfig,
    GroupChat,
    GroupChatCreator,
    Guard,
    Library,
    Limits,
    LLMConfig,
    MCPClient,
    MCPManager,
    Memory,
    Message,
    ModelResponse,
    ModelRetry,
    ModelServiceError,
    MultiAgentHub,
    OutlineWriting,
    OutputError,
    OutputParser,
    ParallelDocQA,
    ParlourError,
    Partial,
    Policy,
    RAGConfig,
    ReActChat,
    Reply,
    Router,
    RunContext,
    Score,
    Session,
    Stop,
    Suite,
    TIRMathAgent,
    TokenBufferMemory,
    ToolCall,
    ToolResult,
    Usage,
    UserAgent,
    VirtualMemoryAgent,
    WriteFromScratch,
    acheck_claims,
    add_cases,
    aevaluate,
    afold,
    case_of,
    check_claims,
    compare,
    evaluate,
    fold,
    get_chat_model,
    handoff,
    register_llm,
    register_tool,
    skills_in,
    tool,
    trace_to,
)
from parlour.webui import WebUI

CONSTANTS: list[str] = [
    *(SYSTEM, USER, ASSISTANT, FUNCTION, TEXT, IMAGE, FILE, AUDIO, VIDEO),
    *(ROLE, CONTENT, NAME, REASONING_CONTENT, FUNCTION_CALL, EXTRA, PENDING_USER_INPUT),
]


def messages() -> list[Message]:
    call = FunctionCall(name="add", arguments='{"a": 1}').add_argument("b", 2)
    parsed: dict[str, Any] = call.get_parsed_arguments()
    items = [ContentItem(text="Look:"), ContentItem(image="heron.png")]
    told = Message(role=USER, content=items, name="Ann", extra={"parsed": parsed})
    read: BaseModelCompatibleDict = told
    text: str = told.get_text_content()
    role: Any = read["role"]
    return [told, Message(ASSISTANT, text, function_call=call), Message(role, reasoning_content="Hm.")]


@register_llm("echo")
class Echo(BaseChatModel):
    """A model of the program's own."""

    def _chat_no_stream(self, messages: list[Message], generate_cfg: dict[str, Any]) -> list[Message]:
        return [Message(ASSISTANT, messages[-1].get_text_content())]


def models() -> BaseChatModel:
    model = get_chat_model({"model": "qwen-plus", "model_type": "qwen_dashscope", "generate_cfg": {"seed": 1}})
    chain = FallbackModel(
        {"models": [model, {"model": "claude-sonnet-4-5", "model_type": "anthropic"}], "on": ["busy"]}
    )
    several: BaseChatModel = get_chat_model([model, "gpt-5-mini"])
    print(chain.models, several.label)
    try:
        for snapshot in model.chat(messages=messages(), functions=[{"name": "add"}]):
            print(snapshot)
        said: str = model.quick_chat("Hello")
    except ModelServiceError as error:
        said = f"{error.code}: {error.message} {error.hint}"
    except ParlourError as error:
        said = error.hint
    answer = ModelResponse(messages=[Message(ASSISTANT, said)], usage=Usage(prompt_tokens=1) + Usage())
    content: str = answer.get_content()
    print(content, "echo" in LLM_REGISTRY)
    return model


def skilled() -> FnCallAgent:
    tools: list[BaseTool] = skills_in("skills")
    return FnCallAgent(function_list=tools)


@register_tool("heron")
class Heron(BaseTool):
    """A tool as a class."""

    description = "Counts herons."
    parameters = [{"name": "pond", "type": "string", "description": "Where", "required": True}]

    def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        return str(self._verify_json_format_args(params)["pond"])


class Reader(BaseToolWithFileAccess):
    """A tool that is given files."""

    name = "reader"

    def call(self, params: str | dict[str, Any], files: list[str] | None = None, **kwargs: Any) -> str:
        super().call(params, files, **kwargs)
        return self.work_dir


@tool
def add(a: int, b: int = 2) -> ToolResult:
    """Add two numbers.

    Args:
        a: One.
        b: The other.
    """
    return ToolResult(text=str(a + b), items=(ContentItem(text="sum"),))


@tool(name="subtract")
async def minus(a: int, b: int) -> str:
    """Subtract."""
    return str(a - b)


async def allowed(asking: ApprovalRequest) -> Decision:
    return Decision(allowed=asking.name == "heron")


def agents(model: BaseChatModel) -> list[Agent]:
    bot = Assistant(
        function_list=["heron", {"name": "calculator"}, add, Reader(), Heron],
        llm=model,
        system_message="Be brief.",
        name="bot",
        files=["manual.pdf"],
        rag_cfg=RAGConfig(retrieval_type="hybrid"),
    )
    guard = Guard(Policy(mode="writes", allow=("calculator",)), allowed)
    for snapshot in bot.run(messages(), approval=guard):
        print(snapshot[-1]["content"])
    last: Any = bot.run_nonstream([{"role": "user", "content": "Hello"}])
    print(last, "heron" in TOOL_REGISTRY)
    pair: list[Agent] = [FnCallAgent(llm=model, name="a"), UserAgent(name="b")]
    config = AgentConfig(type="Assistant", llm=LLMConfig(model="qwen-plus"), name="c")
    return [
        *(
            BasicAgent(llm=model),
            ReActChat(llm=model),
            Router(llm=model, agents=pair),
            GroupChat(agents=pair, llm=model),
        ),
        *(GroupChatCreator(llm=model), ParallelDocQA(llm=model), DialogueRetrievalAgent(llm=model)),
        *(VirtualMemoryAgent(llm=model), TIRMathAgent(llm=model), ArticleAgent(llm=model), WriteFromScratch(llm=model)),
        *(OutlineWriting(llm=model), ExpandWriting(llm=model), ContinueWriting(llm=model), Memory(llm=model)),
        Agent.from_config(config),
        Agent.from_config({"llm": {"model": "qwen-plus"}}),
    ]


class Own(Agent):
    """An agent with a synchronous step of its own, which leads another."""

    def _run(self, messages: list[Message], lang: str = "en", **kwargs: Any) -> Iterator[list[Message]]:
        yield [Message(ASSISTANT, lang)]


def remembered(model: BaseChatModel) -> str:
    memory = TokenBufferMemory(model=model, max_tokens=100)
    memory.add_message(Message(USER, "Hello"))
    newest: list[Message] = memory.get_history_messages()
    memory.clear()
    step = AgentScratchpadUnit(AgentScratchpadUnit.Action("add", {"a": 1}, "first"), "first", "1", "add")
    thought = AgentThought(
        id="1", message_id="2", thought="a", tool_name=None, tool_input=None, observation=None, position=1
    )
    return f"{newest} {step.to_prompt_message()} {thought.to_dict()} {GenerateConfig(temperature=0.5).as_cfg()}"


def found(folder: Path) -> list[str]:
    with Library.open(folder, RAGConfig()) as library:
        document = library.add("manual.pdf", name="Manual")
        library.add_text("A heron stands still.", name="Heron")
        passages = library.find("What stands still?", k=3, retrieval_type="keyword")
        picture: bytes = library.page_picture(passages[0])
        library.remove(document.id)
    return [
        f"{one.text} {one.score} {one.document} {one.page} {one.rectangles} {one.heading} {picture!r}"
        for one in passages
    ]


async def followed(agent: Agent) -> None:
    async for event in agent.stream(messages()):
        if event.kind == "text_delta":
            print(event.text)
    client = MCPClient("files", {"command": "server"})
    await client.connect()
    result: ToolResult = await client.call("list", {"folder": "."})
    print(result.text)
    await client.aclose()
    tools: list[BaseTool] = await MCPManager().connect({"mcpServers": {"files": {"command": "server"}}})
    claims: list[Claim] = await acheck_claims("It rains.", ["It rains."], judge=None)
    print([f"{one.sentence} {one.verdict} {one.reason} {one.passages}" for one in claims])
    with trace_to("traces.jsonl", secrets=["abc"]) as tracing:
        run = await aevaluate(Suite.of("suite.yaml"), agent=agent)
    print(tools, run, tracing.path)
    again = await aevaluate(Suite.of("suite.yaml"), agent, evaluators=[is_short, length])
    print([f"{one.name} {one.by:+.2f} {one.low} {one.high} {one.p}" for one in compare(run, again)])
    cases: Suite = add_cases("cases.json", [case_of(await agent.aask("Rain?"), "rain")])
    print(cases.tasks)


def is_short(case: Any, reply: Reply[Any]) -> bool:
    print(case.id)
    return len(reply.text) < 100


async def length(case: Any, reply: Reply[Any]) -> Score:
    del case
    return Score(len(reply.text) / 100, "length", why="in hundreds")


class Invoice(BaseModel):
    """What an answer shall be."""

    total: Cited[float]
    items: list[str]


@dataclass
class Shop:
    """What the program's own tools work with."""

    prices: dict[str, float]

    @tool(timeout=5, retries=1)
    def price(self, context: RunContext[int], name: str) -> float:
        """What something costs."""
        if name not in self.prices:
            raise ModelRetry(f"There is only {', '.join(self.prices)}; this was try {context.attempt}.")
        return self.prices[name]


def sum_of(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


def extended(agent: FnCallAgent, other: Agent) -> FnCallAgent:
    @agent.instructions
    async def who(context: RunContext[int]) -> str:
        return f"The user is number {context.deps}."

    @agent.check
    def is_short(output: object) -> None:
        if len(str(output)) > 1000:
            raise ModelRetry("Be brief.")

    @agent.input_guard
    def is_polite(text: str) -> Stop | Confirm | None:
        return Stop("Please ask politely.") if "!" in text else Confirm("answer it") if "?" not in text else None

    @agent.tool
    def half(number: float) -> float:
        """Half of it."""
        return number / 2

    assert_type(half(3.0), float)
    print(who, is_short, is_polite)
    return FnCallAgent([handoff(other, history="talk", back=True)], llm=agent.llm, name="desk")


async def typed(agent: Agent, shop: Shop) -> None:
    reply = agent.ask("How much?", output_type=Invoice, deps=1, limits=Limits(calls=5, cost=0.1))
    assert_type(reply, Reply[Invoice])
    assert_type(reply.output.total.value, float)
    assert_type(agent.ask("Hello?"), Reply[str])
    assert_type(await agent.aask("Which?", output_type=list[Invoice], history=reply), Reply[list[Invoice]])
    assert_type(agent.ask("Which?", output_type=Literal["a", "b"]).output, Literal["a", "b"])
    assert_type(agent.ask("Which?", output_type=Invoice | int).output, Invoice | int)
    assert_type(agent.ask("Add.", output_type=sum_of), Reply[float])
    cited: list[Citation] = reply.citations
    calls: list[ToolCall] = reply.calls
    print(cited, calls, reply.passages, reply.claims, reply.usage, reply.cost, reply.stop_reason, reply.log)
    print(fold(reply.log).text, (await afold(agent.events("Hello?"))).text, shop.price(RunContext(1), "tea"))
    async for partial in agent.partials("How much?", Invoice):
        assert_type(partial, Partial[Invoice])
        print(partial.value, partial.done)
    async with agent.session("talks.db", approval=Policy()) as session:
        await talked(session)


async def talked(session: Session) -> None:
    try:
        for asked in session.waiting:
            await session.adecide(asked.call_id, True)
        assert_type(await session.aask("How much?", output_type=Invoice), Reply[Invoice])
    except OutputError as error:
        print(error.problems, Stop("No."), Confirm("go on"))


def pieces(parser: OutputParser) -> list[str]:
    return [repr(piece) for piece in [*parser.feed("Thought: hm"), *parser.close()]]


def hub_of(agent: Agent) -> MultiAgentHub | None:
    return agent if isinstance(agent, MultiAgentHub) else None


def main() -> None:
    model = models()
    everyone = agents(model)
    print(remembered(model), found(Path("library")), hub_of(everyone[0]), CONSTANTS)
    asyncio.run(followed(everyone[0]))
    extended(FnCallAgent(llm=model), everyone[0])
    asyncio.run(typed(FnCallAgent([Shop({"tea": 2.5}).price], llm=model), Shop({})))
    print(check_claims("It rains [1].", [{"text": "It rains."}], "Does it rain?")[0].judge)
    print(evaluate("suite.yaml", agent=everyone[0]))
    WebUI(everyone, chatbot_config={"prompt.suggestions": ["Hello"]}).run(server_port=7860)


if __name__ == "__main__":
    main()
