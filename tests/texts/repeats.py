"""Hostile repeats: what a stranger writes again and again to keep a reader busy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

_LETTERS = " \n\t\ra A1中א.,#*_`~$|-=><[](){}\"'\\/:;!?&%@^+。\u200b\u202e😀\u0301"

# What opens, closes or divides something somewhere, for each of the readers; ␣ is a space, ⏎ the end of a line.
_SIGNS = r"""
a␣ a⏎ ⏎⏎ ␣⏎ a.␣ A.␣ e.g.␣ 1␣ 1. 1,1 10%␣ €5 5km␣ 第一 。⏎ not␣say␣ no␣information␣ a@b. ../ a/ a.b. **a __a *a* [a](
![a]( ]( [^1] [1] [1,␣ 【1】 【1†a [a]:␣b⏎ \` `a` ```⏎ ~~~⏎ ```a⏎ #␣a⏎ a⏎=⏎ ---⏎ >␣ >⏎ -␣a⏎ 1.␣a⏎ -␣ ␣␣␣␣a⏎ ␣␣-␣a⏎ |a
|⏎ |␣a␣|␣b␣|⏎ |- |-|⏎ $$ $a$ $a⏎ \( \) \[a \begin{a} \a{ $1␣ @{ %%{ a-->b⏎ classDef␣a␣ click␣a␣ subgraph␣a⏎ a[" ::
style␣a␣ < </ <!-- --> <a␣ <a> <div> </div> <a␣href=" &lt; &# <think> </think> <tool_call> <tool_call>{ </tool_call>
<tool_response> <function=a> <parameter=a> </parameter> <code> ✿FUNCTION✿ ✿FUNCTION✿:␣a⏎ ✿ARGS✿ ✿RESULT✿ ✿RETURN✿ ✿
<|im_start|> <| |> Action: Action:␣a⏎Action␣Input:␣ Observation: Thought:␣ Final␣Answer: Action:␣a( 行动： a( (a
```python⏎ ```output⏎ a= a:␣ "a":␣ \boxed{ import␣a⏎ def␣a():⏎ class␣A:⏎ {"a": {"a":1, [[ [{ ["a", "a", 1e9 \" \u
\ud800 {a: // /* */ NaN, 'a', http://a https://a.b/␣ a:// data:a, data:;base64, %20 ?a=b& a=b; a,␣ a;q=0.1, eyJa
eyJaaaaaaaa. a<think> `<think> a<tool_call> <tool_call>{\" {"name":␣"a",␣"arguments":␣{}} `✿FUNCTION✿ \ud83d sk-
token= token:␣ api_key Bearer␣ $a ${a} {{a}}
"""
_ODD = ("\r\n", "\u202ea", "\u05d0\u05d1 ", "e\u0301", "\U0001f468\u200d", "\u2066", "a\x00")


class Repeat(NamedTuple):
    """What is repeated, and what stands before and after it."""

    unit: str
    before: str = ""
    after: str = ""

    def text(self, length: int) -> str:
        """A text of so many characters."""
        times = max(1, (length - len(self.before) - len(self.after)) // len(self.unit))
        return f"{self.before}{self.unit * times}{self.after}"

    def __str__(self) -> str:
        return "+".join(part for part in (self.before, f"{self.unit!r}*n", self.after) if part)


_WRITTEN = tuple(sign.replace("␣", " ").replace("⏎", "\n") for sign in _SIGNS.split())
UNITS: Sequence[str] = tuple(dict.fromkeys((*_LETTERS, *_WRITTEN, *_ODD)))

# What brings a reader into a state of its own before the repeats begin, with what ends it.
_WITHIN = (
    ("```mermaid\n", "\n```"),
    ("```mermaid\n", ""),
    ("```mermaid\ngraph TD\n", ""),
    ("|a|\n|-|\n", "!"),
    ("<tool_call>", "</tool_call>"),
    ('<tool_call>{"name": "a", "arguments": {"a": "', ""),
    ("<think>", ""),
    ("Action: a\nAction Input: ", ""),
    ("Thought: ", "\nFinal Answer: a"),
    ("✿FUNCTION✿: a\n✿ARGS✿: ", "!"),
    ("$$", "$$"),
    ("`", "`"),
    ("<!--", "!"),
    ('{"a": "', '"}'),
    ("{", "}"),
    ("[", "]"),
    ('"', '"'),
    ("# ", "\n"),
    ("a", "!"),
    ("1", "!"),
    ("http://", "!"),
    ("data:", "!"),
)


def plain() -> Iterator[Repeat]:
    """Each unit by itself, and with an end that undoes a hopeful beginning."""
    for unit in UNITS:
        yield Repeat(unit)


def framed(units: Sequence[str]) -> Iterator[Repeat]:
    """Each unit inside of what other readers wait for."""
    for before, after in _WITHIN:
        for unit in units:
            yield Repeat(unit, before, after)
