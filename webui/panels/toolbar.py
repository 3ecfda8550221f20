"""The composer's second line: what the next message may use, as chips that switch it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.toolbox.toolbox import CODE
from core.workspace.usable import WEB
from webui.render.markup import escaped, exact

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from core.storage.base import DocumentRecord, NamedLibrary
    from core.workspace.workspace import Workspace
    from webui.words import Words


@dataclass(frozen=True, slots=True)
class Switched:
    """What is on in a conversation.

    Args:
        code: `None` where no code can be run.
        persona: The name of the one that is used; "" for none.
        gone: The name of a persona that is not lent any more, without which the conversation goes on.
        personas: Those that can be chosen: id, name and whether it is this one.
        shelves: The libraries that can be: id and name, with whoever shares it.
        lost: The ids of libraries that it is to use and that are not shared with the reader any more.
        documents: The names of the conversation's own documents, which `@` offers.
        starters: The persona's questions to begin with.
        temporary: Whether the conversation goes by itself.
    """

    web: bool = False
    code: bool | None = None
    persona: str = ""
    gone: str = ""
    personas: tuple[tuple[str, str, bool], ...] = ()
    shelves: tuple[tuple[str, str], ...] = ()
    lost: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    starters: tuple[str, ...] = ()
    temporary: bool = False


async def switched(
    workspace: Workspace,
    kept: Mapping[str, Any],
    folder_id: str | None,
    documents: Sequence[DocumentRecord],
    lost: Sequence[str] = (),
) -> Switched:
    """What is on in a conversation. Raises StorageError.

    Args:
        kept: Its settings; for one that is not there yet, their draft.
        folder_id: Its folder, if any.
        documents: Its own.
        lost: As of `Switched`.
    """
    steering = workspace.steering
    found = await steering.shown(kept, folder_id)
    on = await workspace.tools.on_here(found.tools)
    chosen = found.persona
    personas = [*await steering.personas.list(), *await steering.lent_personas()]
    lent = ((one.library.id, f"{one.library.name} · {one.lender}") for one in await workspace.libraries.lent())
    return Switched(
        web=bool(on.intersection(WEB)),
        code=CODE in on if workspace.tools.interpreter().make is not None else None,
        persona=chosen.name if chosen is not None else "",
        gone=found.gone,
        personas=tuple((one.id, one.name, chosen is not None and one.id == chosen.id) for one in personas),
        shelves=(*((one.id, one.name) for one in await workspace.libraries.list()), *lent),
        lost=tuple(lost),
        documents=tuple(dict.fromkeys(one.name for one in documents)),
        starters=chosen.starters if chosen is not None else (),
        temporary=found.temporary,
    )


def toolbar_html(given: Switched, libraries: Sequence[NamedLibrary], words: Words) -> str:
    """Markup for `#toolbar`; what stands at the right end of the line is another panel's."""
    called = dict(given.shelves)
    first = called.get(libraries[0].id, libraries[0].name) if libraries else ""
    names = first if len(libraries) == 1 else words("bar.libraries_many", n=len(libraries))
    shelf = escaped(names if libraries else words("bar.libraries"))
    persona = escaped(given.persona or words("bar.persona"))
    gone = words("steer.gone", name=given.gone) if given.gone else ""
    missed = _missed(len(given.lost), words)
    used = {one.id for one in libraries}
    code = _switch("code", words("bar.code"), on=given.code) if given.code is not None else ""
    shelves = [*((one, name, one in used) for one, name in given.shelves)]
    shelves += [(one, words("bar.library_lost"), True) for one in given.lost]
    return (
        f'<div class="p-bar" role="toolbar" aria-label="{escaped(words("bar.label"))}">'
        f"{_switch('web', words('bar.web'), on=given.web)}{code}"
        f'<button type="button" class="p-tap p-tap-libraries" data-do="bar-libraries" aria-haspopup="menu" '
        f'data-on="{_said(bool(libraries))}"{_gone(missed)} '
        f'title="{escaped(missed) or shelf}"><span dir="auto">{shelf}</span></button>'
        f'<button type="button" class="p-tap p-tap-persona" data-do="bar-persona" aria-haspopup="menu" '
        f'data-on="{_said(bool(given.persona))}"{_gone(gone)} '
        f'title="{escaped(gone) or persona}"><span dir="auto">{persona}</span></button>'
        f"{_offered('p-bar-libraries', shelves)}"
        f"{_offered('p-bar-personas', given.personas)}"
        f"{_offered('p-bar-documents', (('', name, True) for name in given.documents))}</div>"
    )


def _missed(lost: int, words: Words) -> str:
    """What is said of so many libraries that are not shared any more."""
    return words("bar.libraries_gone_one" if lost == 1 else "bar.libraries_gone", n=lost) if lost else ""


def _gone(said: str) -> str:
    """The attribute of a chip by which the page's script says it once."""
    return f' data-gone="{exact(said)}"' if said else ""


def _offered(name: str, rows: Iterable[tuple[str, str, bool]]) -> str:
    """What a chip's menu offers; the script shows it when the chip is pressed."""
    items = (f'<li data-id="{escaped(one)}" data-on="{_said(on)}">{escaped(label)}</li>' for one, label, on in rows)
    return f'<ul id="{name}" hidden>{"".join(items)}</ul>'


def starters_html(questions: Sequence[str], kind: str = "p-starters") -> str:
    """Markup for `#starters`: questions that a press puts into the composer, a persona's or those after a reply."""
    rows = (
        f'<button type="button" class="p-starter" data-do="begin-with" data-text="{exact(text)}" '
        f'title="{escaped(text)}" dir="auto">'
        f'<span class="p-text">{escaped(text)}</span></button>'
        for text in questions
    )
    return f'<div class="{kind}">{"".join(rows)}</div>' if questions else ""


def temporary_html(words: Words, *, empty: bool) -> str:
    """Markup for `#temporary`: what it means that the conversation goes by itself, and the way out.

    Args:
        empty: Nothing was said yet.
    """
    keep = escaped(words("temporary.off" if empty else "temporary.keep"))
    return (
        f'<div class="p-temporary" role="note"><p>{escaped(words("temporary.what"))}</p>'
        f'<button type="button" class="p-quiet" data-do="temporary-off">{keep}</button></div>'
    )


def _switch(what: str, label: str, *, on: bool) -> str:
    said = escaped(label)
    return (
        f'<button type="button" class="p-tap p-tap-{what}" data-do="bar-{what}" aria-pressed="{_said(on)}" '
        f'title="{said}"><span>{said}</span></button>'
    )


def _said(on: bool) -> str:  # noqa: FBT001 - an attribute's value
    return "true" if on else "false"
