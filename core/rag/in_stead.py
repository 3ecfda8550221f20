"""What a model is told of files for a sense that it lacks: that their text stands for them, or that there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from core.rag.citations import harmless

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.languages import Lang

Sense: TypeAlias = Literal["picture", "sound", "video"]
NoText: TypeAlias = Literal["nothing", "coming", "unread"]
"""Nothing was found in a file, its text is still being made, or nobody reads it."""

_IN_STEAD: Final[Mapping[Lang, Mapping[Sense, str]]] = {
    "en": {
        "picture": "You do not see pictures. Of {names} you get the text that was recognised in it as passages, "
        "and not the picture itself: say so where it matters.",
        "sound": "You do not hear recordings. Of {names} you get a transcript as passages, each line of which begins "
        "with its time (h:mm:ss), and not the sound itself: say so where it matters.",
        "video": "You do not watch videos. Of {names} you get a transcript of its sound as passages, each line of "
        "which begins with its time (h:mm:ss), and neither pictures nor sound: say so where it matters.",
    },
    "zh": {
        "picture": "你看不到图片。{names} 只提供从中识别出的文字（以段落形式），而不是图片本身；必要时请说明。",
        "sound": "你听不到录音。{names} 只提供转写的文字（以段落形式，每行以时间 h:mm:ss 开头），"
        "而不是声音本身；必要时请说明。",
        "video": "你看不到视频。{names} 只提供其声音的转写文字（以段落形式，每行以时间 h:mm:ss 开头），"
        "没有画面和声音；必要时请说明。",
    },
}
_WITHOUT: Final[Mapping[Lang, Mapping[NoText, Mapping[Sense, str]]]] = {
    "en": {
        "nothing": {
            "picture": "[picture {name}: you do not see it, and no text was recognised in it; say so if it matters]",
            "sound": "[recording {name}: you do not hear it, and nothing that is said was found in it; "
            "say so if it matters]",
            "video": "[video {name}: you do not watch it, and nothing that is said was found in it; "
            "say so if it matters]",
        },
        "coming": {
            "picture": "[picture {name}: you do not see it, and its text is still being recognised; say so]",
            "sound": "[recording {name}: you do not hear it, and its transcript is still being made; say so]",
            "video": "[video {name}: you do not watch it, and the transcript of its sound is still being made; say so]",
        },
        "unread": {
            "picture": "[picture {name}: you cannot take it in; say so if it matters]",
            "sound": "[sound {name}: you cannot take it in; say so if it matters]",
            "video": "[video {name}: you cannot take it in; say so if it matters]",
        },
    },
    "zh": {
        "nothing": {
            "picture": "[图片 {name}：你看不到它，其中也没有识别出文字；必要时请说明]",
            "sound": "[录音 {name}：你听不到它，其中也没有听出话语；必要时请说明]",
            "video": "[视频 {name}：你看不到它，其中也没有听出话语；必要时请说明]",
        },
        "coming": {
            "picture": "[图片 {name}：你看不到它，其中的文字仍在识别；请说明]",
            "sound": "[录音 {name}：你听不到它，转写仍在进行；请说明]",
            "video": "[视频 {name}：你看不到它，其声音的转写仍在进行；请说明]",
        },
        "unread": {
            "picture": "[图片 {name}：你无法接收它；必要时请说明]",
            "sound": "[录音 {name}：你无法接收它；必要时请说明]",
            "video": "[视频 {name}：你无法接收它；必要时请说明]",
        },
    },
}
_AROUND_NAMES: Final = [
    told.partition("{name}")[::2] for of in _WITHOUT.values() for by_sense in of.values() for told in by_sense.values()
]
_COMMA: Final[Mapping[Lang, str]] = {"en": ", ", "zh": "、"}


def told_in_stead(files: Sequence[tuple[str, Sense]], lang: Lang) -> str:
    """What a model is told of files whose text it gets in their stead; "" for none.

    Args:
        files: The name of each, and the sense that it lacks for it.
    """
    lines: list[str] = []
    for sense, told in _IN_STEAD[lang].items():
        if names := [_plain(name) for name, of in files if of == sense]:
            lines.append(told.format(names=_COMMA[lang].join(names)))
    return "\n".join(lines)


def told_without(name: str, sense: Sense, stead: NoText, lang: Lang) -> str:
    """What stands in a message for a file of which there is no text, or none yet."""
    return _WITHOUT[lang][stead][sense].format(name=_plain(name))


def is_told_without(text: str) -> bool:
    """Whether a text is what `told_without` makes, and none of a person's question."""
    return any(text.startswith(before) and text.endswith(after) for before, after in _AROUND_NAMES)


def question_in(text: str) -> str:
    """The text of a question, without the lines that stand in it for files."""
    if "[" not in text:  # nearly always
        return text
    return "\n".join(line for line in text.split("\n") if not is_told_without(line))


def _plain(name: str) -> str:
    return harmless(" ".join(name.split()))
