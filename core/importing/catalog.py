"""The applications whose exports can be read, each with its reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from core.importing import chatgpt, claude, librechat, open_webui, own_json

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from core.importing.tree import Foreign
    from core.storage.arriving import ArrivingConversation


class Reader(NamedTuple):
    """What reads the conversations of one application.

    Args:
        name: What the application is called.
        key: What its conversations have their own id under; "" for ours, of which `read` tells it.
        takes: Whether an object of the file is a conversation of it.
        read: The conversation, of the object, what is left out, and what finds an entry by the beginning of its name;
            as rows where it is ours, `None` where nothing in it was said.
    """

    name: str
    key: str
    takes: Callable[[dict[str, Any]], bool]
    read: Callable[[dict[str, Any], Counter[str], Callable[[str], str]], Foreign | ArrivingConversation | None]


OURS: Final = Reader("Parlour", "", own_json.takes, own_json.read)
READERS: Final = (
    OURS,
    Reader("ChatGPT", "conversation_id", chatgpt.takes, chatgpt.read),
    Reader("Claude", "uuid", claude.takes, claude.read),
    Reader("Open WebUI", "id", open_webui.takes, open_webui.read),
    Reader("LibreChat", "conversationId", librechat.takes, librechat.read),
)
