"""Makes the demonstrations that come along, by really running Parlour.

Its built-in model answers, but for the talk of several agents: there the words are scripted, for it only repeats what
it is told.

`python -m bench.demo_recordings assets/demos` writes all of them; names after the folder choose some. What the model
says is kept as it comes, mistakes included: look at the files before you keep them.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from core import BasicAgent, GroupChat
from core.engine import Engine
from core.settings import Settings
from core.testing.model_server import ModelServer
from core.testing.script import Reply
from core.workspace.program import Program
from webui.bundles import assets_folder
from webui.commands import run_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.languages import Lang

_PACE: Final = 0.08  # seconds between two pieces
_DELAY: Final = 0.6


@dataclass(frozen=True, slots=True)
class Plan:
    """A conversation to be held and recorded.

    Args:
        file: A sample that comes with the first question; "" for none.
        team: Names and instructions of those who talk in turn, in place of the assistant, and what each says.
    """

    name: str
    lang: Lang
    title: str
    about: str
    questions: tuple[str, ...]
    said: tuple[str, ...]
    file: str = ""
    team: tuple[tuple[str, str, str], ...] = ()


PLANS: Final = (
    Plan(
        "en-1-documents",
        "en",
        "An insurance policy",
        "Answers from a PDF, with the page to prove them.",
        (
            "Within how many days must damage be reported, and how?",
            "How much is the deductible for damage by storm?",
        ),
        (
            "A question comes with a PDF.",
            "It looks for passages before it answers.",
            "Press a number: the page opens, with the passage marked.",
            "A second question about the same file.",
            "The search is made anew for it.",
            "The answer again names its page. The i opens every call of the model.",
        ),
        "policy.pdf",
    ),
    Plan(
        "en-2-tools",
        "en",
        "A sum, and a clock",
        "The model lets tools do what it is bad at.",
        ("What is 1250 * 12 + 340 / 4?", "What time is it in Tokyo now?"),
        (
            "A sum that a small model would get wrong.",
            "It calls the calculator. Press the line: what went in, and what came back.",
            "The answer rests on the result.",
            "What no model can know by itself.",
            "It asks the clock.",
            "The answer, as of the day of the recording.",
        ),
    ),
    Plan(
        "en-3-agents",
        "en",
        "Three at one table",
        "Several agents talk in turn, each by name.",
        ("Shall we open a second café in the harbour?",),
        ("A question to three agents.", "Each speaks in turn, as it was told to, and hears those before it."),
        team=(
            (
                "Ann",
                "You like every plan and name one gain. Answer in one sentence.",
                "Yes: by the water it would catch everybody who waits for the ferry and has nowhere to sit today.",
            ),
            (
                "Bob",
                "You see the risk in every plan and name one. Answer in one sentence.",
                "From November to March the harbour is empty, and the rent would eat what the summer brings.",
            ),
            (
                "Carla",
                "You say in one sentence what should be done first.",
                "Then rent a kiosk for one summer, count the cups, and decide in September.",
            ),
        ),
    ),
    Plan(
        "zh-1-documents",
        "zh",
        "一份保险单",
        "从 PDF 中回答，并给出所在的页面。",
        ("出险后要在多少天内通知，怎样通知？", "暴风造成的损失，免赔额是多少？"),
        (
            "提问时附上一份 PDF。",
            "回答之前先查找相关段落。",
            "点击编号即可打开原页，并标出该段落。",
            "就同一份文件再问一个问题。",
            "为它重新查找。",
            "回答仍然给出页码。点 i 可查看每一次模型调用。",
        ),
        "保险单.pdf",
    ),
    Plan(
        "zh-2-tools",
        "zh",
        "算一道题，看一下钟",
        "模型不擅长的事，交给工具。",
        ("1250 * 12 + 340 / 4 等于多少？", "东京现在几点？"),
        (
            "小模型容易算错的一道题。",
            "它调用计算器。点击该行可看输入和结果。",
            "回答以结果为准。",
            "没有哪个模型自己知道现在几点。",
            "它查看时钟。",
            "回答的是录制当天的时间。",
        ),
    ),
    Plan(
        "zh-3-agents",
        "zh",
        "三人一桌",
        "多个智能体轮流发言，各有其名。",
        ("我们要不要在港口再开一家咖啡馆？",),
        ("向三个智能体提问。", "它们依次发言，各按各的要求，也听得到前面的话。"),
        team=(
            (
                "小安",
                "你赞成每个计划，并说出一个好处。只用一句话回答。",
                "可以：等渡船的人现在没有地方坐，水边的店正好接待他们。",
            ),
            (
                "小博",
                "你总能看到计划的风险，并说出一个。只用一句话回答。",
                "十一月到三月港口没有人，夏天赚的钱会被租金吃掉。",
            ),
            ("小珂", "你用一句话说出应该先做什么。", "那就先租一个夏天的小亭子，数一数卖出多少杯，九月再决定。"),
        ),
    ),
)


def _program(plan: Plan, address: str) -> Program | None:
    if not plan.team:
        return None
    scripted = {"model": "scripted", "model_type": "openai", "base_url": address, "api_key": "any"}
    members = [BasicAgent(llm=scripted, name=name, system_message=told) for name, told, _ in plan.team]
    return Program([GroupChat(members, agent_selection_method="round_robin", llm=scripted, name=plan.title)])


async def _hold(plan: Plan, home: Path, address: str) -> str:
    settings = Settings.load(home=home, titles=not plan.team)
    program = _program(plan, address)
    async with Engine(settings, program=program) as engine, engine.workspaces.open("local") as workspace:
        talk = await workspace.conversations.create()
        for turn, question in enumerate(plan.questions):
            files: list[str] = []
            if plan.file and not turn:
                sample = (assets_folder() / "samples" / plan.file).read_bytes()
                files = [(await workspace.files.put(plan.file, sample)).id]
            run = await workspace.conversation(talk.id).ask(question, files, plan.lang)
            await run.wait()
            sys.stderr.write(f"{plan.name}: {question}\n  → {run.reply().text}\n")
        await workspace.conversations.rename(talk.id, plan.title)
        return talk.id


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the recordings; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args(arguments)
    for plan in PLANS:
        if given.names and plan.name not in given.names:
            continue
        script = [Reply(text=said, pace=_PACE, delay=_DELAY) for *_, said in plan.team]
        with (
            TemporaryDirectory(prefix="parlour-demo-") as home,
            ModelServer(lambda _, script=script: script.pop(0)) as model,
        ):
            talk = asyncio.run(_hold(plan, Path(home), model.base_url))
            told = ["--title", plan.title, "--about", plan.about, "--speaks", plan.lang]
            said = [part for one in plan.said for part in ("--say", one)]
            code = run_command("record", [talk, str(given.folder / f"{plan.name}.jsonl"), *told, *said, "--home", home])
            if code:
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
