"""Replies with everything that Markdown can do, in scripts that run either way."""

from __future__ import annotations

from core.messages.events import MessageStarted, TextDelta
from core.runs.log import RunFinished
from tests.webui.screen.calls_scenes import Scene, reply_of, turns

WIDE = """| name | a column that is long | another that is long | a third that is long | a fourth that is long | last |
|---|---|---|---:|---:|---|
| alpha | lorem ipsum dolor | sit amet consectetur | 1,234.50 | 99 % | yes |
"""
CODE = """```python
def name(first: int, second: str, third: list[dict[str, float]], fourth: bool) -> dict[str, float]:  # and further on
    return {}
```
"""
ARABIC = """هذا نص عربي طويل بما يكفي.

- البند الأول
- البند الثاني

| اسم | قيمة |
|---|---|
| واحد | 1 |

In English again.
"""
DEEP = """- first
  - second
    - third

> A quotation.

<details><summary>More</summary>

Hidden.

</details>
"""


def prose() -> Scene:
    """English, with what is wider than the column."""
    text = f"{DEEP}\n{WIDE}\n{CODE}\n$$\\sum_k k = {'+'.join(map(str, range(80)))}$$\n"
    return turns("Show all.", reply_of((0, MessageStarted()), (0.1, TextDelta(text)), (1, RunFinished("complete"))))


def arabic() -> Scene:
    """Arabic, and a line of English below it."""
    return turns("كيف حالك؟", reply_of((0, MessageStarted()), (0.1, TextDelta(ARABIC)), (1, RunFinished("complete"))))


def coded() -> Scene:
    """Blocks of code: a short one, a diff, one without a language, and a long one."""
    python = "\n".join(f"print({number})  # {'and further on ' * 12}" for number in range(29))
    diff = "--- a/one.py\n+++ b/one.py\n@@ -1,2 +1,2 @@\n-old = <1>\n+new = 2\n same"
    html = "\n".join(f"<p>Line {number}</p>" for number in range(86))
    blocks = [("python", python), ("diff", diff), ("", "plain text"), ("html", html)]
    text = "\n\n".join(f"Before it:\n\n```{language}\n{body}\n```" for language, body in blocks)
    end = "\n\nAnd after it.\n\n" * 20
    return turns(
        "Show code.", reply_of((0, MessageStarted()), (0.1, TextDelta(text + end)), (1, RunFinished("complete")))
    )


SCENES = {"prose": prose, "arabic": arabic, "coded": coded}
