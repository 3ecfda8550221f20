"""What people add to a message: how it is kept with the message, and what of it reaches the model."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from core.agents.title import shortened_title
from core.errors import ModelRefusedError, ParlourError
from core.messages.content import ContentItem
from core.messages.invisible import Cleaned, noted, plain_line, without_invisible
from core.messages.message import ASSISTANT, USER, Message
from core.rag.attached import Attached
from core.rag.parsers.archives import zip_kind
from core.reading.senses import can_be_read, told_without
from core.storage.base import FILE_ADDRESS
from core.storage.files import suffix_for

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from core.languages import Lang
    from core.llm.base import BaseChatModel
    from core.net.addresses import Reach
    from core.reading.senses import Stead
    from core.storage.base import FileRecord


Kind: TypeAlias = Literal["picture", "sound", "video", "document"]


class Named(Protocol):
    """A file as far as its kind goes: what people call it, and what its content is."""

    @property
    def name(self) -> str:
        """With its ending."""
        ...

    @property
    def media_type(self) -> str:
        """As `media_type_of` finds it."""
        ...


LONGEST_TEXT = 2_000_000
LONGEST_SHOWN = 20_000
_EXCERPT = 600

_PROMISES_A_DOCUMENT = frozenset(
    {".pdf", ".docx", ".doc", ".odt", ".rtf", ".pptx", ".ppt", ".xlsx", ".xls", ".ods", ".epub", ".eml", ".msg"}
    | {".txt", ".md", ".html", ".htm", ".csv", ".json", ".ipynb", ".zip"}
)
_ASK: Mapping[Lang, str] = {"en": "What is in {names}?", "zh": "{names} 讲了什么？"}
_NOT_TAKEN: Mapping[Kind, str] = {
    "picture": "picture_not_taken",
    "sound": "sound_not_taken",
    "video": "video_not_taken",
}


def checked_text(text: str, file_count: int) -> Cleaned:
    """What is sent, fit to be stored and read: without what no model should read and no page can be sent.

    Raises:
        ParlourError: key `empty_message`: neither text nor files; `message_too_long` from 2,000,000 characters on.
    """
    plain = _as_typed(text.encode(errors="replace").decode().replace("\0", ""))
    if len(plain) > LONGEST_TEXT:
        hint = "Put the long text into a file and add that."
        raise ParlourError("The message is too long.", hint=hint, key="message_too_long", limit=LONGEST_TEXT)
    visible, removed = without_invisible(plain)
    visible = _as_typed(visible)
    if not visible and not file_count:
        raise ParlourError("There is nothing to send.", hint="Write a question, or add a file.", key="empty_message")
    return Cleaned(visible, removed)


def _as_typed(text: str) -> str:
    """Without empty lines before it and white space after it; what its first line is indented by stays."""
    kept = text.rstrip()
    begins = len(kept) - len(kept.lstrip())
    return kept[kept.rfind("\n", 0, begins) + 1 :]


def excerpt(text: str) -> str:
    """The beginning and end of a long text: where people put their question."""
    return f"{text[:_EXCERPT].rstrip()}\n\n…\n\n{text[-_EXCERPT:].lstrip()}"


def kind_of(file: Named) -> Kind:
    """How a file takes part in a message. What is called a document is one, whatever is in it."""
    if PurePosixPath(file.name).suffix.lower() in _PROMISES_A_DOCUMENT:
        return "document"
    match file.media_type.partition("/")[0]:
        case "image":
            return "picture"
        case "audio":
            return "sound"
        case "video":
            return "video"
        case _:
            return "document"


def true_name(name: str, media_type: str, head: bytes = b"") -> str:
    """What a file is called by what it is, where its name promises a document that it is not.

    Of pictures, recordings and films, and with `head` of office files and books, too, which are read under any name.
    Its own name, where that promises no document, or where nothing is known to call it instead.

    Args:
        media_type: As `media_type_of` finds it.
        head: Its first bytes.
    """
    promised = PurePosixPath(name).suffix
    is_for_the_model = media_type.startswith(("image/", "audio/", "video/"))
    really = suffix_for(media_type) if is_for_the_model else zip_kind(name, head)
    # A newer form of what it promises (.xls, .xlsx) is what it says.
    if not really or promised.lower() not in _PROMISES_A_DOCUMENT or really.startswith(promised.lower()):
        return name
    return name.removesuffix(promised) + really


def user_message(
    text: str,
    files: Sequence[FileRecord],
    note: str = "",
    invisible: int = 0,
    settings: Mapping[str, Any] | None = None,
) -> Message:
    """The message as it is stored. Files are named by address; `extra["files"]` has what the page shows of them.

    Args:
        note: Names a sentence that the page shows with it (`extra["note"]`).
        invisible: How many invisible characters were taken out of the text (`extra["invisible"]`).
        settings: Those of the conversation, which know of files that were too many to be added with these
            (`extra["untaken"]`: `n` of them, the first by their `names`).
    """
    said: dict[str, Any] = {"note": note} if note else {}
    if not files:
        return Message(USER, text, extra=noted(said, invisible))
    if (left := untaken(settings or {})) is not None:
        said[UNTAKEN] = {"n": left.total, "names": left.name}
    items = [ContentItem(text=text)] if text else []
    about = [_about(file) for file in files]
    return Message(USER, [*items, *map(_item, files)], extra=noted({"files": about, **said}, invisible))


def with_text(message: Message, text: str, invisible: int = 0) -> Message:
    """The same message, its files and notes included, with other words.

    Args:
        invisible: How many invisible characters were taken out of them.
    """
    items = [item for item in message.items if item.type != "text"]
    content = [*([ContentItem(text=text)] if text else []), *items] if items else text
    return message.model_copy(update={"content": content, "extra": noted(message.extra, invisible)})


def title_of(message: Message) -> str:
    """A conversation's title: the first words of the first line, or the name of the first file."""
    lines = [line.strip() for line in message.get_text_content().splitlines() if line.strip()]
    files = (message.extra or {}).get("files") or ()
    line = lines[0].lstrip("#>*- ") if lines else str(files[0]["name"]) if files else ""
    return shortened_title(plain_line(line))


def unsupported_files(
    files: Sequence[Named], model: BaseChatModel | None, *, hears: bool = False
) -> list[ParlourError]:
    """What the model cannot take and is not read for it, to be said before sending.

    Each error has the file's `name` and the `model`.

    Args:
        hears: Whether something is there that turns recordings into text.
    """
    errors: list[ParlourError] = []
    for file in files:
        kind = kind_of(file)
        if model is not None and not takes(model, kind) and not can_be_read(file, hears=hears):
            error = ModelRefusedError(message=f"The model cannot take {file.name}.", key=_NOT_TAKEN[kind])
            error.details = {"name": file.name, "model": model.label}
            errors.append(error)
    return errors


def takes(model: BaseChatModel, kind: Kind) -> bool:
    """Whether the model itself takes such a file; documents are read for it."""
    match kind:
        case "document":
            return True
        case "picture":
            return model.support_multimodal_input
        case "sound":
            return model.support_audio_input
        case "video":
            return model.support_video_input


def for_model(
    messages: Sequence[Message],
    model: BaseChatModel,
    here: Mapping[str, tuple[FileRecord, Path]],
    lang: Lang,
    steads: Mapping[str, Stead] | None = None,
) -> list[Message]:
    """The conversation as the model is given it.

    Args:
        model: What it cannot take is named in words instead.
        here: The stored files that are here, by id.
        lang: The language for a question that is made of a document alone.
        steads: What stands for files that it cannot take, by id: those whose text it gets as passages are documents.
    """
    return [_for_model(message, model, here, lang, steads or {}) for message in messages]


def _for_model(
    message: Message,
    model: BaseChatModel,
    here: Mapping[str, tuple[FileRecord, Path]],
    lang: Lang,
    steads: Mapping[str, Stead],
) -> Message:
    if isinstance(message.content, str):
        return message
    if message.role == ASSISTANT:  # what it drew or said aloud is told by its words
        return message.model_copy(update={"content": "".join(item.text or "" for item in message.content)})
    items: list[ContentItem] = []
    documents: list[str] = []
    for item in message.content:
        file_id = str(item.value).removeprefix(FILE_ADDRESS)
        if item.type == "text" or _holds_itself(item):
            items.append(item)
        elif not str(item.value).startswith(FILE_ADDRESS) or file_id not in here:
            items.append(ContentItem(text="[a file that is gone]"))
        elif item.type == "file" or steads.get(file_id) == "text":
            documents.append(here[file_id][0].name)
        else:
            items.append(_local(item, *here[file_id], model, steads.get(file_id), lang))
    if documents and not any(item.type == "text" for item in items):
        items.insert(0, ContentItem(text=_ASK[lang].format(names=", ".join(documents))))
    if all(item.type == "text" for item in items):
        return message.model_copy(update={"content": "\n".join(item.text or "" for item in items)})
    return message.model_copy(update={"content": items})


def _holds_itself(item: ContentItem) -> bool:
    """Whether nothing of this machine is read for it: a message that was brought in may name any path."""
    values: list[Any] = item.value if isinstance(item.value, list) else [item.value]
    return item.type != "file" and all(
        isinstance(value, dict) or str(value).startswith(("data:", "http://", "https://")) for value in values
    )


def _local(
    item: ContentItem, file: FileRecord, path: Path, model: BaseChatModel, stead: Stead | None, lang: Lang
) -> ContentItem:
    kind = kind_of(file)
    if kind != "document" and stead is not None and stead != "text":
        return ContentItem(text=told_without(file.name, kind, stead, lang))
    if kind != "document" and not takes(model, kind):
        return ContentItem(text=told_without(file.name, kind, "unread", lang))
    return ContentItem(**{item.type: str(path)})


def _item(file: FileRecord) -> ContentItem:
    match kind_of(file):
        case "picture":
            return ContentItem(image=file.address)
        case "sound":
            return ContentItem(audio=file.address)
        case "video":
            return ContentItem(video=file.address)
        case "document":
            return ContentItem(file=file.address)


def _about(file: FileRecord) -> dict[str, Any]:
    about = {"id": file.id, "name": file.name, "media_type": file.media_type, "size": file.size}
    return {**about, "kind": kind_of(file)}


LINK = "text/uri-list"
"""The media type of a stored file that holds an address and nothing else. No upload gets it, whatever is in it."""

_LONGEST = 60


def link_name(url: str) -> str:
    """What to call a page that was not fetched yet: its host, and the last part of its address."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:  # brackets that are none of an address
        return "link"
    last = unquote(parts.path.rstrip("/").rpartition("/")[2]).replace("/", " ").replace("\\", " ")
    last = plain_line(last)
    return f"{host} · {last[:_LONGEST]}" if last else host or "link"


async def fetched(url: str, reach: Reach | None = None) -> tuple[bytes, str]:
    """What stands at an address, and what to call it.

    Args:
        url: Begins with `http://` or `https://`.
        reach: How far it may lead; the open internet by default.

    Raises:
        FetchError: It cannot be fetched, or may not be.
    """
    from core.rag.sources import page  # brings the readers of documents with it

    return await page(url, reach=reach)


# ---- files that were too many to be added at once: kept with the conversation until they are added after all

UNTAKEN: Final = "untaken"
"""In a conversation's settings: `{"names": [...], "more": how many besides}`."""
_NAMES_KEPT = 500
_LONGEST_NAME_KEPT = 80
_ALL_TOLD = 10  # of those that are left out each is named where they are no more than these
_NAMES_TOLD = 3  # of more than that


def with_untaken(settings: Mapping[str, Any], names: Sequence[str], more: int = 0) -> dict[str, Any]:
    """The settings of a conversation when files were left out of what was added to it.

    Args:
        names: Of those files; none where what was added was taken back before it was sent.
        more: How many there are besides.
    """
    known, before = untaken_names(settings)
    plain = [_name_kept(one) for one in names]
    each = list(dict.fromkeys([*known, *filter(None, plain)])) if names else []
    more = max(more, before) if names else 0
    return _with_left(settings, each[:_NAMES_KEPT], more + max(0, len(each) - _NAMES_KEPT))


def without_added(settings: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """The settings when files of these names were added."""
    known, more = untaken_names(settings)
    added = {*map(_name_kept, names)}
    return _with_left(settings, [one for one in known if one not in added], more)


def with_true_names(settings: Mapping[str, Any], called: Mapping[str, str]) -> dict[str, Any]:
    """The settings when files are called otherwise than they were, by what is in them: by these names they are added.

    Args:
        called: The new names, by the former ones.
    """
    known, more = untaken_names(settings)
    renamed = {_name_kept(was): _name_kept(now) for was, now in called.items()}
    return _with_left(settings, list(dict.fromkeys(renamed.get(one, one) for one in known)), more)


def untaken(settings: Mapping[str, Any]) -> Attached | None:
    """What is left of them, as one entry among the files of the conversation; `None` where nothing is."""
    known, more = untaken_names(settings)
    total = len(known) + more
    if not total:
        return None
    first = known[: _ALL_TOLD if total <= _ALL_TOLD else _NAMES_TOLD]
    told = [*first, *(["…"] if total > len(first) else [])]
    return Attached(", ".join(told), "untaken", total=total)


def _name_kept(name: str) -> str:
    return plain_line(name)[:_LONGEST_NAME_KEPT]


def untaken_names(settings: Mapping[str, Any]) -> tuple[list[str], int]:
    """The names of the files that were left out, and how many there are besides, as `with_untaken` takes them."""
    kept: object = settings.get(UNTAKEN)
    values = cast("dict[str, Any]", kept) if isinstance(kept, dict) else {}
    names, more = values.get("names"), values.get("more")
    listed = cast("list[Any]", names) if isinstance(names, list) else []
    return [one for one in listed if isinstance(one, str)], more if isinstance(more, int) else 0


def _with_left(settings: Mapping[str, Any], names: list[str], more: int) -> dict[str, Any]:
    others = {name: value for name, value in settings.items() if name != UNTAKEN}
    return {**others, UNTAKEN: {"names": names, "more": more}} if names else others
