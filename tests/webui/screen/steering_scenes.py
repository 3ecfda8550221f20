"""The panel of steering and the chips of the composer, of a conversation that is made up."""

from __future__ import annotations

from typing import Any

from core.models.model_name import ModelName
from core.storage.base import Folder, NamedLibrary
from core.tools.builtin.calculator import Calculator
from core.workspace.levels import Level
from core.workspace.personas import Persona
from core.workspace.prompts import Prompt
from core.workspace.steering import Steering
from core.workspace.usable import Usable
from webui.panels.steering import Shown, folder_html, steering_html
from webui.panels.toolbar import Switched, starters_html, toolbar_html
from webui.words import Words

LIBRARIAN = Persona("p1", "Librarian", "L", Level("Say what the source says,\n\nthen what you conclude <b>."))
SHELVES = (
    NamedLibrary("l1", "o", "Household papers", 0.0, 3, 0),
    NamedLibrary("l2", "o", "Verträge & <i>mehr</i>", 0.0, 0, 0),
)

PROMPTS = [
    {"name": "weather", "text": "How is it in {{city}} on {{day}}?"},
    {"name": "shorter", "text": "Say it shorter."},
]


def _inner(name: str, tokens: int, *, on: bool = True) -> Usable:
    return Usable("tool", (f"mcp:files:{name}",), tokens, on, tool=Calculator())


ROWS = (
    Usable("documents", ("documents",), 260, on=True),
    Usable("web", ("web_search", "web_extractor"), 310, on=False),
    Usable("code", ("code_interpreter",), 480, on=True),
    Usable("tool", ("calculator",), 90, on=True, tool=Calculator()),
    Usable("server", ("mcp:github",), 0, on=True, state="failed"),
    Usable("server", ("mcp:files",), 200, on=True, inner=(_inner("read", 150), _inner("write", 50, on=False))),
)


def shown(**changes: Any) -> Shown:
    """What the panel shows; `changes` go over it."""
    steering = Steering(persona=LIBRARIAN, own=Level(parameters={"temperature": 0.6}))
    given: dict[str, Any] = {
        "personas": [LIBRARIAN],
        "rows": ROWS,
        "libraries": SHELVES,
        "used": ("l1",),
        "efforts": ("off", "short", "long"),
        "told": 96,
        "documents": 3,
        "prompts": [Prompt("q1", "weather", "How is it in {{city}}?")],
        "model": ModelName("anthropic", "claude-x"),
    }
    return Shown(changes.pop("steering", steering), **{**given, **changes})


class Steered:
    """Answers what the page's script asks about steering, and counts what it drew."""

    def __init__(self) -> None:
        self.left_out: tuple[str, ...] = ()
        self.turn = 0
        self._markup = ""

    def answer(self, asked: dict[str, Any], words: Words) -> str:
        """The markup of the panel: a new one, unless the change is one that draws nothing."""
        if asked.get("quiet") is not True and asked["do"] != "close":
            self.turn += 1
            folder = Folder("f1", "o", "Papers", 1.0, {}, 0.0)
            level = Level("Cite pages.", libraries=("l2",))
            self._markup = (
                folder_html(folder, level, SHELVES, words, turn=self.turn)
                if asked.get("folder")
                else steering_html(shown(left_out=self.left_out), words, turn=self.turn)
            )
        return self._markup if asked["do"] != "close" else ""


ASKED = frozenset(
    {"steering", "steer", "switch", "shelve", "use", "prompt-save", "prompt-delete"}
    | {"persona", "persona-save", "persona-delete", "persona-restore", "persona-import"}
)


def bar(words: Words, *, used: bool) -> str:
    """The chips: the web is off, and a library and a persona are `used`."""
    if not used:
        return toolbar_html(Switched(code=True), (), words)
    personas = (("p1", "Librarian", True), ("p2", "Poet", False))
    shelves = tuple((one.id, one.name) for one in SHELVES)
    given = Switched(False, True, "Librarian", "", personas, shelves, documents=("otsl <i>tables.pdf",))
    return toolbar_html(given, SHELVES[:1], words)


LONG_STARTER = "long " * 100


def starters(*, long: bool = False) -> str:
    """A persona's questions to begin with, where nothing was said yet."""
    return starters_html(("A sonnet on “rain & <b>snow</b>”", LONG_STARTER if long else "Ein Haiku?"))
