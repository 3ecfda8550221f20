"""A reply is the same through every door: the page, chat completions whole and as streams, responses, AG-UI and MCP.

Thirty replies of a scripted service, each asked for through all of them: the same text, calls, marks and tokens.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from ag_ui.core import (
    CustomEvent,
    RunFinishedEvent,
    TextMessageContentEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from openai import OpenAI

from core.engine import Engine
from core.messages.message import FUNCTION
from core.testing.script import Reply
from tests.doors.house import OWNER, House, house_in
from tests.doors.test_ag_ui import run

SUMS = [("17 * 23", "391"), ("2 ** 10", "1024"), ("144 / 12", "12"), ("7 - 9", "-2"), ("1.5 * 4", "6")]
TEXTS = [
    "Yes.",
    "One two three.",
    "Ja, natürlich – „Grüße“.",
    "可以，没问题。",
    "A list:\n\n- one\n- two\n",
    "```python\nprint('a')\n```",
    "$x^2$ and [a link](https://example.org)",
    "🌿 emoji, 𝕬 and \u202e marks",
    "A very " + "long " * 200 + "answer.",
    '{"json": true}',
]
VAULT = "The vault opens with the word heliotrope. The cellar opens with a brass key."


class Case(NamedTuple):
    """A question, and what the service says to it, turn by turn."""

    question: str
    replies: Sequence[Reply]


def cases() -> list[Case]:
    plain = [Case("Tell me.", [Reply(text=text, usage=(10, at + 1))]) for at, text in enumerate(TEXTS)]
    thought = [Case("Think.", [Reply(text=text, reasoning="Hm, well.", usage=(7, 9))]) for text in TEXTS[:5]]
    called = [Case(f"{sum_}?", [_call(sum_), Reply(text=f"It is {result}.", usage=(30, 4))]) for sum_, result in SUMS]
    twice = [
        Case("Both?", [_calls(*pair), Reply(text="Both are done.", usage=(40, 3))])
        for pair in (("1 + 1", "2 + 2"), ("3 * 3", "4 * 4"), ("9 - 1", "8 - 1"))
    ]
    bad: list[dict[str, Any]] = [{"expression": "1 +"}, {"wrong": 1}]
    wrong = [
        Case("Try.", [Reply(calls=[("calculator", one)], usage=(5, 5)), Reply(text="I could not.", usage=(6, 3))])
        for one in bad
    ]
    cut = [Case("Go on for ever.", [Reply(text="It begins and", finish="length", usage=(4, 3))])]
    cited = [Case(question, [Reply(text=text, usage=(50, 6))]) for question, text in CITED]
    return [*plain, *thought, *called, *twice, *wrong, *cut, *cited]


CITED = [
    ("With which word does the vault open?", "With heliotrope [1]."),
    ("What opens the cellar?", "A brass key [1]."),
    ("Which word, and which key?", "The word heliotrope [1] and a brass key [1]."),
    ("Is there a garden?", "The documents do not say."),
]


def _calls(*expressions: str) -> Reply:
    calls = [("calculator", {"expression": one}) for one in expressions]
    return Reply(text="Let me see.", calls=calls, usage=(9, 9))


def _call(expression: str) -> Reply:
    return Reply(calls=[("calculator", {"expression": expression})], usage=(20, 8))


class Got(NamedTuple):
    """What came through a door; what a door does not tell is `None`."""

    text: str
    calls: list[tuple[str, bool]] | None
    marks: list[str] | None
    tokens: tuple[int, int] | None


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house_in(tmp_path_factory.mktemp("same") / "home", titles=False) as house:

        async def shelved(engine: Engine) -> None:
            async with engine.workspaces.open(OWNER) as workspace:
                library = await workspace.libraries.create("Vaults")
                record = await workspace.libraries.add(library.id, VAULT.encode(), "vault.md")
                async with asyncio.timeout(180):
                    while (await workspace.documents.get(record.id)).status == "reading":
                        await asyncio.sleep(0.02)

        house.do(shelved)
        yield house


def by_page(house: House, question: str) -> Got:
    async def asked(engine: Engine) -> Got:
        async with engine.workspaces.open(OWNER) as workspace:
            talk = workspace.conversation((await workspace.conversations.create()).id)
            for library in await workspace.libraries.list():
                await workspace.stores.libraries.use(talk.id, library.id, on=True)
            run = await talk.ask(question)
            await run.wait()
            parts = (await talk.messages())[-1].parts
        texts = [one.get_text_content() for one in parts if one.role == "assistant" and one.get_text_content().strip()]
        results = [one for one in parts if one.role == FUNCTION and one.name == "calculator"]
        calls = [(str(one.name), not (one.extra or {}).get("failed")) for one in results]
        passages = [row for one in parts for row in (one.extra or {}).get("passages") or ()]
        whole = "\n\n".join(texts)
        known = {int(row.get("number") or at): row["document"] for at, row in enumerate(passages, 1)}
        marks = [known[int(one)] for one in re.findall(r"\[(\d+)\]", whole) if int(one) in known]
        usage = run.reply().usage
        return Got(whole, calls, marks, (usage.prompt_tokens, usage.completion_tokens) if usage else None)

    return house.do(asked)


def by_chat(client: OpenAI, question: str, *, stream: bool) -> Got:
    asked: Any = [{"role": "user", "content": question}]
    if not stream:
        made = client.chat.completions.create(model="parlour", messages=asked)
        message: Any = made.choices[0].message.model_dump()
        marks = [one["file_citation"]["filename"] for one in message["annotations"]]
        usage = made.usage
        assert usage is not None
        return Got(message["content"], None, marks, (usage.prompt_tokens, usage.completion_tokens))
    chunks = list(
        client.chat.completions.create(
            model="parlour", messages=asked, stream=True, stream_options={"include_usage": True}
        )
    )
    deltas = [one.choices[0].delta.model_dump() for one in chunks if one.choices]
    marks = [mark["file_citation"]["filename"] for one in deltas for mark in one.get("annotations") or ()]
    usage = chunks[-1].usage
    assert usage is not None
    text = "".join(one.get("content") or "" for one in deltas)
    return Got(text, None, marks, (usage.prompt_tokens, usage.completion_tokens))


def by_responses(client: OpenAI, question: str) -> Got:
    made = client.responses.create(model="parlour", input=question)
    items: list[Any] = [one.model_dump() for one in made.output]
    calls = [
        (one["name"], one["error"] is None)
        for one in items
        if one["type"] == "mcp_call" and one["name"] == "calculator"
    ]
    parts = [part for one in items if one["type"] == "message" for part in one["content"]]
    marks = [mark["filename"] for part in parts for mark in part["annotations"]]
    assert made.usage is not None
    return Got(made.output_text, calls, marks, (made.usage.input_tokens, made.usage.output_tokens))


def by_ag_ui(house: House, key: str, question: str) -> Got:
    told = run(house, key, [{"id": "1", "role": "user", "content": question}])
    texts: dict[str, str] = {}
    names: dict[str, str] = {}
    calls: list[tuple[str, bool]] = []
    marks: list[str] = []
    tokens = None
    for event in told:
        match event:
            case TextMessageContentEvent():
                texts[event.message_id] = texts.get(event.message_id, "") + event.delta
            case ToolCallStartEvent():
                names[event.tool_call_id] = event.tool_call_name
            case ToolCallResultEvent() if names[event.tool_call_id] == "calculator":
                calls.append(("calculator", not (event.metadata or {}).get("failed")))
            case CustomEvent():
                marks += [one["file_citation"]["filename"] for one in event.value]
            case RunFinishedEvent():
                (used,) = list(event.usage or ())
                tokens = (used.input_tokens or 0, used.output_tokens or 0)
            case _:
                pass
    return Got("\n\n".join(texts.values()), calls, marks, tokens)


def by_mcp(house: House, question: str) -> Got:
    text = house.do(lambda engine: engine.outward.of(OWNER).ask(question))
    return Got(re.split(r"\n\n\[1\] vault\.md", text)[0], None, None, None)


def test_thirty_replies_are_the_same_through_every_door(house: House) -> None:
    every = cases()
    assert len(every) >= 30
    with OpenAI(base_url=house.base_url, api_key=house.key("same"), max_retries=0, timeout=30) as client:
        for question, replies in every:

            def said(replies: Sequence[Reply] = replies) -> None:
                house.says(*replies)

            said()
            page = by_page(house, question)
            others: dict[str, Got] = {}
            for name, ask in (
                ("chat", lambda q: by_chat(client, q, stream=False)),
                ("stream", lambda q: by_chat(client, q, stream=True)),
                ("responses", lambda q: by_responses(client, q)),
                ("ag-ui", lambda q: by_ag_ui(house, str(client.api_key), q)),
                ("mcp", lambda q: by_mcp(house, q)),
            ):
                said()
                others[name] = ask(question)
            for name, got in others.items():
                last = page.text.split("\n\n")[-1] if name == "mcp" and len(replies) > 1 else page.text
                assert got.text.strip() == last.strip(), (name, question)
                for mine, its in ((page.calls, got.calls), (page.marks, got.marks), (page.tokens, got.tokens)):
                    assert its is None or its == mine, (name, question)


def test_recorded_marks_come_with_the_page_and_its_rectangles(house: House) -> None:
    with OpenAI(base_url=house.base_url, api_key=house.key("boxes"), max_retries=0, timeout=60) as client:
        house.says("The tower is 33 metres high [1].")
        text = base64.b64encode(pdf("The tower is 33 metres high.")).decode()
        part = {"type": "file", "file": {"filename": "t.pdf", "file_data": f"data:application/pdf;base64,{text}"}}
        asked: Any = [{"role": "user", "content": [{"type": "text", "text": "How high is the tower?"}, part]}]
        made: Any = client.chat.completions.create(model="parlour", messages=asked).choices[0].message.model_dump()
        (mark,) = made["annotations"]
        assert (mark["file_citation"]["page"], len(mark["file_citation"]["boxes"][0])) == (1, 4)


def pdf(text: str) -> bytes:
    import pymupdf

    with pymupdf.open() as document:
        document.new_page().insert_text((72, 100), text)
        return document.tobytes()
