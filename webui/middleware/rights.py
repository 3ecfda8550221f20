"""What somebody needs to use each route and each action of the page, where people have accounts."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from core.mcp.app_addresses import AUTHORIZE, OPEN_PATHS
from core.people.roles import may

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from core.people.roles import Right
    from core.storage.people import Role

Needed: TypeAlias = "Right | Literal['nothing', 'account']"
"""`nothing`: whoever comes may ask, for there is nothing of anybody's, or it shows a secret of its own; `account`: who
has signed in, whatever their role."""


def _below(folder: str, names: str) -> tuple[str, ...]:
    return tuple(f"/{folder}/{name}" for name in names.split())


_GRADIO: Final = _below(
    "gradio_api",
    "startup-events app_id theme.css upload upload_progress queue/join queue/data cancel reset heartbeat/{session} "
    "file={path:path}",
)
ROUTES: Final[Mapping[str, Needed]] = {
    **dict.fromkeys(
        (
            *("/favicon.ico", "/robots.txt", "/manifest.json", "/offline.js", "/theme.css"),
            *("/assets/{name}", "/assets/{name:path}", "/static/{path:path}", "/mcp", "/shared/{token}"),
            *(
                "/sign-in",
                "/sign-in/openid",
                "/login/callback",
                *_below("sign-in/passkey", "begin done"),
                "/sign-out",
                "/guest",
                "/link/{token}",
            ),
            *_below("v1", "models models/{model:path} chat/completions embeddings ag-ui"),
            *_below("v1", "responses responses/compact responses/{response_id}"),
            *_below("v1", "responses/{response_id}/input_items responses/{response_id}/cancel"),
            *_below("v1", "ag-ui/{model:path} files files/{file_id} files/{file_id}/content {rest:path}"),
            *_below("gradio_api", "info call/ask call/v2/ask call/ask/{event} call/v2/ask/{event} mcp mcp/ mcp/schema"),
            *OPEN_PATHS,
            *("/embed", "/embed.js", *_below("embed", "about ask frame.js frame.css page/{ticket}.png")),
        ),
        "nothing",
    ),
    **dict.fromkeys(
        (
            *("/", "/config", "/search", "/meter", "/meter/save", "/files/{file_id}", "/uploads/check"),
            "/search/passages",
            *("/pages/{document_id}/{page:int}.png", "/documents/unlock", "/pictures/show", "/inspect/{message}.json"),
            *_below("inspect/{message}", "case.yaml case.json"),
            "/pages/{document_id}/figure/{number:int}.jpg",
            *_below("dictation", "way text"),
            *_below("conversations", "list/parts list/rows list/ids export {conversation_id}/export"),
            *_below("conversations", "{conversation_id}/queue/take {conversation_id}/answers/{message_id}"),
            *_below("preferences", "page language change delete"),
            *_below("steering", "prompts tokens personas/{persona_id}"),
            *_below("calls", "given text item"),
            *_below("models", "choices star unstar"),
            *_below("tools", "state mode patterns take_back switch lent change_note delete_note services/state"),
            *_below("libraries", "state {library}/room"),
            "/standing",
            *_below("shares", "held copy"),
            *_GRADIO,
        ),
        "talk",
    ),
    **dict.fromkeys(
        ("/account", *_below("account", "password end delete passkey/begin passkey/add passkey/remove")), "account"
    ),
    **dict.fromkeys(
        (
            "/conversations/import",
            "/conversations/import/stop",
            "/mcp/signed-in",
            AUTHORIZE,
            *_below("models", "menu save save_anyway use remove test offered refresh services"),
            *_below("tools", "account forget paste save confirm connect check enable trust let_ask tool approve"),
            *_below("tools", "sign_in sign_out remove token revoke"),
            *_below("tools/services", "read test add key enable tool remove"),
            *_below("libraries", "create rename delete remove cancel again try {library}/files"),
            *_below("shares", "preview look make revoke"),
            *_below("keys", "make revoke"),
            *("/lending", "/lending/set", "/lending/of", "/lending/change"),
        ),
        "own",
    ),
    **dict.fromkeys(
        (
            *_below("models", "files fetch cancel delete"),
            *("/people", *_below("people", "invite role recover end delete revoke limits")),
            *_below("people", "group-make group-rename group-delete group-limits group-add group-remove"),
        ),
        "house",
    ),
}
"""By the path of the route, its blanks as they are written there. What is not here, nobody may use."""

_OWN_ACTIONS: Final = ("shelve",)
_TALK_ACTIONS: Final = (
    *("open", "new", "chosen", "rename", "delete", "delete_all", "keep", "pin", "archive", "archived", "move", "fold"),
    *("folder", "cite", "close", "page", "passages", "chunk", "tried", "found", "inside", "look", "rest", "starter"),
    *("edit", "temporary", "rewrite", "regenerate", "continue", "fork", "rate", "judge", "version", "earlier", "drop"),
    *("unqueue", "movequeued", "sendqueued", "retry", "model", "compare", "prefer", "use", "cancel", "reread"),
    *("forget", "asknow", "allow", "refuse", "answer", "decline", "rerun", "inspect", "steering", "steer"),
    *("switch", "persona", "persona-save", "persona-change", "persona-delete", "persona-restore"),
    *("persona-import", "prompt-save", "prompt-delete"),
    *("watch", "demoplay", "demospeed", "demostep", "demotake", "again", "untaken"),
)
ACTIONS: Final[Mapping[str, Right]] = {**dict.fromkeys(_TALK_ACTIONS, "talk"), **dict.fromkeys(_OWN_ACTIONS, "own")}
"""By the name of an action of the page's bus."""


def needed(path: str) -> Needed | None:
    """What the route of a path needs; `None` for a path that no route in the table has."""
    found = ROUTES.get(path)
    if found is not None and "{" not in path:
        return found
    return next((needs for pattern, needs in _patterns() if pattern.fullmatch(path)), None)


def lets(needs: Needed, role: Role | None, *, account: bool) -> bool:
    """Whether who asks may use what needs this.

    Args:
        role: `None` for who is nobody.
        account: They have signed in.
    """
    if needs == "nothing":
        return True
    if needs == "account":
        return account
    return role is not None and may(role, needs)


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], Needed], ...]:
    blanks: Iterator[tuple[re.Pattern[str], Needed]] = (
        (re.compile(re.sub(r"{\w+}", "[^/]+", re.sub(r"{\w+:int}", r"\\d+", re.sub(r"{\w+:path}", ".*", one)))), needs)
        for one, needs in ROUTES.items()
        if "{" in one
    )
    return tuple(blanks)
