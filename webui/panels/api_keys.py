"""Keys for programs, as the page's script draws them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webui.render.price import money

if TYPE_CHECKING:
    from core.settings import Settings
    from core.storage.api_keys import ApiKey
    from core.workspace.workspace import Workspace
    from webui.words import Words


async def keys_data(workspace: Workspace, words: Words) -> list[dict[str, Any]]:
    """All keys of an owner, those that were revoked last. Raises StorageError."""
    return [key_data(one, words) for one in await workspace.stores.api_keys.list()]


def off_note(key: ApiKey, settings: Settings, words: Words) -> str:
    """Why a key lets nobody in yet: what it is for is switched off; "" where it is not."""
    return words("api_keys.embed_off") if "embed" in key.scopes and not settings.embed_sites else ""


def key_data(key: ApiKey, words: Words) -> dict[str, Any]:
    """One key: what it is called, may do and has used, in words."""
    scopes = words("attach.comma").join(words(f"api_keys.may_{one}") for one in key.scopes)
    models = words("api_keys.any_model") if key.models is None else words("attach.comma").join(key.models)
    cost = money(key.cost, words)
    may = words("api_keys.may", scopes=scopes, models=models)
    if key.app is not None:
        may = words("api_keys.may_app", scopes=scopes)
    used = words("api_keys.of_budget", cost=cost, budget=money(key.budget, words)) if key.budget is not None else cost
    return {
        "id": key.id,
        "name": key.name,
        "shown": f"pk-…{key.key_end}" if key.app is None else key.app.back,
        "may": may,
        "month": used if key.requests or key.budget is not None else words("api_keys.nothing_yet"),
        "requests": key.requests,
        "made": key.created_at,
        "used": key.used_at,
        "ends": key.expires_at,
        "revoked": key.revoked_at,
    }
