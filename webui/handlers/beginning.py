"""Begins a new conversation for which something was chosen before: what the page has kept of `chosen_before`."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from core.errors import NotFoundError, ParlourError
from core.models.model_name import MODEL, ModelName
from core.reading.attachments import with_untaken
from core.storage.conversations import TEMPORARY
from core.workspace.comparing import with_second_model
from core.workspace.levels import Level, changed, mapping_of
from webui.context import text_of
from webui.handlers.desk import toast

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from core.workspace.workspace import Workspace
    from webui.handlers.desk import Desk
    from webui.views import View

_LONGEST = 64
_MOST_NAMES = 500
_MOST_FILES = 20_000


async def begin_anew(desk: Desk, view: View, kept: object, folder: str | None = None) -> None:
    """Let a tab show a new conversation for which this is chosen; what cannot be had any more is said, and left out.

    Args:
        kept: As of `chosen_before`; whatever makes no sense there is left out.
        folder: The folder that it begins in, "" for none; left out, the one that was kept.

    Raises:
        NotFoundError: There is no folder of that name.
        StorageError: The database failed.
    """
    chosen, shown = mapping_of(kept), view.begun
    if not chosen and not folder:
        view.show("")
        return
    before = text_of(chosen.get("folder"))
    async with desk.workspace(view) as workspace:
        left = await _libraries_of(workspace, before)
        if folder is None:
            folder, brought = (before, left or ()) if left is not None else ("", ())
        else:
            brought = () if not folder else Level.of((await workspace.folders.get(folder)).settings).libraries
        settings = await _settings(workspace, view, chosen)
        wanted = _texts(chosen.get("libraries"))
        if folder != before or not chosen:
            wanted = [*(one for one in wanted if one not in (left or ())), *brought]
        libraries = [one for one in dict.fromkeys(wanted) if await _is_there(workspace, one)]
    if view.begun != shown:  # its reader has turned to another one meanwhile
        return
    view.show("")
    # A model that is gone stays chosen, and the question is refused: what is written for one is not sent to another.
    view.model = ModelName.read(chosen.get("model"))
    view.draft, view.libraries, view.folder = settings, tuple(libraries), folder
    view.begun = text_of(chosen.get("of"))[:_LONGEST] or view.begun


async def choose_again(desk: Desk, view: View, kept: object) -> None:
    """The same for a tab that shows a new conversation and does not know what the page has kept; else nothing is done.

    What was chosen in that tab meanwhile is chosen, too. Raises StorageError.
    """
    if view.shown_id or view.wanted_demo or mapping_of(kept).get("of") == view.begun:
        return
    draft, model, libraries = view.draft, view.model, view.libraries
    await begin_anew(desk, view, kept)
    if view.shown_id:
        return
    view.draft, view.model = {**view.draft, **draft}, model or view.model
    view.libraries = tuple(dict.fromkeys([*view.libraries, *libraries]))


async def _settings(workspace: Workspace, view: View, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the conversation. That it is temporary is among them whatever else cannot be had."""
    settings: dict[str, Any] = {TEMPORARY: True} if chosen.get("temporary") is True else {}
    persona = text_of(chosen.get("persona"))
    with _told(view):
        if persona:
            settings = await workspace.steering.with_persona(settings, persona)
            settings.pop(MODEL, None)  # it has been chosen since, or is among what is kept
    for name, value in mapping_of(chosen.get("change")).items():
        with _told(view):
            settings = changed(settings, {name: value})
    second = ModelName.read(chosen.get("second"))
    with _told(view):
        if second is not None:
            settings = with_second_model(settings, await workspace.models.named(second))
    left = mapping_of(chosen.get("untaken"))
    return with_untaken(settings, _texts(left.get("names"))[:_MOST_NAMES], _count(left.get("more")))


async def _libraries_of(workspace: Workspace, folder: str) -> tuple[str, ...] | None:
    """The libraries of a folder; `None` where there is no such folder."""
    with suppress(NotFoundError):
        return Level.of((await workspace.folders.get(folder)).settings).libraries if folder else ()
    return None


async def _is_there(workspace: Workspace, library: str) -> bool:
    """Whether a library is there, also one that is not shared any more: the page says that of it."""
    if await workspace.libraries.lost_among([library]):
        return True
    with suppress(NotFoundError):
        await workspace.libraries.known(library)
        return True
    return False


def _count(kept: object) -> int:
    return kept if isinstance(kept, int) and not isinstance(kept, bool) and 0 <= kept < _MOST_FILES else 0


def _texts(kept: object) -> list[str]:
    return [one for one in cast("list[object]", kept) if isinstance(one, str)] if isinstance(kept, list) else []


@contextmanager
def _told(view: View) -> Generator[None]:
    """What cannot be had is said on the page, and nothing else suffers from it."""
    try:
        yield
    except ParlourError as error:
        toast(view.words, error)
