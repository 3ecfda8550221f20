"""Programs as one writes them for Qwen-Agent, with `core` in their imports and a scripted service behind their model.

What is checked elsewhere: the models' own checks (A1 to A4) in `tests/core/llm/test_peer_suite.py`, `Memory` (A5) in
`tests/core/agents/test_memory.py`, `storage` (A7) in `tests/golden/test_storage_golden.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core import (
    ASSISTANT,
    FUNCTION,
    LLM_REGISTRY,
    TOOL_REGISTRY,
    USER,
    Agent,
    AgentScratchpadUnit,
    ArticleAgent,
    Assistant,
    BaseChatModel,
    BaseTool,
    BasicAgent,
    ContentItem,
    FnCallAgent,
    GroupChat,
    Message,
    ReActChat,
    Router,
    UserAgent,
    VirtualMemoryAgent,
    WriteFromScratch,
    register_llm,
    register_tool,
)
from core.testing.model_server import ModelServer
from core.testing.script import Reply

Model = Callable[..., dict[str, Any]]
PAPER = [
    "主要序列转导模型基于复杂的循环或卷积神经网络，包括编码器和解码器",
    "性能最好的模型还通过注意力机制连接编码器和解码器",
    "对两个机器翻译任务的实验表明，这些模型在质量上非常出色，同时具有更高的并行性，并且需要的训练时间显着减少",
    "在 WMT 2014 英法翻译任务中，我们的模型在 8 个 GPU 上训练 3.5 天后，建立了新的单模型最先进 BLEU 分数 41.0",
]


class Draw(BaseTool):
    """Parameters in the old form, a list."""

    name = "my_image_gen"
    description = "Draws a picture and gives its address."
    parameters = [{"name": "prompt", "type": "string", "description": "What to draw", "required": True}]

    def call(self, params: Any, **kwargs: Any) -> str:
        prompt = json.loads(params)["prompt"]
        return json.dumps({"image_url": f"https://pictures.example/{prompt}"})


@register_tool("compat_weather", allow_overwrite=True)
class Weather(BaseTool):
    """Parameters as JSON Schema."""

    description = "Tells the weather of a place."
    parameters = {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}

    def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        return f"{self._verify_json_format_args(params)['location']}: 晴"


@register_llm("compat_parrot")
class Parrot(BaseChatModel):
    """A model of one's own, through the synchronous hooks."""

    def _chat_stream(
        self, messages: list[Message], delta_stream: bool, generate_cfg: dict[str, Any]
    ) -> Iterator[list[Message]]:
        said = messages[-1].get_text_content()
        for end in range(1, len(said) + 1):
            yield [Message(ASSISTANT, said[:end])]

    def _chat_no_stream(self, messages: list[Message], generate_cfg: dict[str, Any]) -> list[Message]:
        return [Message(ASSISTANT, messages[-1].get_text_content())]


class Twice(Agent):
    """An agent of one's own, through `_run`."""

    def _run(self, messages: list[Message], lang: str = "en", **kwargs: Any) -> Iterator[list[Message]]:
        said: list[Message] = []
        for said in self._call_llm(messages=messages):
            yield said
        again = [*messages, *said, Message(USER, f"again, in {lang}")]
        for more in self._call_llm(messages=again):
            yield [*said, *more]


class Looping(FnCallAgent):
    """One that calls tools by hand: `_detect_tool`, `_call_tool`, `function_map`."""

    def _run(self, messages: list[Message], lang: str = "en", **kwargs: Any) -> Iterator[list[Message]]:
        response: list[Message] = []
        for _ in range(3):
            output: list[Message] = []
            functions = [tool.function for tool in self.function_map.values()]
            for output in self._call_llm(messages=messages, functions=functions):
                yield response + output
            response += output
            used, name, arguments, _ = self._detect_tool(output[-1])
            if not used:
                break
            result = Message(FUNCTION, self._call_tool(name, arguments), name=name, extra=output[-1].extra)
            messages = [*messages, *output, result]
            response.append(result)
            yield response


def written(name: str, **arguments: Any) -> Reply:
    """A call as a model writes it that was told of its tools in the prompt."""
    call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return Reply(text=f"<tool_call>\n{call}\n</tool_call>")


@pytest.fixture
def llm() -> Iterator[Model]:
    """The dict of a model whose service says these replies, one after the other."""
    servers: list[ModelServer] = []

    def cfg(*replies: Reply | str, **generate: Any) -> dict[str, Any]:
        servers.append(ModelServer([Reply(text=one) if isinstance(one, str) else one for one in replies]).start())
        made = {"model": "scripted", "model_server": servers[-1].base_url, "api_key": "EMPTY"}
        return {**made, **({"generate_cfg": generate} if generate else {})}

    cfg.servers = servers  # type: ignore[attr-defined]
    yield cfg
    for server in servers:
        server.stop()


def prompts(llm: Model) -> list[str]:
    """Everything that was sent to the service, question by question."""
    server: ModelServer = llm.servers[-1]  # type: ignore[attr-defined]
    return [json.dumps(one.body["messages"], ensure_ascii=False) for one in server.requests]


def test_a6_what_is_found_fits_and_holds_the_answer() -> None:
    for name in ("keyword_search", "hybrid_search"):
        tool = TOOL_REGISTRY[name]({"max_ref_token": 100})
        for docs in ([PAPER], ["。".join(PAPER)]):
            found = tool.call({"query": "这个模型要训练多久？"}, docs=docs, max_ref_token=100)
            text = json.dumps(found, ensure_ascii=False)
            assert "3.5 天" in text, (name, text)


@pytest.mark.parametrize("tool", [Draw(), Draw], ids=["instance", "class"])
def test_a8_a_tool_of_ones_own_gives_three_messages(llm: Model, tool: Any) -> None:
    agent = Assistant(llm=llm(written("my_image_gen", prompt="cat"), "Here it is."), function_list=[tool])
    *_, last = agent.run([Message(USER, "draw a cat")])
    assert len(last) == 3
    assert last[0].function_call is not None
    assert last[0].function_call.name == "my_image_gen"
    assert (last[1].role, last[1].name) == (FUNCTION, "my_image_gen")
    assert "pictures.example/cat" in str(last[1].content)
    assert last[2].content == "Here it is."
    assert "What to draw" in prompts(llm)[0]


def test_a9_an_assistant_with_a_system_message_and_a_tool(llm: Model) -> None:
    agent = Assistant(
        llm=llm(written("compat_weather", location="海淀区"), "今天晴。"),
        system_message="你扮演一个天气预报助手",
        function_list=["compat_weather"],
    )
    messages = [{"role": "user", "content": "海淀区天气"}]
    *_, last = agent.run(messages)
    assert last[-3]["function_call"]["arguments"] == '{"location": "海淀区"}'
    assert last[-2]["name"] == "compat_weather"
    assert last[-1]["content"] == "今天晴。"
    assert messages == [{"role": "user", "content": "海淀区天气"}]
    assert "你扮演一个天气预报助手" in prompts(llm)[0]


def test_a10_a_model_that_thinks_in_text_sees_its_steps_in_the_same_words(llm: Model) -> None:
    step = 'Thought: I look it up.\nAction: compat_weather\nAction Input: {"location": "海淀区"}'
    agent = ReActChat(
        llm=llm(step, "Thought: I know it.\nFinal Answer: It is sunny."), function_list=["compat_weather"]
    )
    *_, last = agent.run([Message(USER, "海淀区天气")])
    assert last[-1].content == "It is sunny."
    assert "\\nAction: compat_weather\\nAction Input: " in prompts(llm)[1]
    assert "Observation: 海淀区: 晴" in prompts(llm)[1]
    thought, call, result = last[0], last[1], last[2]
    assert call.function_call is not None
    action = AgentScratchpadUnit.Action(call.function_call.name, json.loads(call.function_call.arguments))
    text = AgentScratchpadUnit(action, str(thought.reasoning_content), str(result.content)).to_prompt_message()
    for marker in ("\nAction: ", "\nAction Input: ", "\nObservation: "):
        assert marker in text


@pytest.mark.parametrize(("said", "speaker"), [("Call: Poet", "Poet"), ("Call: Nobody", "Clerk")])
def test_a11_a_router_hands_over_and_a_name_that_is_not_there_means_the_first(
    llm: Model, said: str, speaker: str
) -> None:
    clerk = Assistant(llm=llm("I count."), name="Clerk", description="Counts.")
    poet = Assistant(llm=llm("I rhyme."), name="Poet", description="Rhymes.")
    router = Router(llm=llm(said), agents=[clerk, poet])
    *_, last = router.run([{"role": "user", "content": "Go on"}])
    assert last[-1]["content"] in {"I rhyme.", "I count."}
    assert last[-1]["name"] == speaker
    assert not any("Call:" in str(message["content"]) for message in last)


def test_a_model_of_ones_own_is_named_in_a_dict() -> None:
    assert "compat_parrot" in LLM_REGISTRY
    bot = BasicAgent(llm={"model": "any", "model_type": "compat_parrot"})
    replies = list(bot.run([{"role": "user", "content": "say this"}]))
    assert replies[-1] == [{"role": "assistant", "content": "say this"}]
    assert bot.run_nonstream([{"role": "user", "content": "say this"}]) == replies[-1]


def test_an_agent_of_ones_own_asks_its_model_twice(llm: Model) -> None:
    agent = Twice(llm=llm("First.", "Second."), name="Twice")
    *_, last = agent.run([Message(USER, "Say something")])
    assert [message.content for message in last] == ["First.", "Second."]
    assert {message.name for message in last} == {"Twice"}
    assert "again, in en" in prompts(llm)[1]


def test_an_agent_of_ones_own_may_call_its_tools_by_hand(llm: Model) -> None:
    agent = Looping(llm=llm(written("compat_weather", location="Rome"), "Sunny."), function_list=["compat_weather"])
    *_, last = agent.run([Message(USER, "Weather?")])
    assert [message.role for message in last] == [ASSISTANT, FUNCTION, ASSISTANT]
    assert last[1].content == "Rome: 晴"


def test_a_conversation_goes_on_with_what_was_said(llm: Model) -> None:
    bot = Assistant(llm=llm("One.", "Two."))
    messages: list[Any] = []
    for question in ("first", "second"):
        messages.append({"role": "user", "content": [{"text": question}]})
        response: list[Any] = []
        for response in bot.run(messages=messages):  # noqa: B007 - the last one is the whole
            pass
        messages.extend(response)
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant"]
    assert "One." in prompts(llm)[1]


def test_content_of_items_and_a_file_reach_agent_and_tool(llm: Model, tmp_path: Any) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("The heron eats seventeen fish a day.", "utf-8")
    bot = Assistant(llm=llm("Seventeen [1]."))
    question = Message(USER, [ContentItem(text="How many fish does the heron eat?"), ContentItem(file=str(notes))])
    *_, last = bot.run([question])
    assert last[-1].content == "Seventeen [1]."
    assert "seventeen fish" in prompts(llm)[0]


def test_a_group_with_a_person_waits_for_the_person(llm: Model) -> None:
    ann = Assistant(llm=llm("Hello Kim."), name="Ann", description="Greets.")
    group = GroupChat(
        agents=[ann, UserAgent(name="Kim", description="A person.")], agent_selection_method="round_robin"
    )
    *_, last = group.run([Message(USER, "Hello", name="Kim")], max_round=2)
    assert last[0].name == "Ann"
    assert last[0].content == "Hello Kim."


def test_the_page_is_imported_from_one_place() -> None:
    from webui import WebUI

    assert WebUI(Assistant(llm={"model_type": "compat_parrot"}, name="Bot"), {"verbose": True}).look.verbose


def test_documents_as_virtual_memory(llm: Model, tmp_path: Path) -> None:
    (tmp_path / "paper.txt").write_text("。".join(PAPER), encoding="utf-8")
    bot = VirtualMemoryAgent(llm=llm(written("ask_documents", query="BLEU"), "41.0。"))
    asked = [ContentItem(text="BLEU 分数是多少？"), ContentItem(file=str(tmp_path / "paper.txt"))]
    *_, reply = bot.run([Message(USER, asked)])
    assert "41.0" in str(reply[-1].content)
    first, second = prompts(llm)
    assert "8 个 GPU" not in first
    assert "8 个 GPU" in second


def test_articles_from_scratch_and_continued(llm: Model) -> None:
    messages = [{"role": USER, "content": "写一篇关于港口的文章"}]
    *_, reply = ArticleAgent(llm=llm("一、石头\n二、船只", "很硬。", "很多。")).run(messages, full_article=True)
    assert reply[-1]["content"] == "## 石头\n\n很硬。\n\n## 船只\n\n很多。"
    *_, reply = ArticleAgent(llm=llm("船来了。")).run(messages)
    assert [message["content"] for message in reply] == ["船来了。"]
    *_, reply = WriteFromScratch(llm=llm("一、石头", "花岗岩。")).run(messages, knowledge="港口由花岗岩建成。")
    assert reply[-1]["content"] == "## 石头\n\n花岗岩。"
    assert all("港口由花岗岩建成" in prompt for prompt in prompts(llm))
