"""What a model is told of a conversation's files: which there are, and which cannot be searched completely yet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from core.extras import install_command, install_hint
from core.rag.citations import harmless
from core.rag.document import numbered_as
from core.rag.unread_parts import PARTS_UNREAD, UnreadParts, unread_parts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from core.languages import Lang
    from core.rag.document import Document, Heading
    from core.rag.library import Library

Status: TypeAlias = Literal["ready", "reading", "stopped", "failed", "locked", "cancelled", "untaken"]

UNREAD: Final = "unread"
"""The key of `extra` of a search's result: a sentence for each document that holds no text."""
_LISTED = 20  # names that a model is told
_LONGEST = 100  # letters of a name
_LONGEST_HEADING = 80
_NONE = UnreadParts()
_UNREAD_NAMED = 5  # files within a file that were not read
_HEADINGS = 2_400  # letters of all headings together: some 600 tokens
_LISTS: Mapping[Lang, tuple[str, str, str]] = {
    "en": (
        "The user's files in this conversation, whose text reaches you as passages:",
        "The user's {n}files: {files}.",
        "and {n} more",
    ),
    "zh": (
        "以下是用户在本次对话中的文件，其内容以段落形式提供给你：",
        "用户的{n}文件：{files}。",
        "另有 {n} 个",
    ),
}
_COUNT: Mapping[Lang, str] = {"en": "{n} ", "zh": " {n} 个"}
_STATES: Mapping[Lang, Mapping[str, str]] = {
    "en": {
        "ready": "read",
        "meaning": "search by meaning knows {n} of its {total} passages so far",
        "reading": "still being read",
        "stopped": "read in part",
        "failed": "could not be read",
        "locked": "not read, as it is protected by a password",
        "cancelled": "not read, as reading was cancelled",
        "at": "{part} {n} of {total}",
        "all": "{total} {part}s",
        "one": "1 {part}",
        "heading": "{text} ({part} {n})",
        "unread": "not read of what is in it: {files}",
    },
    "zh": {
        "ready": "已读",
        "meaning": "语义搜索目前只覆盖其 {total} 个段落中的 {n} 个",
        "reading": "仍在读取",
        "stopped": "只读了一部分",
        "failed": "无法读取",
        "locked": "有密码保护，未读取",
        "cancelled": "已取消读取",
        "at": "共 {total} {part}，读到第 {n} {part}",
        "all": "{total} {part}",
        "one": "1 {part}",
        "heading": "{text}（第 {n} {part}）",
        "unread": "其中未读取：{files}",
    },
}
_UNTAKEN: Mapping[Lang, str] = {
    "en": "{n} more files were not added, as they were too many at once, so nothing is known of them: {names}",
    "zh": "另有 {n} 个文件因一次添加过多而未添加，其内容未知：{names}",
}
_PARTS: Mapping[Lang, Mapping[str, str]] = {
    "en": {"page": "page", "slide": "slide", "sheet": "sheet"},
    "zh": {"page": "页", "slide": "张", "sheet": "个工作表"},
}
_UNFINISHED: Mapping[Lang, str] = {
    "en": "Nothing was found in what can be searched now, but not everything can: {files}. So do not say that the "
    "documents do not contain it: say what could not be searched.",
    "zh": "目前可搜索的内容中没有找到，但并非所有内容都能搜索：{files}。因此不要说文档中没有，请说明哪些内容未能搜索。",
}

_NO_TEXT: Mapping[Lang, Mapping[str, str]] = {
    "en": {
        "document_scanned": "{name} has pages but no text: it is a scan. Send a copy with recognised text, or "
        "{install}.",
        "document_no_text": "{name} holds no text. Check that it is the right file.",
    },
    "zh": {
        "document_scanned": "{name} 有页面但没有文字：它是扫描件。请发送带文字的副本，或者{install}。",
        "document_no_text": "{name} 中没有文字。请检查是否选对了文件。",
    },
}


@dataclass(frozen=True, slots=True)
class Attached:
    """A file of a conversation.

    Args:
        name: For display.
        status: How its reading went; `locked` failed for lack of a password. `untaken` stands for files that were
            too many to be added at once: `name` has the first of their names, `total` says how many there are.
        total: All of them; `None` if that is not known, or it has none.
        library_id: Its id in the index, if any of it can be found.
        made: The passages that have vectors, and all; `None` if all have.
        note: Names a sentence of the page about it, such as "document_scanned"; empty when nobody has to be told.
        unread: The files within it, of an archive or a letter, that were not read.
    """

    name: str
    status: Status
    pages: int = 0
    total: int | None = None
    library_id: str | None = None
    made: tuple[int, int] | None = None
    note: str = ""
    unread: UnreadParts = _NONE

    @property
    def is_whole(self) -> bool:
        """Whether all of it can be searched, by words and by meaning."""
        return self.status == "ready" and self.made is None

    def as_dict(self) -> dict[str, Any]:
        """The form in which the page gets one that was not searched completely."""
        if self.status == "ready" and self.made is not None:
            return {"name": self.name, "status": "preparing", "pages": self.made[0], "total": self.made[1]}
        status = {"locked": "failed", "stopped": "cancelled"}.get(self.status, self.status)
        found = {"found": True} if self.status == "stopped" else {}
        return {"name": self.name, "status": status, "pages": self.pages, "total": self.total, **found}


def in_library(library: Library, documents: Collection[str]) -> list[Attached]:
    """The documents with these ids, with the status that the library has.

    Raises:
        StorageError: The library cannot be read.
    """
    wanted = set(documents)
    states: dict[str, Status] = {"ready": "ready", "reading": "reading", "stopped": "stopped", "no_text": "failed"}
    there = [one for one in library.documents() if one.id in wanted]
    told = [Attached(one.name, states[one.status], one.pages or 0, one.pages, one.id, note=one.note) for one in there]
    told = [
        replace(one, unread=unread_parts(library, one.library_id))
        if one.note == PARTS_UNREAD and one.library_id is not None
        else one
        for one in told
    ]
    return with_meaning(told, library)


def without_text(files: Iterable[Attached | Document], lang: Lang) -> list[str]:
    """A sentence for each that was read and holds no text, as the page has it, and what to do."""
    install = {"en": install_hint("ocr"), "zh": f"请运行：{install_command('ocr')}"}[lang]
    return [
        _NO_TEXT[lang][one.note].format(name=one.name, install=install) for one in files if one.note in _NO_TEXT[lang]
    ]


def with_meaning(files: Sequence[Attached], library: Library) -> list[Attached]:
    """The same files, each with how many of its passages have vectors.

    Raises:
        StorageError: The library cannot be read.
    """
    come = library.retriever.vector_progress({one.library_id for one in files if one.library_id is not None})
    behind = {library_id: made for library_id, made in come.items() if made[0] < made[1]}
    return [replace(one, made=behind.get(one.library_id or "")) for one in files]


def listed(
    files: Sequence[Attached],
    lang: Lang,
    *,
    brief: bool = False,
    headings: Mapping[str, Sequence[Heading]] | None = None,
) -> str:
    """The list of files for a model's prompt; "" if there are none.

    Headings share what room there is: of a file whose own do not fit, those of the second level are left out, and
    then the last of the first level, of which it is said how many there are.

    Args:
        files: All files of the conversation.
        brief: In one line and without headings, for small models, which copy what they do not need.
        headings: Of each document, by its id in the index.
    """
    if not files:
        return ""
    whole, line, more = _LISTS[lang]
    here = [one for one in files if one.status != "untaken"]
    first = here[:_LISTED]
    told = [_told(one, lang) for one in first]
    rest = [more.format(n=len(here) - _LISTED)] if len(here) > _LISTED else []
    rest += [_told(one, lang) for one in files if one.status == "untaken"]
    if brief:
        n = _COUNT[lang].format(n=len(here)) if len(here) > 1 else ""
        return line.format(n=n, files=("; " if lang == "en" else "；").join([*told, *rest]))
    outlines = {at: found for at, one in enumerate(first) if (found := (headings or {}).get(one.library_id or ""))}
    room = _HEADINGS // max(1, len(outlines))
    lines = [whole]
    for at, one in enumerate(told):
        lines.append(f"- {one}")
        if at in outlines:
            lines += _outline(outlines[at], first[at].name, room, lang)
    return "\n".join([*lines, *(f"- {one}" for one in rest)])


def _outline(headings: Sequence[Heading], name: str, room: int, lang: Lang) -> list[str]:
    """The headings of a file, one a line, as many as there is room for."""
    lines = [(one.level, _heading(one, name, lang)) for one in headings]
    if sum(len(line) for _, line in lines) > room:
        lines = [(level, line) for level, line in lines if level == 1]
    shown: list[str] = []
    for at, (level, line) in enumerate(lines):
        room -= len(line)
        if room < 0:
            return [*shown, f"  - {_LISTS[lang][2].format(n=len(lines) - at)}"]
        shown.append(f"{'  ' * level}- {line}")
    return shown


def _heading(heading: Heading, name: str, lang: Lang) -> str:
    words = " ".join(heading.text.split())
    text = harmless(words if len(words) <= _LONGEST_HEADING else f"{words[: _LONGEST_HEADING - 1]}…")
    if heading.page is None:
        return text
    part = _PARTS[lang][numbered_as(name)]
    return _STATES[lang]["heading"].format(text=text, part=part, n=heading.page)


def unfinished(files: Iterable[Attached], lang: Lang) -> str:
    """The result of a search without hits if not all files could be searched completely; "" if all could."""
    parts = [one for one in files if not one.is_whole]
    if not parts:
        return ""
    told = [_told(one, lang) for one in parts[:_LISTED]]
    if len(parts) > _LISTED:
        told.append(_LISTS[lang][2].format(n=len(parts) - _LISTED))
    return _UNFINISHED[lang].format(files=("; " if lang == "en" else "；").join(told))


def _told(file: Attached, lang: Lang) -> str:
    name = " ".join(file.name.split())
    if file.status == "untaken":
        return harmless(_UNTAKEN[lang].format(n=file.total, names=name))
    name = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    states, kind = _STATES[lang], PurePath(name).suffix.lstrip(".").upper()
    about = [kind, *_size(file, lang), states[file.status]]
    if file.status in {"ready", "stopped"} and file.made is not None:
        about.append(states["meaning"].format(n=file.made[0], total=file.made[1]))
    about.append(_unread_in(file.unread, lang))
    mark = " ({})" if lang == "en" else "（{}）"
    return harmless(name) + mark.format((", " if lang == "en" else "，").join(part for part in about if part))


def _unread_in(unread: UnreadParts, lang: Lang) -> str:
    """Which files within a file were not read; "" where all were."""
    first = unread.names[:_UNREAD_NAMED]
    rest = unread.more + len(unread.names) - len(first)
    files = [harmless(" ".join(one.split())) for one in first] + ([_LISTS[lang][2].format(n=rest)] if rest else [])
    return _STATES[lang]["unread"].format(files=("; " if lang == "en" else "；").join(files)) if files else ""


def _size(file: Attached, lang: Lang) -> list[str]:
    """How many pages it has, or how many of them were read."""
    if not file.total:
        return []
    states, part = _STATES[lang], _PARTS[lang][numbered_as(file.name)]
    if file.status in {"reading", "stopped"}:
        return [states["at"].format(part=part, n=file.pages, total=file.total)]
    return [states["one" if file.total == 1 else "all"].format(part=part, total=file.total)]
