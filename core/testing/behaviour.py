"""A scripted model that reacts to words in the question, so that a page can be tried out without a real one.

| the question has | the reply |
|---|---|
| count slowly | 200 numbered words, 30 a second |
| count calmly | 200 numbered words, ten a second: it lasts, and it ends |
| count at leisure | 2,000 numbered words, ten a second: it goes on until somebody stops it |
| think | reasoning, then an answer, paced |
| use the calculator | a call of `calculator`, then an answer from its result |
| two tools | `calculator` and `current_time` in one turn |
| draw a picture · say it aloud | a picture · half a second of a tone, as pieces of the reply |
| markdown | headings, a table, code, formulas, a diagram |
| fail 500 (400, 401, 404, 429, 503 …) | that refusal |
| html · cut off · hang | a web page · the connection drops half-way · no answer |
| be silent for 20 seconds | nothing for so long, then the question, repeated |
| passages, to be read for somebody | how each begins |
| of your own | what a tool found, and then what it did not |
| anything else | the question, repeated |
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from struct import pack
from typing import TYPE_CHECKING, Any, cast

from core.testing.script import Reply, Request, Script, html_page, refusal, reply_from

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_EXPRESSION = re.compile(r"[\d(][\d\s.+*/()^-]*[\d)]")
_PASSAGE = re.compile(r"^\[1\][^\n]*\n?(.*?)(?=^\[\d+\]|\Z)", re.MULTILINE | re.DOTALL)

_WORD = re.compile(r"[a-z0-9]+|[\u3400-\u9fff]")

_DOT = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
_OWN = "Besides, the lighthouse keeper collects 950 rare stamps."
_MARKDOWN = """## A little of everything

Some **bold**, *slanted* and `code` words, and a [link](https://example.org/page).

| name | value |
|---|---|
| one | 1 |
| two | 2 |

```python
def double(x: int) -> int:
    return 2 * x
```

Inline $a^2 + b^2 = c^2$ and \\(e^{i\\pi} = -1\\), and on lines of their own:

$$\\int_0^1 x^2 \\, dx = \\frac{1}{3}$$

\\[ \\sum_{k=1}^n k = \\frac{n(n+1)}{2} \\]

```mermaid
graph LR
  Question --> Answer
```

1. first
2. second
"""


def behave(request: Request) -> Reply:
    """The reply to a request, chosen by the words of its last message."""
    messages = cast("list[dict[str, Any]]", request.get("messages") or [])
    last = messages[-1] if messages else {}
    text = text_of(last)
    if last.get("role") == "tool" or "<tool_response>" in text:
        return _after_tools(messages)
    if text.startswith("<passages>"):
        return _noted(text)
    question = text.lower()
    for words, answer in _REACTIONS.items():
        if words in question:
            return answer(request, text)
    if failure := re.search(r"\bfail (\d{3})\b", question):
        return refusal(int(failure[1]), retry_after="1" if failure[1] == "429" else "")
    if silent := re.search(r"\bbe silent for (\d+) seconds\b", question):
        return Reply(text=f"You said: {text[:400]}", delay=float(silent[1]))
    if passage := _PASSAGE.search("\n".join(text_of(message) for message in messages)):
        words = passage[1].split()[:20]
        return Reply(text=f"The document says: {' '.join(words)} [1].", pace=0.01)
    return Reply(text=f"You said: {text[:400]}", pace=0.01)


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message in the service's form."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return " ".join(str(part.get("text", "")) for part in cast("list[dict[str, Any]]", content))


def _noted(text: str) -> Reply:
    """What somebody notes who reads a part of a document: how each passage begins, with its number."""
    passages = re.findall(r"^\[(\d+)\] \([^\n]*\n(.*?)(?=^\[\d+\] \(|\Z|^</passages>)", text, re.MULTILINE | re.DOTALL)
    lines = [f"- {' '.join(said.split()[:12]).strip(' .')} [{number}]." for number, said in passages]
    return Reply(text="\n".join(lines), pace=0.002)


def many_chunks(count: int, pace: float = 0.0) -> Reply:
    """A reply of `count` chunks of about four letters, as a tokenizer would cut them."""
    return Reply(text=[f"w{number % 1000:03d} " for number in range(count)], usage=(10, count), pace=pace)


def script_from_file(path: Path) -> Script:
    """A script written as JSON.

    A list is a queue of replies. A dict maps words of the last message to replies; `""` stands for any other.
    """
    raw = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(raw, list):
        return [reply_from(item) for item in cast("list[dict[str, Any]]", raw)]
    replies = {words: reply_from(item) for words, item in cast("dict[str, dict[str, Any]]", raw).items()}

    def choose(request: Request) -> Reply:
        messages = cast("list[dict[str, Any]]", request.get("messages") or [{}])
        text = text_of(messages[-1])
        found = next((reply for words, reply in replies.items() if words and words in text), None)
        return found or replies.get("") or refusal(500, "The script has no reply to that.")

    return choose


def _calls(request: Request, *calls: tuple[str, Mapping[str, Any]]) -> Reply:
    """Calls in the way the request offers its tools: natively, or in the prompt."""
    if request.get("tools"):
        return Reply(calls=calls, pace=0.01)
    written = (json.dumps({"name": name, "arguments": arguments}) for name, arguments in calls)
    return Reply(text="\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in written), pace=0.01)


def _calculator(text: str) -> tuple[str, Mapping[str, Any]]:
    found = _EXPRESSION.search(text)
    return "calculator", {"expression": found[0].strip() if found else "17 * 23"}


def _after_tools(messages: list[dict[str, Any]]) -> Reply:
    users = (text_of(message) for message in reversed(messages) if message.get("role") == "user")
    question = next((text for text in users if "<tool_response>" not in text), "")
    results: list[str] = []
    for message in reversed(messages):
        if message.get("role") != "tool" and "<tool_response>" not in text_of(message):
            break
        text = re.sub(r"</?tool_response>", " ", text_of(message))
        results.insert(0, " ".join(_best_passage(text, question).split())[:300])
    own = f" {_OWN}" if "of your own" in question.lower() else ""
    return Reply(text=f"The result: {'; '.join(results)}.{own}", pace=0.01)


def _best_passage(result: str, question: str) -> str:
    """The passage that shares most words with the question; the whole result where it has none."""
    _, *passages = re.split(r"^(?=\[\d+\] \()", result, flags=re.MULTILINE)
    asked = set(_WORD.findall(question.lower()))
    if "<passages>" in result and not passages:  # notes on the whole
        return result.partition("<passages>")[2].partition("</passages>")[0]
    return max(passages, key=lambda one: len(asked.intersection(_WORD.findall(one.lower()))), default=result)


def _tone() -> bytes:
    """Half a second of a square wave at 440 Hz: bare samples of 16 bits, as services speak."""
    return b"".join(pack("<h", 4000 if (at * 880 // 24_000) % 2 else -4000) for at in range(12_000))


_REACTIONS: dict[str, Callable[[Request, str], Reply]] = {
    "count slowly": lambda _request, _text: Reply(text=[f"word{number} " for number in range(1, 201)], pace=1 / 30),
    "count calmly": lambda _request, _text: Reply(text=[f"word{number} " for number in range(1, 201)], pace=1 / 10),
    "count at leisure": lambda _request, _text: Reply(
        text=[f"word{number} " for number in range(1, 2001)], pace=1 / 10
    ),
    "two tools": lambda request, text: _calls(request, _calculator(text), ("current_time", {})),
    "use the calculator": lambda request, text: _calls(request, _calculator(text)),
    "think": lambda _request, _text: Reply(
        reasoning="Let me see. First one thing, then the other. That settles it.",
        text="I have thought about it: yes.",
        pace=0.05,
    ),
    "draw a picture": lambda _request, _text: Reply(text="Here it is:", images=[_DOT], pace=0.01),
    "say it aloud": lambda _request, _text: Reply(text="You hear a tone.", audio=_tone(), pace=0.01),
    "markdown": lambda _request, _text: Reply(text=_MARKDOWN, pace=0.005),
    "html": lambda _request, _text: html_page(),
    "cut off": lambda _request, _text: Reply(text="This sentence will never be", pace=0.02, cut_after=4),
    "hang": lambda _request, _text: Reply(hang=True),
}
