"""The page of a program's own agents: what it can do beyond Parlour's own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from core.errors import NotFoundError
from webui.handlers.act import act
from webui.handlers.send import start

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.workspace.program import Program
    from webui.handlers.desk import Desk
    from webui.page_look import Look, Suggestion
    from webui.views import View


@dataclass(frozen=True, slots=True)
class HostedDesk:
    """What the script asks for on such a page; everything else goes its usual way.

    Args:
        look: What the program chose of the page.
    """

    desk: Desk
    look: Look

    async def act(self, view: View, message: str) -> str:
        """Do what the script asks. Raises ParlourError."""
        asked = _read(message)
        program = self.desk.engine.program
        if asked.get("do") == "agent" and program is not None:
            await self._choose(program, view, asked.get("n"))
            return view.evidence
        if asked.get("do") == "starter" and self.look.suggestions is not None:
            await self._suggested(view, self.look.suggestions, asked.get("n"))
            return view.evidence
        evidence = await act(self.desk, view, message)
        await self.begin(view)
        return evidence

    async def begin(self, view: View) -> None:
        """Let a tab that shows no conversation begin with what every conversation begins with."""
        program = self.desk.engine.program
        if program is not None and program.beginning and not view.conversation_id:
            async with self.desk.workspace(view) as workspace:
                view.show((await program.begun(workspace)).id)

    async def _choose(self, program: Program, view: View, number: object) -> None:
        async with self.desk.workspace(view) as workspace:
            fresh = "" if view.conversation_id else (await workspace.conversations.create()).id
            conversation = workspace.conversation(view.conversation_id or fresh)
            await program.choose(conversation, number - 1 if isinstance(number, int) else -1)
        if not view.conversation_id:
            view.show(conversation.id)
        view.wake_up(stale=True)

    async def _suggested(self, view: View, suggestions: Sequence[Suggestion], number: object) -> None:
        if not isinstance(number, int) or number not in range(1, len(suggestions) + 1):
            raise NotFoundError("There is no such question to begin with.")
        suggestion = suggestions[number - 1]
        await start(self.desk, view, suggestion.text, [(file, file.name) for file in suggestion.files])


def _read(message: str) -> dict[str, Any]:
    try:
        asked = json.loads(message)
    except (TypeError, ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", asked) if isinstance(asked, dict) else {}
