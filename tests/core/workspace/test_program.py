"""A program's own agents behind the page: who answers, with which model, from which documents."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core import Agent, Assistant, FnCallAgent, Message
from core.engine import Engine
from core.errors import NotFoundError, SettingsError
from core.settings import Settings
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.base import BaseTool
from core.workspace.program import Program, named_copy
from tests.core.talks import talk_of

pytestmark = pytest.mark.anyio


class Echo(Agent):
    """Answers with code alone."""

    def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
        del kwargs
        files = [str(item.value) for item in messages[-1].items if item.type == "file"]
        texts = [Path(file).read_text("utf-8") for file in files]
        names = [Path(file).name for file in files]
        said = messages[-1].get_text_content()
        yield [Message("assistant", f"{said}|{','.join(names)}|{','.join(texts)}")]


class Writing(BaseTool):
    """A tool that changes something."""

    name = "keep"
    description = "Keeps."
    parameters = {"type": "object", "properties": {}}
    writes = True

    def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        return "kept"


def settings(tmp_path: Path) -> Settings:
    return Settings.load(home=tmp_path / "home", retrieval="keyword", code="off")


async def asked(house: Engine, text: str, conversation: str = "", files: list[str] | None = None) -> tuple[str, str]:
    talk = conversation or (await house.stores.of("alice").conversations.create()).id
    run = await talk_of(house, "alice", talk).ask(text, files or [])
    await run.wait()
    return run.reply().text, talk


def test_only_agents_whose_replies_are_made_by_parlours_loop_go_on_where_another_process_left_them() -> None:
    class Further(Assistant):
        """Has its own way to reply."""

        def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
            yield from ()

    model = ScriptedModel("Hello.")
    loops = [FnCallAgent([Writing()], model, name="one"), Assistant([], model, name="two")]
    assert Program(loops).goes_on
    assert not Program([*loops, Echo(name="three")]).goes_on
    assert not Program([Further([], model)]).goes_on


async def test_an_agent_answers_with_its_own_model_and_name(tmp_path: Path) -> None:
    agent = FnCallAgent(llm=ScriptedModel("Here I am."), name="Ann")
    async with Engine(settings(tmp_path), program=Program([agent])) as house:
        reply, talk = await asked(house, "Who are you?")
        thread = await house.stores.of("alice").conversations.thread(talk)
    assert reply == "Here I am."
    assert thread[-1].parts[-1].name == "Ann"


async def test_an_agent_of_code_alone_needs_no_model_and_is_given_files_under_their_names(tmp_path: Path) -> None:
    async with Engine(settings(tmp_path), program=Program([Echo(name="Echo")])) as house:
        file = await house.stores.of("alice").files.put("notes.txt", b"four herons")
        reply, _ = await asked(house, "Look", files=[file.id])
    assert reply == "Look|notes.txt|four herons"


async def test_a_plain_assistant_answers_from_the_documents_of_the_conversation(tmp_path: Path) -> None:
    model = ScriptedModel("Seventeen fish [1].")
    async with Engine(settings(tmp_path), program=Program([Assistant(llm=model)])) as house:
        file = await house.stores.of("alice").files.put("notes.txt", b"The heron eats seventeen fish a day.")
        talk = (await house.stores.of("alice").conversations.create()).id
        run = await talk_of(house, "alice", talk).ask("How many fish does the heron eat?", [file.id])
        await run.wait()
    assert [passage["text"] for passage in run.reply().passages] == ["The heron eats seventeen fish a day."]


async def test_what_an_agents_tool_would_change_is_asked_first(tmp_path: Path) -> None:
    model = ScriptedModel(Reply(calls=[("keep", {})]), "Done.")
    async with Engine(settings(tmp_path), program=Program([FnCallAgent([Writing()], model)])) as house:
        talk = (await house.stores.of("alice").conversations.create()).id
        run = await talk_of(house, "alice", talk).ask("Keep it")
        async with asyncio.timeout(10):
            while not run.reply().asking:
                await asyncio.sleep(0.01)  # until the model has called
        call = run.reply().asking[0]
        await talk_of(house, "alice", talk).decide(call.call_id, allowed=False)
        await run.wait()
    assert run.reply().blocks[0].state == "refused"  # type: ignore[union-attr]


async def test_of_several_the_chosen_one_answers_and_a_mention_turns_to_another(tmp_path: Path) -> None:
    agents = [FnCallAgent(llm=ScriptedModel(f"I am {name}."), name=name) for name in ("Ann", "Anna", "李雷")]
    program = Program(agents, mention=True)
    async with Engine(settings(tmp_path), program=program) as house:
        first, talk = await asked(house, "Who?")
        await program.choose(talk_of(house, "alice", talk), 2)
        chosen, _ = await asked(house, "And now?", talk)
        named, _ = await asked(house, "@Anna say it", talk)
        after, _ = await asked(house, "And now?", talk)
    assert [first, chosen, named, after] == ["I am Ann.", "I am 李雷.", "I am Anna.", "I am 李雷."]


async def test_agents_chosen_in_two_conversations_at_the_same_moment_both_stay(tmp_path: Path) -> None:
    agents = [FnCallAgent(llm=ScriptedModel("Hello."), name=name) for name in ("Ann", "Ben")]
    program = Program(agents)
    async with Engine(settings(tmp_path), program=program) as house:
        talks = [talk_of(house, "alice", (await house.stores.of("alice").conversations.create()).id) for _ in range(10)]
        await asyncio.gather(*(program.choose(talk, 1) for talk in talks))
        assert [await program.chosen(talk) for talk in talks] == [1] * 10


async def test_nobody_chooses_an_agent_that_is_not_there_or_for_somebody_else(tmp_path: Path) -> None:
    program = Program([Echo(name="Echo")])
    async with Engine(settings(tmp_path), program=program) as house:
        _, talk = await asked(house, "Hello")
        for owner, place in (("alice", 1), ("alice", -1), ("bob", 0)):
            with pytest.raises(NotFoundError):
                await program.choose(talk_of(house, owner, talk), place)


async def test_a_new_conversation_begins_with_what_was_given(tmp_path: Path) -> None:
    model = ScriptedModel("Yes.")
    beginning = [Message("user", "My name is Kim."), Message("assistant", "Hello Kim.")]
    program = Program([FnCallAgent(llm=model)], beginning=beginning)
    async with Engine(settings(tmp_path), program=program) as house:
        talk = (await house.stores.of("alice").conversations.create()).id
        await program.begin(talk_of(house, "alice", talk))
        await asked(house, "Do you know my name?", talk)
    assert [one.get_text_content() for one in model.requests[0].messages] == [
        "My name is Kim.",
        "Hello Kim.",
        "Do you know my name?",
    ]


@pytest.mark.parametrize(
    ("agents", "said"),
    [([], "no agent"), ([Echo(name="A"), Echo(name="A")], "Two agents"), (["Echo"], "no agent")],
)
def test_what_cannot_be_served_is_said_in_one_sentence(agents: list[Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Program(agents)


def test_a_file_that_two_conversations_want_at_once_is_whole_for_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept").write_bytes(b"all of it")
    real, others = shutil.copyfile, list[Path]()

    def beside_another(source: Path, draft: Path) -> object:
        made = real(source, draft)
        if not others:
            others.append(draft)
            others.append(named_copy(source, tmp_path / "a", "plan.txt"))
        return made

    monkeypatch.setattr(shutil, "copyfile", beside_another)
    path = named_copy(tmp_path / "kept", tmp_path / "a", "plan.txt")
    assert others[1:] == [path]
    assert [(one.name, one.read_bytes()) for one in path.parent.iterdir()] == [("plan.txt", b"all of it")]
