"""What is chosen for a conversation that is not there yet. The page keeps it with its draft, and gives it back.

A tab knows it no longer once its reader has turned to another conversation; after a reload the tab is another one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from core.reading.attachments import untaken_names
from core.storage.conversations import TEMPORARY
from core.workspace.comparing import second_model
from core.workspace.levels import Level
from core.workspace.personas import Persona
from core.workspace.steering import PERSONA

if TYPE_CHECKING:
    from webui.views import View


def chosen_before(view: View) -> str:
    """What is chosen for the new conversation of a tab, as JSON that `begin_anew` takes; only what was chosen is in it.

    Returns:
        "" where the tab shows a conversation.
    """
    if view.shown_id:
        return ""
    persona, second = Persona.of(view.draft.get(PERSONA)), second_model(view.draft)
    names, more = untaken_names(view.draft)
    each: dict[str, Any] = {
        "of": view.begun,
        "folder": view.folder,
        "temporary": view.draft.get(TEMPORARY) is True,
        "persona": persona.id if persona is not None else "",
        "change": Level.of(view.draft).as_dict(),
        "model": view.model.as_json() if view.model is not None else None,
        "second": second.as_json() if second is not None else None,
        "libraries": [*view.libraries],
        "untaken": {"names": names, "more": more} if names else None,
    }
    return json.dumps({name: value for name, value in each.items() if value})
