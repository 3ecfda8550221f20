"""The bus: what the page's own script asks for, one JSON object at a time, `{"do": "open", "id": …}`."""

from __future__ import annotations

import json
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from core.errors import NotFoundError
from core.models.model_name import ModelName
from core.reading.attachments import with_true_names, with_untaken
from core.storage.conversations import TEMPORARY
from core.workspace.comparing import with_second_model
from webui.bundles import assets_folder
from webui.context import text_of
from webui.handlers.approval import allow, answer, refuse, rerun
from webui.handlers.beginning import begin_anew, choose_again
from webui.handlers.demo import ACTIONS as DEMO
from webui.handlers.documents import ask_now, cancel, forget, read_again
from webui.handlers.evidence import again, chosen, cited, found, inside, listed, paged, tried
from webui.handlers.inspecting import inspected
from webui.handlers.queue import move_queued, send_queued, unqueue
from webui.handlers.send import drop, start
from webui.handlers.steering import ACTIONS as STEERING
from webui.handlers.steering import draw
from webui.middleware.rights import ACTIONS as RIGHTS
from webui.panels.welcome import starter
from webui.views import WINDOW

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from core.runs.log import Rating
    from webui.handlers.desk import Desk
    from webui.views import View

Asked = dict[str, Any]
_TITLE = 200
_MOST_AT_ONCE = 20_000  # a statement of SQLite takes 32,766 values
_CHOICES = frozenset({*STEERING, "new", "chosen", "use", "model", "compare", "temporary", "untaken"})
"""What holds for the next question: one that is sent a moment later waits for it."""


FORMER: Final = '<span class="p-former" hidden></span>'
"""Tells the page's script that closing a panel brings another one back."""


async def act(desk: Desk, view: View, message: str) -> str:
    """Do what the script asks.

    Returns:
        The markup of the evidence panel.

    Raises:
        ParlourError: It cannot be done.
    """
    try:
        asked = json.loads(message)
    except (TypeError, ValueError, RecursionError):  # nothing that the page's own script would write
        asked = None
    if isinstance(asked, dict):
        request = cast("Asked", asked)
        name = str(request.get("do"))
        action = ACTIONS.get(name)
        if action is not None:
            desk.engine.people.check_may(view.owner, RIGHTS[name])
            async with view.choosing if request["do"] in _CHOICES else nullcontext():
                await action(desk, view, request)
    if view.side and not view.evidence:  # the tab turned to another conversation, or what stood over it was closed
        await draw(desk, view)
    return view.evidence + FORMER if view.evidence and view.under else view.evidence


def _text(asked: Asked, name: str) -> str:
    return text_of(asked.get(name))


def _number(asked: Asked, name: str = "n") -> int:
    value = asked.get(name)
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:9])
    return value if isinstance(value, int) else 0


async def _open(desk: Desk, view: View, asked: Asked) -> None:
    conversation = _text(asked, "id")
    if conversation:
        try:
            async with desk.workspace(view) as workspace:
                await workspace.conversations.get(conversation)
        except NotFoundError:
            view.show("")
            raise
    view.resting = False
    view.show(conversation)
    if asked.get("message"):
        await _turn_to(desk, view, _text(asked, "message"))


async def _turn_to(desk: Desk, view: View, message: str) -> None:
    """Let a message be among those that the tab shows: its branch, and a window that begins before it."""
    conversation = view.conversation_id
    async with desk.workspace(view) as workspace:
        thread = await workspace.conversations.thread(conversation)
        if all(one.id != message for one in thread):
            await workspace.conversations.turn_to(conversation, message)
            desk.views.changed(view.owner, conversation)
            thread = await workspace.conversations.thread(conversation)
    view.begin_before(message, [one.id for one in thread])


async def _new(desk: Desk, view: View, asked: Asked) -> None:
    """A new conversation, in a folder where one is named: it is steered by that, and answered from its libraries.

    With `chosen`, what was chosen for it before its reader turned to another one, as `chosen_before` told it.
    """
    view.resting = False
    await begin_anew(desk, view, asked.get("chosen"), _text(asked, "folder"))


async def _chosen(desk: Desk, view: View, asked: Asked) -> None:
    """What was chosen for the new conversation before the page was loaded again; see `new`."""
    await choose_again(desk, view, asked.get("chosen"))


async def _rename(desk: Desk, view: View, asked: Asked) -> None:
    title = " ".join(_text(asked, "title").split())[:_TITLE]
    if title:
        async with desk.workspace(view) as workspace:
            await workspace.conversations.rename(_text(asked, "id"), title)
    desk.views.changed(view.owner, _text(asked, "id"))


async def _delete(desk: Desk, view: View, asked: Asked) -> None:
    """Delete one in a moment; until then it can be taken back."""
    conversation = _text(asked, "id")
    async with desk.workspace(view) as workspace:
        await workspace.conversations.get(conversation)
    await desk.deletions.plan(desk.engine, desk.views, view, [conversation])


async def _delete_all(desk: Desk, view: View, asked: Asked) -> None:
    """Delete several in a moment; until then it can be taken back."""
    await desk.deletions.plan(desk.engine, desk.views, view, _ids(asked))


async def _keep(desk: Desk, view: View, asked: Asked) -> None:
    """Keep what was about to be deleted."""
    await desk.deletions.take_back(desk.engine, desk.views, view, _ids(asked))


def _ids(asked: Asked) -> list[str]:
    """The conversations that are meant: at most as many as the page chooses at once."""
    found = asked.get("ids")
    return [text_of(one) for one in cast("list[Any]", found)[:_MOST_AT_ONCE]] if isinstance(found, list) else []


async def _pin(desk: Desk, view: View, asked: Asked) -> None:
    async with desk.workspace(view) as workspace:
        await workspace.conversations.pin(_ids(asked), on=asked.get("on") is True)
    desk.views.changed(view.owner, None)


async def _archive(desk: Desk, view: View, asked: Asked) -> None:
    async with desk.workspace(view) as workspace:
        await workspace.conversations.archive(_ids(asked), on=asked.get("on") is True)
    desk.views.changed(view.owner, None)


async def _archived(desk: Desk, view: View, asked: Asked) -> None:
    """List the archived conversations, or the others again."""
    del desk
    view.archived = asked.get("on") is True
    view.wake_up()


async def _move(desk: Desk, view: View, asked: Asked) -> None:
    """Put conversations into a folder, a new one where it has a name and no id, or into none."""
    folder, name = _text(asked, "folder"), _text(asked, "name")
    async with desk.workspace(view) as workspace:
        if name and not folder:
            folder = (await workspace.folders.create(name)).id
        await workspace.folders.put(_ids(asked), folder or None)
    desk.views.changed(view.owner, None)


async def _fold(desk: Desk, view: View, asked: Asked) -> None:
    """Open a folder, or fold it."""
    is_open = asked.get("on") is True
    async with desk.workspace(view) as workspace:
        await workspace.folders.configure(_text(asked, "id"), lambda kept: {**kept, "open": is_open})
    desk.views.changed(view.owner, None)


async def _folder(desk: Desk, view: View, asked: Asked) -> None:
    """Rename a folder, or delete it where it has no name any more; its conversations stay."""
    folder, name = _text(asked, "id"), _text(asked, "name")
    async with desk.workspace(view) as workspace:
        if name:
            await workspace.folders.rename(folder, name)
        else:
            await workspace.folders.delete(folder)
    desk.views.changed(view.owner, None)


async def _cite(desk: Desk, view: View, asked: Asked) -> None:
    await cited(desk, view, _text(asked, "message"), _number(asked), _number(asked, "at"))


async def _again(desk: Desk, view: View, asked: Asked) -> None:
    del asked
    await again(desk, view)


async def _close(desk: Desk, view: View, asked: Asked) -> None:
    del desk, asked
    view.uncover()


async def _page(desk: Desk, view: View, asked: Asked) -> None:
    await paged(desk, view, _text(asked, "document"), _number(asked), _number(asked, "part"))


async def _passages(desk: Desk, view: View, asked: Asked) -> None:
    await listed(desk, view, _number(asked))


async def _chunk(desk: Desk, view: View, asked: Asked) -> None:
    await chosen(desk, view, _number(asked))


async def _tried(desk: Desk, view: View, asked: Asked) -> None:
    await tried(desk, view, _text(asked, "id"), _text(asked, "question"), _number(asked))


async def _found(desk: Desk, view: View, asked: Asked) -> None:
    await found(desk, view, _text(asked, "document"), _number(asked), _text(asked, "text"))


async def _inside(desk: Desk, view: View, asked: Asked) -> None:
    await inside(desk, view, _text(asked, "id"))


async def _look(desk: Desk, view: View, asked: Asked) -> None:
    del desk, asked
    view.resting = False
    view.wake_up(stale=True)


async def _rest(desk: Desk, view: View, asked: Asked) -> None:
    del desk, asked
    view.resting = True
    view.generation += 1
    view.wake_up()


async def _starter(desk: Desk, view: View, asked: Asked) -> None:
    try:
        text, sample = starter(_number(asked), view.words)
    except KeyError as error:
        raise NotFoundError("There is no such question to begin with.") from error
    await start(desk, view, text, [(assets_folder() / "samples" / sample, sample)] if sample else [])


async def _edit(desk: Desk, view: View, asked: Asked) -> None:
    text = _text(asked, "text")
    _attended(view)
    if text.strip():
        async with desk.conversation(view) as conversation:
            await conversation.edit(_text(asked, "id"), text, view.words.spoken)


async def _temporary(desk: Desk, view: View, asked: Asked) -> None:
    """Let the new conversation be a temporary one, or not; or let one that is there stay."""
    on = asked.get("on") is True
    if not view.conversation_id:
        others = {name: value for name, value in view.draft.items() if name != TEMPORARY}
        view.draft = {**others, TEMPORARY: True} if on else others
    elif not on:
        async with desk.conversation(view) as conversation:
            await conversation.keep()
        desk.views.changed(view.owner, None)
    view.wake_up(stale=True)


async def _untaken(desk: Desk, view: View, asked: Asked) -> None:
    """Note which files were too many to be added at once; with no names, that none of them was added.

    With `called` instead, that files which are being added now have other names than they had: `{former: new}`.
    """
    found, more, called = asked.get("names"), asked.get("more"), asked.get("called")
    names = [text_of(one) for one in cast("list[Any]", found)] if isinstance(found, list) else []
    count = more if isinstance(more, int) and 0 <= more < _MOST_AT_ONCE else 0
    change = partial(with_untaken, names=names[:_MOST_AT_ONCE], more=count)
    if isinstance(called, dict):
        pairs = list(cast("dict[Any, Any]", called).items())[:_MOST_AT_ONCE]
        change = partial(with_true_names, called={text_of(was): text_of(now) for was, now in pairs})
    if view.conversation_id:
        async with desk.workspace(view) as workspace:
            await workspace.conversations.configure(view.conversation_id, change)
    else:
        view.draft = change(view.draft)


async def _rewrite(desk: Desk, view: View, asked: Asked) -> None:
    """A version of a reply as the reader wants it."""
    _attended(view)
    async with desk.conversation(view) as conversation:
        await conversation.edit_reply(_text(asked, "id"), _text(asked, "text"))


async def _regenerate(desk: Desk, view: View, asked: Asked) -> None:
    _attended(view)
    async with desk.conversation(view) as conversation:
        named = _model_name(asked) if "service" in asked else None
        which = {"beside": named} if asked.get("beside") is True else {"model": named}
        await conversation.regenerate(_text(asked, "id"), view.words.spoken, **which)


async def _rate(desk: Desk, view: View, asked: Asked) -> None:
    """Keep what the reader thinks of a reply of the conversation that the tab shows."""
    mark = _text(asked, "mark")
    async with desk.workspace(view) as workspace:
        message = await workspace.conversations.message(_text(asked, "id"))
        if message.conversation_id != view.conversation_id or mark not in {"", "up", "down"}:
            raise NotFoundError("There is no such reply.", kind="message")
        await workspace.runs.rate(message, cast("Rating", mark), _text(asked, "reason"))
    desk.views.changed(view.owner, view.conversation_id)


async def _judge(desk: Desk, view: View, asked: Asked) -> None:
    """Say what judging a reply by the conversation's model costs; let it (`step` "yes"), or not; stop it."""
    step = _text(asked, "step")
    async with desk.workspace(view) as workspace:
        message = await workspace.conversations.message(_text(asked, "id"))
        is_offered = step in {"stop", "no"} or await workspace.judging.may()
        if message.conversation_id != view.conversation_id or not is_offered:
            raise NotFoundError("There is no such reply.", kind="message")
        if step == "stop":
            await workspace.judging.stop(message)
        elif step == "no":
            workspace.judging.withdraw(message)
        else:
            model = await workspace.models.loader(await workspace.conversation(view.conversation_id).model())
            if step == "yes":
                await workspace.judging.begin(message, model)
            else:
                await workspace.judging.offer(message, model)
    _attended(view)


async def _fork(desk: Desk, view: View, asked: Asked) -> None:
    """Go on from a message in a conversation of its own, which this tab shows then."""
    async with desk.conversation(view) as conversation:
        fresh = await conversation.fork(_text(asked, "id"))
    view.show(fresh.id)
    desk.views.changed(view.owner, None)


async def _continue(desk: Desk, view: View, asked: Asked) -> None:
    _attended(view)
    async with desk.conversation(view) as conversation:
        await conversation.continue_(_text(asked, "id"), view.words.spoken)


async def _version(desk: Desk, view: View, asked: Asked) -> None:
    """Show another version of a turn, in every tab that shows the conversation."""
    _attended(view)
    async with desk.workspace(view) as workspace:
        await workspace.conversations.turn_to(view.conversation_id, _text(asked, "id"))
    desk.views.changed(view.owner, view.conversation_id)


def _attended(view: View) -> None:
    """Somebody looks, and waits for what comes."""
    view.resting = False
    view.wake_up(stale=True)


async def _earlier(desk: Desk, view: View, asked: Asked) -> None:
    del desk, asked
    view.window += WINDOW
    view.anchor = None
    view.wake_up()


async def _drop(desk: Desk, view: View, asked: Asked) -> None:
    await drop(desk, view, _text(asked, "upload"))


async def _unqueue(desk: Desk, view: View, asked: Asked) -> None:
    await unqueue(desk, view, _text(asked, "id"))


async def _movequeued(desk: Desk, view: View, asked: Asked) -> None:
    await move_queued(desk, view, _text(asked, "id"), _text(asked, "before"))


async def _sendqueued(desk: Desk, view: View, asked: Asked) -> None:
    await send_queued(desk, view, _text(asked, "id"))


async def _use(desk: Desk, view: View, asked: Asked) -> None:
    """Let the conversation use a library, or no more; a new one remembers it until its first question."""
    library, on = _text(asked, "id"), asked.get("on") is True
    async with desk.workspace(view) as workspace:
        if view.conversation_id:
            await workspace.libraries.use(view.conversation_id, library, on=on)
        else:
            if on:
                await workspace.libraries.known(library)
            others = tuple(one for one in view.libraries if one != library)
            view.libraries = (*others, library) if on else others
            view.wake_up(stale=True)
    await draw(desk, view)


async def _retry(desk: Desk, view: View, asked: Asked) -> None:
    del asked
    async with desk.workspace(view) as workspace:
        shown = view.conversation_id
        name = await workspace.conversation(shown).model() if shown else view.model
        (await workspace.models.chosen(name)).loader.retry()


async def _model(desk: Desk, view: View, asked: Asked) -> None:
    """Let a model answer in the conversation from now on, or (`all`) in all new ones, whatever answers this one."""
    name = _model_name(asked)
    async with desk.workspace(view) as workspace:
        if asked.get("all") is True:
            await workspace.models.use_for_all(name)
            view.model = None
        elif view.conversation_id:
            await workspace.conversation(view.conversation_id).choose_model(name)
        else:
            view.model = await workspace.models.named(name)
    view.wake_up(stale=True)


async def _compare(desk: Desk, view: View, asked: Asked) -> None:
    """Let a second model answer beside the conversation's own, or (`on` false) none any more."""
    name = _model_name(asked) if asked.get("on") is True else None
    if view.conversation_id:
        async with desk.conversation(view) as conversation:
            await conversation.choose_second_model(name)
    else:
        async with desk.workspace(view) as workspace:
            chosen = await workspace.models.named(name) if name is not None else None
        view.draft = with_second_model(view.draft, chosen)
    view.wake_up(stale=True)


async def _prefer(desk: Desk, view: View, asked: Asked) -> None:
    """Go on with one of two replies."""
    _attended(view)
    async with desk.conversation(view) as conversation:
        await conversation.prefer(_text(asked, "id"))


def _model_name(asked: Asked) -> ModelName:
    return ModelName(_text(asked, "service"), _text(asked, "model"))


async def _cancel(desk: Desk, view: View, asked: Asked) -> None:
    await cancel(desk, view, _text(asked, "id"))


async def _reread(desk: Desk, view: View, asked: Asked) -> None:
    await read_again(desk, view, _text(asked, "id"))


async def _forget(desk: Desk, view: View, asked: Asked) -> None:
    await forget(desk, view, _text(asked, "id"))


async def _asknow(desk: Desk, view: View, asked: Asked) -> None:
    del asked
    await ask_now(desk, view)


async def _allow(desk: Desk, view: View, asked: Asked) -> None:
    await allow(
        desk,
        view,
        _text(asked, "call"),
        asked.get("arguments"),
        always=asked.get("always") is True,
        asked=asked.get("asked"),
    )


async def _refuse(desk: Desk, view: View, asked: Asked) -> None:
    await refuse(desk, view, _text(asked, "call"), asked=asked.get("asked"))


async def _answer(desk: Desk, view: View, asked: Asked) -> None:
    await answer(desk, view, _text(asked, "call"), asked.get("arguments") or {})


async def _decline(desk: Desk, view: View, asked: Asked) -> None:
    await answer(desk, view, _text(asked, "call"), None)


async def _rerun(desk: Desk, view: View, asked: Asked) -> None:
    _attended(view)
    await rerun(desk, view, _text(asked, "id"), _text(asked, "call"), asked.get("arguments"))


async def _inspect(desk: Desk, view: View, asked: Asked) -> None:
    await inspected(desk, view, _text(asked, "message"), _text(asked, "call"), _text(asked, "stage"))


ACTIONS: dict[str, Callable[[Desk, View, Asked], Awaitable[None]]] = {
    "open": _open,
    "new": _new,
    "chosen": _chosen,
    "rename": _rename,
    "delete": _delete,
    "delete_all": _delete_all,
    "keep": _keep,
    "pin": _pin,
    "archive": _archive,
    "archived": _archived,
    "move": _move,
    "fold": _fold,
    "folder": _folder,
    "cite": _cite,
    "again": _again,
    "untaken": _untaken,
    "close": _close,
    "page": _page,
    "passages": _passages,
    "chunk": _chunk,
    "tried": _tried,
    "found": _found,
    "inside": _inside,
    "look": _look,
    "rest": _rest,
    "starter": _starter,
    "edit": _edit,
    "temporary": _temporary,
    "rewrite": _rewrite,
    "regenerate": _regenerate,
    "continue": _continue,
    "fork": _fork,
    "rate": _rate,
    "judge": _judge,
    "version": _version,
    "earlier": _earlier,
    "drop": _drop,
    "unqueue": _unqueue,
    "movequeued": _movequeued,
    "sendqueued": _sendqueued,
    "retry": _retry,
    "model": _model,
    "compare": _compare,
    "prefer": _prefer,
    "use": _use,
    "cancel": _cancel,
    "reread": _reread,
    "forget": _forget,
    "asknow": _asknow,
    "allow": _allow,
    "refuse": _refuse,
    "answer": _answer,
    "decline": _decline,
    "rerun": _rerun,
    "inspect": _inspect,
    **STEERING,
    **DEMO,
}
