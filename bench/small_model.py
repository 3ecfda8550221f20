"""What the built-in model gets right: `python -m bench.small_model [name of weights] [--show]`.

Each case is one question to the real model at temperature 0, through the layers that the application uses. A figure
is the number of wrong answers; `--show` prints each answer.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bench.figures import Figure, report
from core.llm.backends.llama_cpp import LlamaCppModel
from core.llm.request import has_chinese
from core.llm.weights_catalog import DEFAULT
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, USER, Message
from core.tools.catalog import TOOL_REGISTRY

TOOLS = ("calculator", "current_time")


@dataclass(frozen=True, slots=True)
class Case:
    """A question, and what a right answer looks like.

    Args:
        question: Asked last.
        right: A pattern that the answer, or the arguments of the call, must hold.
        call: The tool that must be called; empty where the model must answer in words.
        wrong: A pattern that the answer must not hold.
        facts: The tool that was called before, and its result.
    """

    question: str
    right: str = "."
    call: str = ""
    wrong: str = r"\{|\"name\""
    facts: tuple[str, str] | None = None

    def judged(self, reply: Sequence[Message]) -> bool:
        """Whether the reply is right."""
        called = [message.function_call for message in reply if message.function_call]
        if self.call:
            return bool(called) and called[0].name == self.call and bool(_has(self.right, called[0].arguments))
        text = said(reply)
        language = has_chinese(text) or not has_chinese(self.question) or len(text) < 12
        return not called and bool(_has(self.right, text)) and not _has(self.wrong, text) and language


@dataclass(slots=True)
class Task:
    """Cases of one kind, and how many may be wrong."""

    what: str
    goal: int
    cases: Sequence[Case]
    tools: bool = True
    failed: list[str] = field(default_factory=list[str])


ROUTER = (
    Case("Hi there, how are you?"),
    Case("你好，你能做什么？"),
    Case("Why do leaves turn yellow in autumn?", "leaves|chlorophyll|autumn"),
    Case("Write a Python function that reverses a string.", r"def |\[::-1\]|reverse", wrong='"name"'),
    Case("What is 1250 * 12 + 340 / 4?", r"1250.*12.*340.*4", "calculator"),
    Case("350 的 18% 是多少？", "350.*18|18.*350", "calculator"),
    Case("What time is it in Tokyo now?", "Tokyo", "current_time"),
    Case("北京现在几点？", "北京|Beijing|Shanghai", "current_time"),
)
CHAT = (
    Case("What is the capital of France?", "Paris"),
    Case("How many days are in a week?", "seven|7"),
    Case("Who are you?", "Parlour|Qwen|SmolLM", wrong="OpenAI"),
    Case("中国的首都是哪里？", "北京"),
    Case("你是谁？", "Parlour|通义|Qwen|助手", wrong="OpenAI"),
    Case("“谢谢”用英语怎么说？", "[Tt]hank"),
)
RESULTS = (
    Case("What is 1250 * 12 + 340 / 4?", "15,?085", facts=("calculator", "1250 * 12 + 340 / 4 = 15085")),
    Case("350 的 18% 是多少？", "63", facts=("calculator", "350 * 18% = 63")),
    Case(
        "What time is it in Tokyo now?",
        "23:05|11:05",
        facts=("current_time", "Saturday, 21 November 2026, 23:05:12 in Asia/Tokyo (UTC+09:00)"),
    ),
    Case(
        "北京现在几点？",
        "22:05|22 ?点|10 ?点",
        facts=("current_time", "2026年11月21日 星期六 22:05:12，Asia/Shanghai（UTC+08:00）"),
    ),
)
_POLICY = """[1] (policy.pdf, page 2) 4. Deductible. For each claim the policyholder pays the first 500 euros. \
For storm damage the deductible is 1,000 euros.
[2] (policy.pdf, page 3) 6. Cancellation. The contract may be cancelled in writing with three months' notice to the \
end of the insurance year. After a claim either side may cancel within one month.
[3] (policy.pdf, page 1) 1. What is insured. The building at 12 Mill Lane, Norwich, with its garage and fences. \
Household goods are not insured."""
_POLICY_ZH = """[1]（保险单.pdf，第 2 页）第四条 免赔额。每次事故，投保人自行承担 500 元。\
暴风造成的损失，免赔额为 1000 元。
[2]（保险单.pdf，第 3 页）第六条 解约。可提前三个月书面通知，在保险年度结束时解除合同。
[3]（保险单.pdf，第 1 页）第一条 保险标的。位于磨坊路 12 号的房屋，包括车库和围栏。家庭用品不在承保范围内。"""
PASSAGES = (
    Case("What does the policy say about the deductible?", "500", facts=("ask_documents", _POLICY)),
    Case("How much is the deductible for storm damage?", "1,?000", facts=("ask_documents", _POLICY)),
    Case("How much notice is needed to cancel?", "three months|3 months", facts=("ask_documents", _POLICY)),
    Case("Are household goods insured?", r"\b[Nn]ot?\b", facts=("ask_documents", _POLICY)),
    Case("Which building is insured?", "Mill Lane", facts=("ask_documents", _POLICY)),
    Case("这份保险单的免赔额是多少？", "500", facts=("ask_documents", _POLICY_ZH)),
    Case("暴风损失的免赔额是多少？", "1000", facts=("ask_documents", _POLICY_ZH)),
    Case("解除合同要提前多久通知？", "三个月|3 ?个月", facts=("ask_documents", _POLICY_ZH)),
)


def tasks() -> list[Task]:
    """What is measured; the goals are what was reached when this was built."""
    return [
        Task("a tool or an answer, rightly chosen", 1, ROUTER),
        Task("plain conversation, English and Chinese", 1, CHAT, tools=False),
        Task("an answer from a tool's result", 1, RESULTS),
        Task("an answer from passages of a document", 2, PASSAGES),
    ]


def said(reply: Iterable[Message]) -> str:
    """The words of a reply."""
    return "\n".join(message.get_text_content() for message in reply if message.get_text_content())


def _has(pattern: str, text: str) -> re.Match[str] | None:
    return re.search(pattern, text, re.DOTALL)


def conversation(case: Case) -> list[Message]:
    """What the model is asked for a case."""
    messages = [Message(USER, case.question)]
    if case.facts:
        name, result = case.facts
        system = "Answer questions about the documents from the numbered passages. If the answer is not there, say so."
        if name == "ask_documents":
            messages.insert(0, Message(SYSTEM, system))
        call = {"name": name, "arguments": "{}"}
        messages.append(Message(ASSISTANT, "", function_call=call, extra={"function_id": "1"}))
        messages.append(Message(FUNCTION, result, name=name, extra={"function_id": "1"}))
    return messages


async def measure(model: LlamaCppModel, task: Task, *, show: bool) -> Figure:
    """Ask all cases of a task."""
    functions = [TOOL_REGISTRY[name]().function for name in TOOLS] if task.tools else []
    wrong, started = 0, time.process_time()
    for case in task.cases:
        generate = {"temperature": 0, "max_tokens": 200, "lang": "zh" if has_chinese(case.question) else "en"}
        reply = await model.achat(conversation(case), functions, generate)
        right = case.judged(reply)
        wrong += not right
        if show:
            calls = [f"{m.function_call.name}{m.function_call.arguments}" for m in reply if m.function_call]
            print(f"{'   ' if right else 'NO '}{case.question} → {' '.join(calls) or said(reply)}", file=sys.stderr)
    seconds = (time.process_time() - started) / len(task.cases)
    unit = f"wrong of {len(task.cases)}"
    return Figure(f"{model.label}: {task.what}", wrong, task.goal, unit, f"{seconds:.1f} s of CPU a question")


async def main(arguments: Sequence[str]) -> None:
    """Measure one model."""
    names = [argument for argument in arguments if not argument.startswith("-")]
    model = LlamaCppModel({"model": names[0] if names else DEFAULT, "threads": 1})
    await model.prepare()
    try:
        report([await measure(model, task, show="--show" in arguments) for task in tasks()])
    finally:
        await model.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
