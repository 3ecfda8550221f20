"""Each kind of agent does something that an `Assistant` in its place would not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from core.agents.assistant import Assistant
from core.agents.basic import BasicAgent
from core.agents.catalog import AGENTS
from core.agents.hub import PENDING_USER_INPUT, MultiAgentHub
from core.agents.tools import AgentTool
from core.messages.content import ContentItem
from core.messages.message import Message
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.base import BaseTool

Make: TypeAlias = Callable[..., Any]

ASKED = [Message("user", "What is the harbour made of?")]
GROUP = {"agents": [{"name": "Ann", "description": "Counts."}, {"name": "Bob", "description": "Draws."}]}


class Python(BaseTool):
    """Stands for a sandbox."""

    name = "python"
    description = "Runs code."
    parameters = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
    runs_code = True

    def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        return "42"


def file_in(folder: Path) -> str:
    path = folder / "harbour.txt"
    path.write_text("The harbour is made of granite. " + "People walk there in the evening. " * 150)
    return str(path)


def reply_of(make: Make, *turns: Any, messages: Any = ASKED, **options: Any) -> tuple[list[Message], ScriptedModel]:
    model = ScriptedModel(*turns)
    return make(llm=model, **options).run_nonstream(messages), model


def texts(model: ScriptedModel, turn: int = 0) -> list[str]:
    return [message.get_text_content() for message in model.requests[turn].messages]


def members(*turns: str) -> list[Any]:
    return [BasicAgent(llm=ScriptedModel(text), name=text.partition(" ")[0]) for text in turns]


def basic(make: Make, folder: Path) -> bool:
    return reply_of(make, "x", function_list=["calculator"])[1].requests[0].functions == ()


def fn_call(make: Make, folder: Path) -> bool:
    asked = [Message("user", [ContentItem(text="What is in it?"), ContentItem(file=file_in(folder))])]
    return len(reply_of(make, "x", messages=asked)[0]) == 1  # it calls, and does not look into documents


def react(make: Make, folder: Path) -> bool:
    steps = (
        'Thought: I add.\nAction: calculator\nAction Input: {"expression": "20+22"}',
        "Thought: I know.\nFinal Answer: 42",
    )
    reply, _ = reply_of(make, *steps, function_list=["calculator"])
    return ["42" in message.get_text_content() for message in reply if message.role == "function"] == [True]


def dialogue(make: Make, folder: Path) -> bool:
    said = [Message(role, "We spoke of trains at length. " * 20) for _ in range(30) for role in ("user", "assistant")]
    _, model = reply_of(make, "x", messages=[*said, *ASKED], dialogue_tokens=300)
    return len(model.requests[0].messages) < 10


def group(make: Make, folder: Path) -> bool:
    reply, _ = reply_of(make, "x", agents=members("Ann speaks.", "Bob speaks."), agent_selection_method="round_robin")
    return [message.name for message in reply] == ["Ann", "Bob"]


def creator(make: Make, folder: Path) -> bool:
    reply, _ = reply_of(make, f"Here it is: {json.dumps(GROUP)}. Do you like it?")
    return reply[-1].get_text_content().startswith("```json")


def parallel(make: Make, folder: Path) -> bool:
    return len(reply_of(make, "Granite [1].", files=[file_in(folder)], part_tokens=200)[1].requests) > 2


def router(make: Make, folder: Path) -> bool:
    reply, _ = reply_of(make, "Call: Bob", agents=members("Ann speaks.", "Bob speaks."))
    return [message.content for message in reply] == ["Bob speaks."]


def tir(make: Make, folder: Path) -> bool:
    reply, _ = reply_of(make, "So:\n```python\nprint(6*7)\n```\n", "It is 42.", function_list=[Python()])
    return [message.get_text_content() for message in reply if message.role == "function"] == ["42"]


def person(make: Make, folder: Path) -> bool:
    return reply_of(make, "x")[0][-1].content == PENDING_USER_INPUT


def virtual(make: Make, folder: Path) -> bool:
    _, model = reply_of(make, Reply(calls=[("ask_documents", {"query": "harbour"})]), "x", files=[file_in(folder)])
    return "granite" not in "".join(texts(model)) and "granite" in texts(model, 1)[0]


def article(make: Make, folder: Path) -> bool:
    reply, model = reply_of(make, "of granite.", files=[file_in(folder)])
    return "Go on with the text" in texts(model)[-1] and reply[0].function_call is not None


def last_words(words: str) -> Callable[[Make, Path], bool]:
    return lambda make, folder: words in texts(reply_of(make, "x")[1])[-1]


def scratch(make: Make, folder: Path) -> bool:
    return reply_of(make, "1. Stone", "Granite.")[0][-1].content == "## Stone\n\nGranite."


def memory(make: Make, folder: Path) -> bool:
    reply, model = reply_of(make, "x", files=[file_in(folder)])
    found = reply[-1].get_text_content()
    return found.startswith("[") and "granite" in json.loads(found)[0]["text"][0] and not model.requests


def hub(make: Make, folder: Path) -> bool:
    return getattr(make(llm=ScriptedModel("x"), agents=members("Ann x", "Bob x")), "agent_names", []) == ["Ann", "Bob"]


def agent_tool(make: Make, folder: Path) -> bool:
    """Whoever calls it hears its answer, and it hears the question alone."""
    inner, outer = ScriptedModel("Granite."), ScriptedModel(Reply(calls=[("Ann", {"question": "Why?"})]), "Done.")
    tool = make(agent=Assistant(llm=inner, name="Ann"), llm=ScriptedModel("Granite."), name="Ann")
    Assistant([tool], outer, "Ask.").run_nonstream(ASKED)
    return "Granite." in texts(outer, 1)[-1] and bool(inner.requests)


PROMISES: Mapping[str, Callable[[Make, Path], bool]] = {
    "ArticleAgent": article,
    "BasicAgent": basic,
    "ContinueWriting": last_words("Go on with the text"),
    "DialogueRetrievalAgent": dialogue,
    "ExpandWriting": last_words("Write the text that is asked for"),
    "FnCallAgent": fn_call,
    "GroupChat": group,
    "GroupChatCreator": creator,
    "Memory": memory,
    "OutlineWriting": last_words("Plan the text"),
    "ParallelDocQA": parallel,
    "ReActChat": react,
    "Router": router,
    "TIRMathAgent": tir,
    "UserAgent": person,
    "VirtualMemoryAgent": virtual,
    "WriteFromScratch": scratch,
}
BESIDES: Mapping[str, tuple[Make, Callable[[Make, Path], bool]]] = {
    "MultiAgentHub": (AGENTS["Router"], hub),
    "AgentTool": (lambda agent, **_: AgentTool(agent), agent_tool),
}


def in_its_place(**options: Any) -> Assistant:
    """An assistant of what it takes of this."""
    taken = {"function_list", "llm", "system_message", "name", "description", "files", "rag_cfg", "max_iteration"}
    return Assistant(**{name: value for name, value in options.items() if name in taken})


@pytest.mark.parametrize("name", [*PROMISES, *BESIDES])
def test_it_does_what_an_assistant_in_its_place_would_not(name: str, tmp_path: Path) -> None:
    make, keeps = BESIDES[name] if name in BESIDES else (AGENTS[name], PROMISES[name])
    assert keeps(make, tmp_path)
    assert not keeps(in_its_place, tmp_path), "an assistant would do the same"


def test_every_kind_has_such_a_promise() -> None:
    assert set(PROMISES) == set(AGENTS) - {"Assistant"}
    assert issubclass(AGENTS["Router"], MultiAgentHub)
