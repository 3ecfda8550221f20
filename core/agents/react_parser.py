"""Parses a streamed ReAct reply: Thought, Action, Action Input, and a Final Answer at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from core.agents.react_actions import (
    FINAL,
    NONE,
    JsonEnd,
    Label,
    LabelName,
    LabelScanner,
    ToolUse,
    is_object,
    may_be_untagged,
    read_action,
    read_untagged,
)
from core.errors import WrongParametersError

if TYPE_CHECKING:
    from collections.abc import Collection

_LONGEST_OPENING: Final = 200  # characters without a label, after which they are an answer

_LONGEST_CALL: Final = 20_000  # characters of one that may be a call without a label


@dataclass(frozen=True, slots=True)
class Thought:
    """More of the thought."""

    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """More of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Action:
    """A tool to call, with its input as the model wrote it: most often JSON, sometimes plain text or code."""

    name: str
    input: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The text of an action that cannot be read."""

    text: str


Piece: TypeAlias = Thought | Answer | Action | Unreadable
_Mode: TypeAlias = Literal["opening", "thought", "answer", "final", "action", "input", "skipped", "done"]


class OutputParser(Protocol):
    """Parses one reply as it streams. After an `Action` or `Unreadable` nothing more is read."""

    def feed(self, text: str) -> list[Piece]:
        """What is certain after `text`, the next piece of the reply."""
        ...

    def close(self, *, cut: bool = False) -> list[Piece]:
        """The rest, when no more text comes; `cut` where the reply ended in the middle."""
        ...


def _begun(own: Any, *values: object, **named: object) -> None:
    if type(own) is OutputParser:
        said = "OutputParser only says what a parser has."
        raise WrongParametersError(said, hint="Write a class of your own, with feed and close.")
    super(OutputParser, own).__init__(*values, **named)


# Not in the class: type checkers would ask of each parser that it is made so.
setattr(OutputParser, "__init__", _begun)  # noqa: B010


class StepParser:
    """The parser of `ReActChat`; the result does not depend on how the reply is split into chunks.

    Understood: labels in bold, lists or headings, numbered, in Chinese; an action as `f({...})`, as a JSON object, on
    one line with its input, in a tag, bare, or without input; answers without a label. Observations that the model
    invents are left out, with all that follows. Any other action becomes `Unreadable`.

    Args:
        tools: The known names; with them an action that only mentions one is understood.
    """

    def __init__(self, tools: Collection[str] = ()) -> None:
        self._tools = tools
        self._scanner = LabelScanner()
        self._mode: _Mode = "opening"
        self._kept: list[str] = []  # the text of an opening, an action or an input
        self._length = 0  # of it
        self._may_call = False  # whether an opening begins as a call does
        self._action = ""  # the action that an input belongs to
        self._json = JsonEnd()
        self._pieces: list[Piece] = []
        self._thoughts: list[str] = []
        self._said = False  # whether there was an answer
        self._fresh = True  # whether nothing of the section has come yet
        self._start: str = ""  # what of it cannot be told from the label's end yet
        self._closing = ""  # decoration that may end a label
        self._space: list[str] = []  # white space that belongs to the text if more of it follows

    def feed(self, text: str) -> list[Piece]:
        """What is certain after `text`, the next piece of the reply."""
        if self._mode != "done":
            for token in self._scanner.feed(text):
                self._take(token)
        return self._given()

    def close(self, *, cut: bool = False) -> list[Piece]:
        """The rest. An action that was cut off is never repaired."""
        if self._mode != "done":
            for token in self._scanner.close():
                self._take(token)
        if cut and self._mode in {"action", "input"}:
            self._pieces.append(Unreadable(self._written()))
        else:
            self._end_section(None)
        acted = any(not isinstance(piece, Thought) for piece in self._pieces) or self._mode == "done"
        if not acted and not self._said and (thought := "".join(self._thoughts).strip()):
            self._pieces.append(Answer(thought))  # a thought alone is the answer
        self._mode = "done"
        return self._given()

    def _given(self) -> list[Piece]:
        pieces, self._pieces = self._pieces, []
        return pieces

    # -- sections -------------------------------------------------------------------------------------------------

    def _take(self, token: Label | str) -> None:
        if not isinstance(token, Label):
            self._text(token)
        elif self._counts(token.name):
            self._end_section(token.name)
            self._begin(token)
        else:
            self._text(token.written)

    def _counts(self, name: LabelName) -> bool:
        """Whether a label counts in this section; within a final answer none does."""
        if self._mode in {"final", "done"}:
            return False
        if name == "input":
            return self._mode == "action"
        if name == "answer":
            return self._mode in {"opening", "thought", "skipped"}
        if name == "observation":  # an invented one; in an answer it is an ordinary word
            return not self._said and not (self._mode == "opening" and self._held.strip())
        return name != "action_input" or self._mode != "input"

    def _begin(self, label: Label) -> None:
        if self._mode == "done":
            return
        match label.name:
            case "thought":
                self._mode = "thought"
            case "final" | "answer":
                self._mode = "final"
            case "action":
                self._mode = "action"
            case "action_input" | "input":
                self._mode, self._json = "input", JsonEnd()
            case "observation":
                self._mode = "skipped"
        self._kept, self._length = [], 0
        self._start, self._fresh, self._closing = "", True, label.closing
        again = self._said if self._mode == "final" else self._mode == "thought" and bool(self._thoughts)
        self._space = ["\n"] if again else []

    def _end_section(self, following: LabelName | None) -> None:
        """Emit the section, now that it is complete; `following` is the label after it."""
        match self._mode:
            case "opening":
                if (found := read_untagged(self._held, self._tools)) is not None:
                    self._resolve(found, following)
                elif text := self._held.strip():
                    self._say(text, thought=following is not None)
            case "action":
                if following in {"action_input", "input"}:
                    self._action = self._held
                    return
                self._resolve(read_action(self._held, None, self._tools), following)
                self._action = ""
            case "input":
                self._resolve(read_action(self._action, self._held, self._tools), following)
                self._action = ""
            case _:
                pass

    def _resolve(self, found: ToolUse | None, following: LabelName | None) -> None:
        if found is None:
            self._not_read(at_end=following in {None, "observation"})
        elif found.name == FINAL:
            self._fresh, self._space = True, []
            self._say(found.input, thought=False)
            self._mode = "done"
        elif found.name != NONE:
            self._pieces.append(Action(found.name, found.input))
            self._mode = "done"

    def _not_read(self, *, at_end: bool) -> None:
        """An action that cannot be read: text of an answer or a thought, or an error for the model."""
        if at_end and not self._said:
            self._pieces.append(Unreadable(self._written()))
            self._mode = "done"
        elif self._mode == "action":
            self._fresh, self._space = True, ["\n"] if self._said or self._thoughts else []
            self._say(self._written() if self._said else self._held, thought=not self._said)

    def _written(self) -> str:
        if self._mode == "action":
            return f"Action: {self._held.strip()}"
        action = self._action.strip()
        return f"{f'Action: {action}' if action else ''}\nAction Input: {self._held.strip()}".strip()

    # -- text -----------------------------------------------------------------------------------------------------

    def _text(self, text: str) -> None:
        match self._mode:
            case "thought":
                self._say(text, thought=True)
            case "answer" | "final":
                self._say(text, thought=False)
            case "opening":
                self._opening(text)
            case "action":
                self._hold(self._begun(text))
            case "input":
                self._input(self._begun(text))
            case _:
                pass

    @property
    def _held(self) -> str:
        self._kept[:] = ["".join(self._kept)]
        return self._kept[0]

    def _hold(self, text: str) -> None:
        self._kept.append(text)
        self._length += len(text)

    def _opening(self, text: str) -> None:
        """Text before any label: an answer, as soon as it is too long for a call or a thought."""
        self._hold(text)
        if not text.strip() and self._length <= _LONGEST_CALL:
            return
        held = self._held.strip()
        self._may_call = self._may_call or may_be_untagged(held)
        if len(held) > (_LONGEST_CALL if self._may_call else _LONGEST_OPENING):
            self._mode = "answer"
            self._say(self._held, thought=False)
        elif not held:
            self._kept, self._length = [], 0  # leading white space of an answer

    def _input(self, text: str) -> None:
        """Input that is a JSON object ends at its last brace."""
        end = self._json.feed(text)
        if end is not None and is_object(whole := self._held + text[:end]):
            found = read_action(self._action, whole, self._tools)
            if found is not None and found.name != NONE:
                self._resolve(found, None)
                return
        self._hold(text)

    def _begun(self, text: str) -> str:
        """The text without the white space and decoration that follow a label."""
        if not self._fresh:
            return text
        text, self._start = self._start + text, ""
        if self._closing:
            if len(text) < len(self._closing) and self._closing.startswith(text):
                self._start = text
                return ""
            text, self._closing = text.removeprefix(self._closing), ""
        text = text.lstrip()
        self._fresh = not text
        return text

    def _say(self, text: str, *, thought: bool) -> None:
        """White space at the end waits for what follows it."""
        text = self._begun(text)
        if not text:
            return
        said = text.rstrip()
        if not said:
            self._space.append(text)
            return
        said, self._space = "".join([*self._space, said]), [text[len(said) :]]
        if thought:
            self._thoughts.append(said)
            self._pieces.append(Thought(said))
        else:
            self._said = True
            self._pieces.append(Answer(said))
