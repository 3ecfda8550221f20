"""Knowledge that a program gives an assistant with its question: told to the model, in Qwen-Agent's form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from core.errors import SettingsError

if TYPE_CHECKING:
    from core.llm.request import Lang

Knowledge: TypeAlias = "str | Iterable[Mapping[str, Any]]"
"""A text, or what `Memory` answers: a list of `{"url": ..., "text": [...]}`, also as JSON text."""

_ALL: Final[Mapping[Lang, str]] = {"en": "# Knowledge Base\n\n{parts}", "zh": "# 知识库\n\n{parts}"}
_PART: Final[Mapping[Lang, str]] = {
    "en": "## The content from {source}:\n\n```\n{text}\n```",
    "zh": "## 来自 {source} 的内容：\n\n```\n{text}\n```",
}
_FILE: Final[Mapping[Lang, str]] = {"en": "[file]({name})", "zh": "[文件]({name})"}
_UNNAMED: Final[Mapping[Lang, str]] = {"en": "the uploaded documents", "zh": "上传的文档"}
_BETWEEN: Final = "\n\n...\n\n"
_HINT: Final = 'Give a text, or a list such as [{"url": "tea.md", "text": ["Tea is ready after four minutes."]}].'


def told_knowledge(knowledge: Knowledge, lang: Lang) -> str:
    """What the model is told of it; empty where there is none.

    Raises:
        SettingsError: It is neither a text nor a list of documents.
    """
    given: Any = knowledge
    if given is None or isinstance(given, str):
        text = (given or "").strip()
        listed = _documents(_as_json(text), lang)
        parts = listed if listed is not None else [(_UNNAMED[lang], text)] if text else []
    else:
        documents = list(cast("Iterable[Any]", given)) if _is_listing(given) else None
        parts = _documents(documents, lang)
        if parts is None:
            raise SettingsError(f"knowledge cannot be {type(given).__name__}.", hint=_HINT, name="knowledge")
    shown = [_PART[lang].format(source=source, text=text) for source, text in parts]
    return _ALL[lang].format(parts="\n\n".join(shown)) if shown else ""


def _as_json(text: str) -> object:
    """The list of documents that a text may be."""
    if not text.startswith("["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_listing(given: object) -> bool:
    return isinstance(given, Iterable) and not isinstance(given, bytes | Mapping)


def _documents(given: object, lang: Lang) -> list[tuple[str, str]] | None:
    """Sources and texts; None where it is no list of documents."""
    if not isinstance(given, list):
        return None
    parts: list[tuple[str, str]] = []
    for one in cast("list[Any]", given):
        if not isinstance(one, Mapping):
            return None
        document = cast("Mapping[str, Any]", one)
        text: Any = document.get("text")
        if isinstance(text, list | tuple):
            text = _BETWEEN.join(map(str, cast("Iterable[object]", text)))
        if not isinstance(text, str):
            return None
        parts.append((_source(str(document.get("url") or ""), lang), text))
    return parts


def _source(address: str, lang: Lang) -> str:
    name = PurePath(unquote(urlsplit(address).path if "://" in address else address)).name
    return _FILE[lang].format(name=name) if name else _UNNAMED[lang]
