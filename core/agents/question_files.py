"""The files that a question names: they are there, or a sentence says which is not, before any model is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, cast

from core.errors import SettingsError, shown
from core.messages.content import STORED, ContentItem
from core.messages.message import USER
from core.rag.sources import is_web_address
from core.tools.run_state import state_of

if TYPE_CHECKING:
    from core.agents.file_library import Fate, Fates
    from core.llm.base import BaseChatModel
    from core.messages.message import Message
    from core.tools.base import BaseTool

_LONGEST = 4_096  # bytes of a path; what is longer is data


def with_files(asked: list[Message], files: object) -> tuple[list[Message], Fates]:
    """The conversation whose question has these files, those of folders and patterns one by one.

    Args:
        asked: The question, perhaps with what was said before.
        files: Paths, folders, patterns, and addresses.

    Returns:
        The conversation, and which of its files must be read.

    Raises:
        SettingsError: `files` is no list of paths, or there is no question that they belong to.
        BrokenDocumentError: A file is not there, also one that the question itself holds.
    """
    check_files(asked)
    given = _listed(files)
    if given and (not asked or asked[-1].role != USER):
        said = "files belong to a question, and the last message is none of the user's."
        raise SettingsError(said, hint="Ask with a text, or with messages whose last is the user's.", name="files")
    named: dict[str, Fate] = dict.fromkeys(_paths_in(asked[-1:], {"file"}), "must")
    if not given:
        return asked, named
    paths: list[str] = []
    for one in given:
        if not is_path(one):
            paths.append(one)
            continue
        from core.agents.file_library import paths_at  # brings documents, which only files need

        found = paths_at(one)
        paths += found
        for path in found:
            named[path] = "must" if path == one or named.get(path) == "must" else "may_fail"
    items = [*asked[-1].items, *(ContentItem(file=one) for one in dict.fromkeys(paths))]
    return [*asked[:-1], asked[-1].model_copy(update={"content": items})], named


def check_files(asked: Sequence[Message]) -> None:
    """Check that the files, pictures and recordings of the last question are there; those of earlier ones may be gone.

    Raises:
        BrokenDocumentError: One is not.
    """
    for path in _paths_in(asked[-1:], {"file", "image", "audio", "video"}):
        if path.startswith(STORED):  # looked up by its id, elsewhere
            continue
        from core.agents.file_library import check_there

        check_there(path)


def check_kinds(context: Mapping[str, Any], model: BaseChatModel, tools: Iterable[BaseTool]) -> None:
    """Check that the files of a question are of kinds that can be read, where nobody reads them: else none would tell.

    Args:
        context: The keywords of the reply.
        model: Where it takes documents itself, it is left to say what it cannot read.
        tools: Where one takes files, what cannot be read is for it.

    Raises:
        DocumentError: One is not.
    """
    run = state_of(context)
    if run is None or model.support_document_input or any(tool.file_access for tool in tools):
        return
    for path in [path for path, fate in run.files.items() if fate == "must"]:
        from core.agents.file_library import check_kind

        check_kind(path)


def is_path(given: str) -> bool:
    """Whether it names a file of this machine, and is no address and no data."""
    if is_web_address(given) or given.startswith("data:") or len(given) > _LONGEST:
        return False
    return "://" not in given or given.startswith("file:")


def _paths_in(asked: Sequence[Message], kinds: set[str]) -> list[str]:
    items = (item for message in asked if message.role == USER for item in message.items if item.type in kinds)
    values = (cast("Any", item.value) for item in items)
    return [one for one in values if isinstance(one, str) and is_path(one)]


def _listed(files: object) -> list[str]:
    """The paths and addresses as texts. Raises SettingsError."""
    if files is None:
        return []
    if isinstance(files, str | bytes) or not isinstance(files, Sequence):
        example = repr(files) if isinstance(files, str) and files else '"manual.pdf"'
        said = f"files must be a list of paths and addresses, not {shown(files)}."
        raise SettingsError(said, hint=f"Write files=[{example}].", name="files")
    given = cast("Sequence[object]", files)
    for one in given:
        if not isinstance(one, str | PathLike) or not str(cast("Any", one)).strip():
            said = f"files must be a list of paths and addresses, and {shown(one)} is neither."
            raise SettingsError(said, hint='Write files=["manual.pdf"].', name="files")
    return [str(fspath(cast("str | PathLike[str]", one))) for one in given]
