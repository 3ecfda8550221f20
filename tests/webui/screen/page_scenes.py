"""Conversations that are long, or hold what is hard to lay out."""

from __future__ import annotations

from dataclasses import replace

from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.messages.message import Usage
from core.rag.attribution import sentences_of
from core.runs.log import Checked, ClaimsChecked, ModelCalled, RunFinished
from core.runs.reply import Reply
from core.storage.base import StoredMessage
from tests.webui.screen.calls_scenes import At, Scene, asking, call, came, paused, reply_of, traced, turns
from webui.render.comparing import Compared

PARAGRAPH = "The quick brown fox jumps over the lazy dog and goes on to the next field, where it rests a while."


def long() -> Scene:
    """Ten questions with links and tool calls; the first reply holds a word that stands nowhere else."""
    thread, replies = turns("Question 0?", _answer("There is a needle here."), "r0")
    for number in range(1, 10):
        more, others = turns(f"Question {number}?", _answer(""), f"r{number}")
        thread, replies = [*thread, *more], {**replies, **others}
    return thread, replies


TYPED = "- one  *star*\n    indented  <b>\n1) _not_ a list\n\n\n# no heading, $5 and $10"


def typed() -> Scene:
    """A question full of signs that Markdown would read, and a long one of forty lines."""
    thread, replies = turns(TYPED, _answer(""), "r0")
    more, others = turns("\n".join(f"line {number}: 12 of 12 in use" for number in range(40)), _answer(""), "r1")
    return [*thread, *more], {**replies, **others}


def _answer(first: str) -> Reply:
    text = "\n\n".join([f"{first} {PARAGRAPH} [A link](https://example.org/page).", PARAGRAPH, PARAGRAPH])
    looked_up = [*call("a", "calculator", 0, expression="1+1"), came("a", 0.2, "2")]
    return reply_of((0, MessageStarted()), *looked_up, (0.3, TextDelta(text)), (1, RunFinished("complete")))


def marks() -> Scene:
    """Marks and signs at the ends of sentences, in English and Chinese, so that some stand at the ends of lines."""
    return _marks(40, 60)


def web_marks() -> Scene:
    """The same in a reply from the web, whose signs lead nowhere."""
    return _marks(40, 60, url="https://example.org/policy")


def english_with_marks(sentences: int) -> str:
    """Sentences as a model writes them that cites its passages."""
    return " ".join(f"{'The deductible is x' + 'y' * (at % 7)} [{at % 12 + 1}]." for at in range(sentences))


def _marks(english_ones: int, chinese_ones: int, **more: str) -> Scene:
    passage = {"text": "…", "document": "policy.pdf", "document_id": "doc", "page": 2, "chunk_id": 1, **more}
    passages = [{**passage, "chunk_id": number} for number in range(1, 13)]
    english = english_with_marks(english_ones)
    chinese = "".join(
        f"虫声新透绿窗纱{'，' * (at % 2)}{'今' * (at % 5)}[{at % 12 + 1}]。" for at in range(chinese_ones)
    )
    text = f"{english}\n\n{chinese}"
    claims = [
        Checked(1, end, "unsupported" if at % 2 else "weak", ()) for at, (_, end) in enumerate(sentences_of(text))
    ]
    found = [*call("a", "ask_documents", 0, query="x"), came("a", 0.2, "…", passages=passages)]
    said = [(0.3, MessageStarted()), (0.3, TextDelta(text)), (0.9, MessageFinished("stop"))]
    checked = [(0.95, ClaimsChecked(tuple(claims))), (1, RunFinished("complete"))]
    return turns("What is it?", reply_of((0, MessageStarted()), *found, *said, *checked))


TABLE = """| Industries | 年份 | Amount | Formula | A remark of some length | And another one | The last |
|---|---|---:|---|---|---|---|
| Agriculture, forestry and fishing | 2024 | 1,234.5 | =HYPERLINK("x") | He said "no" | -5.2 % | Industries |
| Manufacturing | 2025 | -99.0 | $a^2$ | plain | @cmd | Industries |
"""


def table() -> Scene:
    """A wide table, and a narrow one."""
    text = f"Here it is.\n\n{TABLE}\nAnd:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThat is all."
    return turns("A table?", reply_of((0, MessageStarted()), (0.3, TextDelta(text)), (1, RunFinished("complete"))))


def everything() -> Scene:
    """A bit of all that a conversation can hold, and a question that waits."""
    heading = f"### A heading of the model's own\n\n{TABLE}\n```python\n{'print(300 < 750)  # ' * 12}\n```\n\n$$a^2$$"
    written = reply_of((0, MessageStarted()), (0.3, TextDelta(heading)), (1, RunFinished("complete")))
    error = {"key": "model_unreachable", "message": "", "hint": "", "details": {"host": "api.example.org"}}
    failed = reply_of((0, MessageStarted()), (0.3, TextDelta("It was")), (1, RunFinished("error", error)))
    parts = [_marks(3, 2), traced(), turns("Write.", written), turns("And?", failed), paused(), asking()]
    thread: list[StoredMessage] = []
    replies: dict[str, Reply] = {}
    for number, (turns_of, replies_of) in enumerate(parts):
        thread += [replace(turn, id=f"{number}-{turn.id}") for turn in turns_of]
        replies |= {f"{number}-{name}": reply for name, reply in replies_of.items()}
    return thread, replies


def compared() -> Scene:
    """A question that two models answer: the first is done, the second writes; and one before."""
    rows = "| Layers | OTSL | HTML |\n|---|---:|---:|\n| 6/6 | 2.73 | 5.39 |\n| 4/4 | 1.97 | 3.77 |"
    table = f"Nearly. It agrees for three of the four sizes.\n\n{rows}\n\nThe smallest decoder gains less."
    first = reply_of((0, MessageStarted()), (0.3, TextDelta(table)), _took(4.1, 412), (5, RunFinished("complete")))
    first.model = "Qwen3 30B · api.groq.com"
    before, replies = turns("And before?", _answer("It was so."), "r-0")
    thread, others = turns("Does table 1 bear that out for every model size?", first)
    thread[1] = replace(thread[1], parent_id=thread[0].id)
    return [*before, *thread], {**replies, **others}


def second(*, over: bool) -> Compared:
    """The reply beside the one of `compared`."""
    events = [(0, MessageStarted()), (0.3, TextDelta("Yes. The paper says that OTSL yields a 2x speed up, so the"))]
    events += [_took(19, 61), (20, RunFinished("complete"))] if over else []
    reply = reply_of(*events)
    reply.model = "Qwen2.5-Coder 1.5B, built in"
    message = replace(turns("", reply, "r-2")[0][1], parent_id="q-r-1")
    return Compared("q-r-1", message, reply)


def _took(seconds: float, tokens: int) -> At:
    return seconds, ModelCalled("answer", "", Usage(completion_tokens=tokens), seconds)


SCENES = {
    "compared": compared,
    "compared-over": compared,
    "long": long,
    "typed": typed,
    "marks": marks,
    "web_marks": web_marks,
    "table": table,
    "everything": everything,
}
