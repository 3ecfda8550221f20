"""Pictures and recordings in a program's conversation, for a model without the sense: read as documents, and cited.

As on the page: words in pictures are recognised (the extra `ocr`), recordings become transcripts with times, by the
transcriber that the program named.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64decode
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

from core.agents.conversation import append_system
from core.agents.file_library import local_path, read_files
from core.errors import DocumentError, ParlourError, SettingsError
from core.llm.transcription import Transcriber, kind_of_file, recording_in, webvtt
from core.llm.wire.turns import item_name
from core.messages.content import ContentItem
from core.messages.message import USER
from core.rag.in_stead import told_in_stead, told_without
from core.rag.parsers import ocr
from core.rag.sources import is_web_address

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from core.agents.file_library import FileLibrary
    from core.languages import Lang
    from core.llm.base import BaseChatModel
    from core.messages.message import Message
    from core.rag.in_stead import Sense

_log = logging.getLogger(__name__)
_SENSES: Final[Mapping[str, Sense]] = {"image": "picture", "audio": "sound", "video": "video"}
_LARGEST: Final = 64 * 1024 * 1024  # bytes of one that stands in the message itself
_TRANSCRIPT: Final = ".vtt"


def transcriber_of(given: Transcriber | Mapping[str, Any] | None) -> Transcriber | None:
    """What turns recordings into text: a transcriber, or the settings of a service of OpenAI's protocol.

    Raises:
        SettingsError: The settings name no service.
    """
    if given is None or isinstance(given, Transcriber):
        return given
    address = str(given.get("base_url") or "")
    unknown = sorted(set(given) - {"base_url", "api_key", "model"})
    if not address or unknown:
        said = f"hearing knows nothing of {unknown[0]!r}." if unknown else "hearing names no service."
        raise SettingsError(said, hint="Give base_url, model and api_key, or a Transcriber.", name="hearing")
    from core.llm.backends.openai.transcription import ServiceTranscriber

    return ServiceTranscriber(address, str(given.get("api_key") or ""), str(given.get("model") or "whisper-1"))


@dataclass(slots=True)
class Senses:
    """Reads what a model cannot see or hear, each thing once.

    Args:
        library: Takes in what was read; it goes with it.
        hearing: Turns recordings into text, where the program named something: else nothing is sent anywhere.
    """

    library: FileLibrary
    hearing: Transcriber | None = None
    _heard: dict[str, str] = field(default_factory=dict[str, str])  # paths of transcripts, by fingerprints

    def lacks(self, messages: list[Message], model: BaseChatModel) -> bool:
        """Whether the conversation holds something that the model cannot take and that can be read for it."""
        asked = (one for one in messages if one.role == USER and one.is_multimodal())
        return any(self._is_read(item, model) for one in asked for item in one.items)

    async def read(
        self, messages: list[Message], model: BaseChatModel, lang: Lang, follow: Callable[..., None] | None = None
    ) -> list[Message]:
        """The conversation with documents, or words on them, in place of what the model cannot take.

        Args:
            follow: Told how far reading is.
        """
        read: list[tuple[str, Sense]] = []
        given: list[Message] = []
        for message in messages:
            if message.role != USER or not any(self._is_read(item, model) for item in message.items):
                given.append(message)
                continue
            items = [
                await self._in_stead(item, lang, follow, read) if self._is_read(item, model) else item
                for item in message.items
            ]
            given.append(message.model_copy(update={"content": items}))
        told = told_in_stead(list(dict.fromkeys(read)), lang)
        return append_system(given, told) if told else given

    def _is_read(self, item: ContentItem, model: BaseChatModel) -> bool:
        match item.type:
            case "image":
                return not model.support_multimodal_input and ocr.is_here()
            case "audio":
                return not model.support_audio_input and self.hearing is not None
            case "video":
                return not model.support_video_input and self.hearing is not None and isinstance(item.video, str)
            case _:
                return False

    async def _in_stead(
        self, item: ContentItem, lang: Lang, follow: Callable[..., None] | None, read: list[tuple[str, Sense]]
    ) -> ContentItem:
        """What stands for an item: its document; words where there are none in it; itself where it cannot be read."""
        sense = _SENSES[item.type]
        try:
            path, name = await self._as_file(item, sense, lang)
            if not path:
                return ContentItem(text=told_without(name, sense, "nothing", lang))
            library, ids = await read_files(self.library, [path], lang, follow)
            mine = next((one for one in ids if self.library.address(one) == path), None)
            if mine is None:
                return item
            document = await asyncio.to_thread(library.document, mine)
        except (DocumentError, OSError, ValueError) as error:
            _log.info("A %s is not read for the model: %s", sense, type(error).__name__)
            return item
        if document.status == "no_text":
            return ContentItem(text=told_without(document.name, sense, "nothing", lang))
        read.append((document.name, sense))
        return ContentItem(file=path)

    async def _as_file(self, item: ContentItem, sense: Sense, lang: Lang) -> tuple[str, str]:
        """A path or address to read for an item, and what it is called; "" where nothing is said in it.

        Raises:
            ParlourError: Its transcript cannot be made.
            OSError, ValueError: It cannot be read.
        """
        value, name = _address(item), item_name(item)
        if sense == "picture" and (is_web_address(value) or not value.startswith("data:")):
            return value, name
        data = await asyncio.to_thread(_bytes_of, value)
        if sense == "picture":
            called = name or f"picture.{value[11:16].partition(';')[0]}"
            return await asyncio.to_thread(self.library.hold, data, called, called), called
        path = None if value.startswith("data:") else local_path(value)  # from a file a long one goes in parts
        return await self._transcript(data, path, sense, name or sense, lang)

    async def _transcript(self, data: bytes, path: Path | None, sense: Sense, name: str, lang: Lang) -> tuple[str, str]:
        key = sha256(data).hexdigest()
        if key not in self._heard and self.hearing is not None:
            recording = recording_in(data, kind_of_file(data[:64], is_video=sense == "video"), path)
            try:
                cues = await self.hearing.transcribe_timed(recording, _unfollowed, lang)
            except ParlourError as error:
                if error.words_key != "recording_silent":
                    raise
                cues = ()
            text = webvtt(cues).encode() if cues else b""
            held = await asyncio.to_thread(self.library.hold, text, f"a{_TRANSCRIPT}", name) if text else ""
            self._heard[key] = held
        return self._heard.get(key, ""), name


def _unfollowed(heard: float, length: float) -> None:
    """Nobody follows how far a transcript is."""


def _address(item: ContentItem) -> str:
    value: Any = item.value
    if isinstance(value, dict):  # {"data": ..., "format": ...}
        data = str(cast("dict[str, Any]", value).get("data") or "")
        return data if "://" in data[:16] or data.startswith("data:") else f"data:audio/x;base64,{data}"
    return str(value)


def _bytes_of(value: str) -> bytes:
    """The bytes of a file of this machine, or of what stands in a `data:` address. Raises OSError, ValueError."""
    if value.startswith("data:"):
        data = value.partition(",")[2]
        if len(data) > _LARGEST * 4 // 3:
            raise ValueError("too large")
        return b64decode(data)
    if is_web_address(value):
        raise ValueError("recordings on the web are not fetched")
    path = local_path(value)
    if path.stat().st_size > _LARGEST:
        raise ValueError("too large")
    return path.read_bytes()
