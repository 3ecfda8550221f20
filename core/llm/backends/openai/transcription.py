"""Speech as text by a service of the OpenAI protocol: `/audio/transcriptions`."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast
from urllib.parse import urlsplit

import httpx2
import openai

from core.bridge.watchdog import awake_timeout
from core.errors import ModelMisbehavedError, ParlourError
from core.llm.backends.http_clients import CONNECT_SECONDS
from core.llm.backends.openai.service import NO_KEY, VENDOR_ERRORS, Translator, client_pool
from core.llm.backends.openai.variants import public_pool
from core.llm.heard_parts import HeardParts, mark_of
from core.llm.service import service_of
from core.llm.sound_parts import parts_of
from core.llm.transcription import Cue, Heard, Transcriber, cues_of, too_long, unreadable
from core.llm.usage import usage_from
from core.messages.message import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from core.llm.ledger import LedgerCall
    from core.llm.sound_parts import SoundPart
    from core.llm.transcription import Moved, Recording

_SECONDS: Final = 60.0
_SECONDS_HERE: Final = 600.0  # a local server may load its model first
_SECONDS_FILE: Final = 1800.0
_MOST: Final = 25 * 1024 * 1024  # bytes that services of this protocol take at once
_LONGEST: Final = 2_000_000  # characters
_MOST_PARTS: Final = 300  # of a recording: two days
_PARTS: Final = HeardParts()


class ServiceTranscriber(Transcriber):
    """Sends recordings to a service.

    Args:
        address: The service's, ending in `/v1` as a rule.
        key: Sent there and nowhere else; empty where it wants none.
        model: The model's name there.
        public_only: Refuse addresses that are not on the open internet.
    """

    def __init__(self, address: str, key: str, model: str, *, public_only: bool = False) -> None:
        self.model = model
        self.label = f"{model} · {urlsplit(address).hostname or address}"
        self.cfg = {"base_url": address, "api_key": key}
        self.service = service_of(self.cfg, "openai")
        self._address, self._key = address, key or NO_KEY
        self._pool = public_pool() if public_only else client_pool()
        self._translator = Translator(address, key, model)

    async def _heard(self, recording: Recording, line: LedgerCall, moved: Moved | None) -> Heard:
        if moved is None or recording.path is None:
            return await self._heard_at_once(recording, line, moved)
        parts = await asyncio.to_thread(parts_of, recording.path, recording.media_type)
        if len(parts) <= 1 and not (parts and recording.media_type.startswith("video/")):  # of a video its sound goes
            return await self._heard_at_once(await asyncio.to_thread(_loaded, recording, recording.path), line, moved)
        if len(parts) > _MOST_PARTS:
            raise too_large()
        return await self._in_parts(recording, parts, line, moved)

    async def _in_parts(
        self, recording: Recording, parts: Sequence[SoundPart], line: LedgerCall, moved: Moved
    ) -> Heard:
        """One part after the other: it is known how far it is, and no request is larger than a service takes.

        What was heard before a failure is in the account, and is kept for whoever asks again.
        """
        length = parts[-1].end
        heard: list[tuple[SoundPart, Heard]] = []
        marks: list[bytes] = []
        usage: Usage | None = None
        sent = 0.0
        moved(0.0, length)
        for part in parts:
            data = await asyncio.to_thread(part.read)
            marks.append(await asyncio.to_thread(mark_of, (self._address, self._key, self.model), data))
            said = _PARTS.get(marks[-1])
            if said is None:
                if not data:
                    raise unreadable()
                one = replace(
                    recording, data=data, media_type=part.media_type, path=None, seconds=part.end - part.start
                )
                said = await self._heard_at_once(one, line, moved)
                _PARTS.put(marks[-1], said)
                usage, sent = _more(usage, said.usage), sent + one.seconds
                line.usage = await self._usage(Heard("", usage, sent), recording)
            heard.append((part, said))
            moved(part.end, length)
        _PARTS.drop(marks)
        text = " ".join(filter(None, (said.text for _, said in heard)))[:_LONGEST]
        return Heard(text, usage, sent, tuple(cue for part, said in heard for cue in _cues(part, said)))

    async def _heard_at_once(self, recording: Recording, line: LedgerCall, moved: Moved | None) -> Heard:
        limit = (_SECONDS_HERE if self.service.here else _SECONDS) + recording.seconds
        limit = limit if moved is None else _SECONDS_FILE
        try:
            async with awake_timeout(limit):
                client = await self._pool.client(self, ("sound", self._address, self._key), self._client)
                if moved is None:
                    return self._read(await self._asked(client, recording, line, limit))
                try:
                    timed = await self._asked(client, recording, line, limit, "verbose_json")
                except openai.BadRequestError:  # some models tell no times
                    return self._read(await self._asked(client, recording, line, limit))
                return self._read(timed)
        except openai.APIStatusError as error:
            # The vendor's error is left out of the traceback: it may show the key.
            if error.status_code == 413:
                raise (too_long() if moved is None else too_large()) from None
            raise self._translator.translated(error) from None
        except VENDOR_ERRORS as error:
            if isinstance(error.__cause__, ParlourError):  # the guard of addresses said no
                raise error.__cause__ from None
            raise self._translator.translated(error) from error
        finally:
            await self._pool.release(self)

    def _client(self, http: httpx2.AsyncClient) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(base_url=self._address, api_key=self._key, max_retries=0, http_client=http)

    async def _asked(
        self,
        client: openai.AsyncOpenAI,
        recording: Recording,
        line: LedgerCall,
        limit: float,
        form_of_answer: Literal["json", "verbose_json"] = "json",
    ) -> httpx2.Response:
        form = {"model": self.model, "response_format": form_of_answer}
        line.wire.asked(_Noted(f"{self._address.rstrip('/')}/audio/transcriptions", form, recording))
        try:
            answer = await client.audio.transcriptions.with_raw_response.create(
                file=(recording.name, recording.data, recording.media_type),
                model=self.model,
                response_format=form_of_answer,
                timeout=httpx2.Timeout(limit, connect=CONNECT_SECONDS),
            )
        except openai.APIStatusError as error:
            line.wire.answered(error.status_code)
            line.wire.received(error.response.content)
            raise
        response = answer.http_response
        line.wire.answered(response.status_code)
        line.wire.received(response.content)
        return response

    def _read(self, response: httpx2.Response) -> Heard:
        """What the service answered.

        Raises:
            ModelMisbehavedError: It is no transcript.
        """
        if "html" in response.headers.get("content-type", "").lower():
            raise self._translator.html()
        told: Any = None
        with suppress(ValueError):
            told = json.loads(response.content)
        found: dict[str, Any] = cast("dict[str, Any]", told) if isinstance(told, dict) else {}
        text = found.get("text")
        if not isinstance(text, str):
            said = f"{self._translator.host} answered, but not with a transcript."
            raise self._translator.make(ModelMisbehavedError, said, "Check the service's address and the model.")
        usage: Any = found.get("usage")
        counts: dict[str, Any] = cast("dict[str, Any]", usage) if isinstance(usage, dict) else {}
        seconds, cues = _number(counts.get("seconds", found.get("duration"))), cues_of(found.get("segments"))
        return Heard(text[:_LONGEST].strip(), usage_from(counts), seconds, cues)


def _more(usage: Usage | None, more: Usage | None) -> Usage | None:
    return more if usage is None else usage + (more or Usage())


def _cues(part: SoundPart, heard: Heard) -> tuple[Cue, ...]:
    """What was said in a part, with the times of the whole recording."""
    said = heard.cues or ((Cue(0.0, part.end - part.start, heard.text),) if heard.text else ())
    return tuple(Cue(cue.start + part.start, cue.end + part.start, cue.text) for cue in said)


def too_large() -> ParlourError:
    """The error for a recording that is larger than a service takes."""
    hint = (
        "Save it as MP3 or WAV, which go in parts (with the extra voice, others do too), or cut it; "
        "Whisper on this machine takes any size."
    )
    said = f"The recording is larger than {_MOST >> 20} MB."
    return ParlourError(said, hint=hint, key="recording_too_large", limit=_MOST >> 20)


def _loaded(recording: Recording, path: Path) -> Recording:
    if path.stat().st_size > _MOST:
        raise too_large()
    return replace(recording, data=path.read_bytes(), path=None)


def _number(given: object) -> float | None:
    fine = isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < 1e6
    return float(cast("float", given)) if fine else None


class _Noted:
    """The request as an account takes it down: the size of the sound in the place of its bytes."""

    method = "POST"

    def __init__(self, url: str, form: dict[str, str], recording: Recording) -> None:
        self.url = url
        self.headers = {"content-type": "multipart/form-data"}
        sound = f"({len(recording.data)} bytes of {recording.media_type})"
        self.content = json.dumps({**form, "file": f"{recording.name} {sound}"}).encode()
