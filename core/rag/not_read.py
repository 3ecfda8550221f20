"""What stands in a document in place of files within it that were not read: no text of it, so it is never evidence.

It is kept in a form that no language has, and shown in that of the reader.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from core.languages import Lang
    from core.rag.document import Passage

NOT_READ: Final = "Not read: {}. 未读取：{}。"
"""What is kept in place of a file that was not read: in both languages, as indices have it that were made before."""
NOT_READ_BEYOND: Final = "Not read: {rest} more files, beyond the first {most}. 未读取：其余 {rest} 个文件。"
REASONS: Final = {
    "locked": ("it is protected by a password", "有密码保护"),
    "unsupported": ("files of this kind are not read", "不支持这种格式"),
    "large": ("it is too large", "文件太大"),
    "deep": ("it stands too deep within other files", "嵌套太深"),
    "empty": ("it is empty", "文件是空的"),
    "broken": ("it is damaged", "文件已损坏"),
    "words": ("its words cannot be recognised here", "此处无法识别其中的文字"),
}
"""Why a file was not read."""
_SAID: Final[Mapping[Lang, str]] = {"en": "Not read: {}.", "zh": "未读取：{}。"}
_SAID_BEYOND: Final[Mapping[Lang, str]] = {
    "en": "Not read: {rest} more files, beyond the first {most}.",
    "zh": "未读取：前 {most} 个以外的 {rest} 个文件。",
}
_WHY: Final = {NOT_READ.format(*reason): reason for reason in REASONS.values()}
_BEYOND: Final = re.compile(
    re.escape(NOT_READ_BEYOND)
    .replace(r"\{rest\}", r"(\d+)", 1)
    .replace(r"\{rest\}", r"\d+")
    .replace(r"\{most\}", r"(\d+)")
)


def is_not_read(text: str) -> bool:
    """Whether a passage is no text of its document, but says that a file within it was not read."""
    text = text.strip()
    return text in _WHY or _BEYOND.fullmatch(text) is not None


def beyond(text: str) -> int:
    """How many files it says were not read because they were too many; 0 for any other passage."""
    found = _BEYOND.fullmatch(text.strip())
    return int(found[1]) if found else 0


def told(text: str, lang: Lang) -> str:
    """The same in one language; any other text as it is."""
    if (why := _WHY.get(text.strip())) is not None:
        return _SAID[lang].format(why[0 if lang == "en" else 1])
    if found := _BEYOND.fullmatch(text.strip()):
        return _SAID_BEYOND[lang].format(rest=found[1], most=found[2])
    return text


def of_text(passages: Iterable[Passage]) -> list[Passage]:
    """Those of the passages that are text of their documents."""
    return [one for one in passages if not is_not_read(one.text)]
