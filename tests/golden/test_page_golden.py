"""What the page shows of a reply, against what the page of Qwen-Agent made of it: all parts, and no HTML of theirs."""

from __future__ import annotations

import re
from typing import Any

import pytest
from markdown_it import MarkdownIt

from core.messages.events import CallDelta, CallStarted, MessageFinished, MessageStarted, TextDelta, ToolFinished
from core.messages.message import Message
from core.runs.log import LoggedEvent, RunFinished
from core.runs.reply import Reply
from core.storage.base import StoredMessage
from core.testing.scripted_model import ScriptedModel
from tests.golden.claimed import Record, name, of
from webui.render.conversation import conversation_entries
from webui.render.reply import reply_entries
from webui.words import Words

WORDS = Words("en")
ASK: Any = [{"role": "user", "content": "q"}]


def turn(role: Any, *parts: Message) -> StoredMessage:
    return StoredMessage(role, "c", None, role, parts, None, "complete", 0.0)


def page(messages: list[dict[str, Any]]) -> str:
    """What a reader sees of these messages as they come in."""
    events: list[Any] = [MessageStarted()]
    for each in messages:
        if each["role"] == "function":
            events.append(ToolFinished("1", Message(**each)))
        elif call := each.get("function_call"):
            events += [CallStarted("1", call["name"]), CallDelta("1", call["arguments"]), MessageFinished("calls")]
        else:
            events.append(TextDelta(each["content"]))
    events += [MessageFinished("stop"), RunFinished("complete")]
    reply = Reply(LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events, 1))
    entries: Any = reply_entries(turn("assistant"), reply, WORDS, last=True)
    return "\n\n".join(f"{(entry.get('metadata') or {}).get('title', '')}\n\n{text_of(entry)}" for entry in entries)


def text_of(entry: Any) -> str:
    return entry["content"][0]["text"]


def live_html(text: str) -> str:
    """The HTML in it that a Markdown reader takes for HTML."""
    reader = MarkdownIt("commonmark", {"html": True})
    parts = [part for token in reader.parse(text) for part in [token, *(token.children or [])]]
    return "".join(part.content for part in parts if part.type in {"html_block", "html_inline"})


def heard(text: str) -> tuple[str, str]:
    """Thought and text, as the model's layer tells them apart."""
    reply: Any = ScriptedModel(text).chat(ASK, stream=False)
    return "".join(m.get("reasoning_content", "") for m in reply), "".join(m["content"] for m in reply)


@pytest.mark.parametrize("record", of("gui.convert_fncall_to_text"), ids=name)
def test_a_reply_is_shown_with_all_its_parts(record: Record) -> None:
    match record["id"]:
        case "think":  # the peer leaves the closing tag in the answer
            assert heard(record["input"][0]["content"]) == ("a", "b")
        case "open_think":
            assert heard(record["input"][0]["content"]) == ("abc", "")
        case "call":
            html = page(record["input"])
            assert html.index("f") < html.index('"x": 1') < html.index("\nres\n") < html.rindex("\ndone")
        case "code":  # the peer takes the fences away, and with them the code's form
            assert "```python\nprint(1)\n```" in page(record["input"])
        case "html":  # the peer lets a model, and whoever wrote what a tool returned, put HTML into the page
            call = {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{}"}}
            html = page([record["input"][0], call, record["input"][1]])
            assert "onerror" in html
            assert "script" in html
            assert not any(tag in live_html(html) for tag in ("<img", "<script", "</details"))
        case other:
            pytest.fail(f"nothing is said about {other}")


@pytest.mark.parametrize("record", of("gui.convert_history_to_chatbot"), ids=name)
def test_a_history_is_shown_as_pairs_of_question_and_answer(record: Record) -> None:
    thread = [turn(each["role"], Message(**each)) for each in record["input"] or ()]
    entries, _ = conversation_entries(thread, {}, words=WORDS)
    said = [(entry["role"], text_of(entry)) for entry in entries if not text_of(entry).startswith("<p")]
    typed = [(role, re.sub(r'^.*<div class="p-asked">(.*?)</div>.*$', r"\1", text)) for role, text in said]
    assert [(role, text.partition("\n")[0]) for role, text in typed] == (
        [("user", "a"), ("assistant", "b")] if thread else []
    )
