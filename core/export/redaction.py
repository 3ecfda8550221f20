"""Keeps keys out of what leaves the house: those that are known, those that look like one, those that are called so."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Protocol, cast
from urllib.parse import quote, unquote_to_bytes

from pydantic import SecretStr

from core.mcp.journal import BEARER, KEYS, NAMED
from core.messages.message import FUNCTION
from core.runs.call_stages import packed_stages, unpacked
from core.storage.base import FILE_ADDRESS, is_id
from core.storage.sealing import in_address

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.settings import Settings


HIDDEN: Final = "…"
_SHORTEST: Final = 6  # characters: shorter values (a port, "true") are no secrets
_DEEPEST: Final = 50  # lists and objects in each other
_LONGEST_NAME: Final = 100
_STORED: Final = re.compile(rf"{FILE_ADDRESS}[A-Za-z0-9_-]{{22}}(?![\w-])")
_LONGEST_STORED: Final = len(FILE_ADDRESS) + 22
_OF_IDS: Final = {"id", "file_id", "document_id", "conversation_id", "message_id", "run_id"}
_NAMES: Final = re.compile(
    r"(?:.*[-_. ])?(?:api[-_ ]?keys?|access[-_ ]?key(?:[-_ ]?id)?|private[-_ ]?key|secret(?:[-_ ]?key)?"
    r"|[\w-]*token|passw(?:or)?d|passphrase|credentials?|authorization|cookies?)",
    re.IGNORECASE,
)
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_RANDOM: Final = re.compile(r"(?!https?://)(?=\S*\d)(?=\S*[A-Za-z])\S{6,}")
_IN_ADDRESS: Final = re.compile(r"[?&][\w.\[\]-]*$")
_PEM: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_COOKIES: Final = re.compile(r"(?i)(?P<name>\bcookie\s*:\s*)[^\s=;:\"']+=[^\r\n\"']+")
_PLACE: Final = re.compile(r"(?:file:|~[\\/]|/(?!files/)|[A-Za-z]:[\\/]|\\\\)")
_INLINE: Final = re.compile(r"data:[\w.+-]+/[\w.+-]+(?:;[\w.+=-]+)*?;base64,[A-Za-z0-9+/=]{200,}")
_DATA: Final = re.compile(
    r"data:(?P<type>[\w.+-]+/[\w.+-]+)?(?P<more>(?:;[\w.+=\"-]+)*?)(?P<base64>;base64)?,(?P<bytes>.*)", re.DOTALL
)


class Redaction:
    """Takes keys out of texts and values, and the bytes of files that stand in them.

    Args:
        secrets: What is known to be one.
        keeps_files: Leave the bytes of files where they stand.

    Attributes:
        files: What stood in the values themselves: `(media type, bytes, sha256)` by the address that took its place.
    """

    def __init__(self, secrets: Iterable[str] = (), *, keeps_files: bool = False) -> None:
        self._keeps_files = keeps_files
        given = {key.strip() for secret in secrets for key in (secret, secret.partition(" ")[2])}
        whole = {key for key in given if len(key) >= _SHORTEST}
        written = whole | {quote(key, "") for key in whole} | {json.dumps(key)[1:-1] for key in whole}
        self._known = sorted(written, key=len, reverse=True)
        self.files: dict[str, tuple[str, int, str]] = {}

    def said(self, text: str) -> str:
        """What people and models wrote: a word such as "password" is no reason to hide the word after it."""
        return NAMED.sub(_if_random, self._shaped(text))

    def machine(self, text: str) -> str:
        """What a tool was given, or gave: whatever is called a key is one."""
        return NAMED.sub(_if_assigned, self._shaped(text))

    def value(self, value: Any, *, machine: bool = True, depth: int = 0) -> Any:
        """A JSON value, new; what is none becomes text, and so does what lies deeper than any reader goes."""
        if isinstance(value, str):
            return self._text(value, machine=machine)
        if isinstance(value, Mapping | list | tuple | set | frozenset) and depth >= _DEEPEST:
            return self.machine(_written(cast("Any", value)))
        if isinstance(value, Mapping):
            items = [(str(name), one) for name, one in cast("Mapping[Any, Any]", value).items()]
            called = {one for name, one in items if name in {"name", "key"} and isinstance(one, str)}
            if any(map(is_called_secret, called)):  # {"name": "Authorization", "value": …}
                items = [(name, _blank(one) if name == "value" else one) for name, one in items]
            return {self.said(name): self._named(name, one, machine, depth + 1) for name, one in items}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(one, machine=machine, depth=depth + 1) for one in cast("Iterable[Any]", value)]
        return value if value is None or isinstance(value, bool | int | float) else self.machine(str(value))

    def address(self, value: Any) -> Any:
        """Where a file is, of one on this machine its name alone; what stands there itself is named by its hash."""
        if isinstance(value, str) and value.startswith(FILE_ADDRESS) and self._is_own(value.removeprefix(FILE_ADDRESS)):
            return value
        found = _DATA.fullmatch(value) if isinstance(value, str) and value.startswith("data:") else None
        if found is not None and self._keeps_files:
            return value
        if found is None:
            is_place = isinstance(value, str) and _PLACE.match(value)
            return self.value(re.split(r"[\\/]", value.rstrip("\\/"))[-1] if is_place else value)
        return self._noted(found["type"] or "text/plain", _decoded(found["bytes"], encoded=bool(found["base64"])))

    def arguments(self, text: str) -> str:
        """The JSON text of a call's arguments, JSON still; as it was where nothing had to go; else a text."""
        try:
            given = json.loads(text)
        except (ValueError, RecursionError):
            return json.dumps(self.machine(text), ensure_ascii=False)
        kept = self.value(given)
        return text if kept == given else json.dumps(kept, ensure_ascii=False)

    def _shaped(self, text: str) -> str:
        text = text.encode(errors="replace").decode()  # halves of surrogate pairs, which no file can hold
        if self._keeps_files and (inline := _INLINE.findall(text)):
            between = map(self._without_keys, _INLINE.split(text))
            return next(between) + "".join(file + after for file, after in zip(inline, between, strict=True))
        return self._without_keys(_INLINE.sub(lambda found: self.address(found[0]), text))

    def _without_keys(self, text: str) -> str:
        for secret in self._known:
            text = text.replace(secret, HIDDEN)
        text = _COOKIES.sub(_if_assigned, _PEM.sub(HIDDEN, text))
        return BEARER.sub(_if_key, KEYS.sub(_if_key, text))

    def _text(self, text: str, *, machine: bool) -> str:
        if text.startswith("data:") and ";base64," in text[:200]:
            return self.address(text)
        return self.machine(text) if machine else self.said(text)

    def _named(self, name: str, value: Any, machine: bool, depth: int) -> Any:  # noqa: FBT001 - as `value` has them
        if is_called_secret(name):
            return self.value(_blank(value), machine=machine, depth=depth)
        if name in _OF_IDS and isinstance(value, str) and self._is_own(value):
            return value
        if name == "data" and isinstance(value, str) and len(value) > 256 and (raw := _plain_base64(value)) is not None:
            return value if self._keeps_files else self._noted("application/octet-stream", raw)
        return self.value(value, machine=machine, depth=depth)

    def _is_own(self, text: str) -> bool:
        """Whether it is an id of ours, of which one in a thousand looks like a key: without it nothing is found."""
        return is_id(text) and not any(secret in text for secret in self._known)

    def _noted(self, media_type: str, data: bytes) -> str:
        digest = sha256(data).hexdigest()
        self.files.setdefault(f"sha256:{digest}", (media_type, len(data), digest))
        return f"sha256:{digest}"


def cleaned_parts(parts: Iterable[dict[str, Any]], redaction: Redaction) -> list[dict[str, Any]]:
    """The messages of a turn as they are stored, without keys; as they were where nothing had to go."""
    return [_cleaned_message(one, redaction) for one in parts]


def cleaned_event(kind: str, payload: Mapping[str, Any], redaction: Redaction) -> dict[str, Any]:
    """What a row of a run's log holds, without keys; as it was where nothing had to go."""
    if kind == "within":
        inner = dict(payload["event"])
        name = str(inner.pop("kind", ""))
        return {**payload, "event": {"kind": name, **cleaned_event(name, inner, redaction)}}
    cleaned: dict[str, Any] = {}
    for name, value in payload.items():
        if name == "message" and isinstance(value, Mapping):
            cleaned[name] = _cleaned_message(cast("Mapping[str, Any]", value), redaction)
        elif kind == "call_delta" and name == "arguments" and isinstance(value, str):
            cleaned[name] = redaction.arguments(value) if _is_json(value) else redaction.machine(value)
        elif kind == "call_stages" and name == "packed" and isinstance(value, str):
            cleaned[name] = _cleaned_stages(value, redaction)
        else:
            cleaned[name] = redaction.value(value, machine=kind not in {"text_delta", "reasoning_delta"})
    return cleaned


def _cleaned_message(message: Mapping[str, Any], redaction: Redaction) -> dict[str, Any]:
    is_machine = message.get("role") == FUNCTION
    cleaned: dict[str, Any] = {}
    for name, value in message.items():
        if name == "function_call" and isinstance(value, Mapping):
            call = cast("Mapping[str, Any]", value)
            cleaned[name] = {**call, "arguments": redaction.arguments(str(call.get("arguments") or ""))}
        elif name == "extra" and isinstance(value, Mapping):
            own = cast("Mapping[str, Any]", value)
            cleaned[name] = {
                key: redaction.value({key: one}, machine=key != "passages")[key] for key, one in own.items()
            }
        else:
            cleaned[name] = redaction.value(value, machine=is_machine)
    return cleaned


def _cleaned_stages(packed: str, redaction: Redaction) -> str:
    """What a model was sent and said is a text of its own, in which nobody sees a key."""
    kept = unpacked(packed)
    cleaned = redaction.value(kept)
    return packed if cleaned == kept and kept else packed_stages(cleaned)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def is_called_secret(name: str) -> bool:
    """Whether what has this name is a secret."""
    return _NAMES.fullmatch(_HUMP.sub("_", name[:_LONGEST_NAME])) is not None


def _blank(value: Any, depth: int = 0) -> Any:
    """What has the name of a secret; what only describes one, as a JSON Schema does, stays."""
    if isinstance(value, str):
        return HIDDEN if value else value
    if isinstance(value, int) and not isinstance(value, bool):
        return HIDDEN if abs(value) >= 10 ** (_SHORTEST - 1) else value
    if depth >= _DEEPEST:
        return HIDDEN
    if isinstance(value, Mapping):
        own = cast("Mapping[Any, Any]", value)
        is_schema = isinstance(own.get("type"), str) and "value" not in own
        return own if is_schema else {name: _blank(one, depth + 1) for name, one in own.items()}
    if isinstance(value, list | tuple):
        return [_blank(one, depth + 1) for one in cast("list[Any]", value)]
    return value


def _if_key(found: re.Match[str]) -> str:
    """Words that only begin as a key does, or follow "basic", stay; and so does the id in the address of a file."""
    text = found[0]
    stored = _STORED.search(found.string, max(0, found.start() - _LONGEST_STORED), found.end())
    if stored is not None and stored.start() < found.start() and stored.end() == found.end():
        return text
    if (
        not any(sign.isdigit() for sign in text)
        and "://" not in found.string[max(0, found.start() - 3) : found.start()]
    ):
        return text
    return f"{found[1]} {HIDDEN}" if found.re is BEARER else HIDDEN


def _if_assigned(found: re.Match[str]) -> str:
    return found[0] if re.search(r"\bis\b\s*[\"']?$", found["name"]) else found["name"] + HIDDEN


def _if_random(found: re.Match[str]) -> str:
    """A word after "password:" stays; what stands in quotes there or in an address, or is no word, goes."""
    name, value = found["name"], found[0][len(found["name"]) :].strip()
    is_given = re.search(r"[:=]\s*\\*[\"']$", name) or _IN_ADDRESS.search(
        found.string[max(0, found.start() - _LONGEST_NAME) : found.start()]
    )
    is_header = name.lower().startswith("authorization") and len(value.split()) > 1
    return name + HIDDEN if is_given or is_header or _RANDOM.fullmatch(value) else found[0]


def _written(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return HIDDEN


def _decoded(text: str, *, encoded: bool) -> bytes:
    raw = unquote_to_bytes(text)
    try:
        return base64.b64decode(raw) if encoded else raw
    except (ValueError, binascii.Error):
        return raw


def _plain_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return None


class Keeper(Protocol):
    """Who keeps keys of one owner."""

    async def secrets(self) -> list[str]:
        """All that there are."""
        ...


class KnownSecrets:
    """What the installation was started with, where it keeps things, and what one owner typed on the page.

    Args:
        keepers: Those who keep what the owner typed: keys of model services; of tools, services and MCP servers. A
            program that brought agents of its own brought keys with them.
    """

    def __init__(self, settings: Settings, *keepers: Keeper) -> None:
        self._settings = settings
        self._keepers = keepers

    async def __call__(self) -> list[str]:
        """All of them. Raises StorageError."""
        own = own_secrets(self._settings)
        own.append(self._settings.signing_secret())
        own += [str(self._settings.home.absolute()), str(self._settings.weights_dir)]  # which failures may name
        return [*own, *[secret for keeper in self._keepers for secret in await keeper.secrets()]]


def own_secrets(settings: Settings) -> list[str]:
    """The keys that the settings hold."""
    given = [getattr(settings, name) for name in type(settings).model_fields]
    own = [value.get_secret_value() for value in given if isinstance(value, SecretStr)]
    own += in_address(settings.base_url or "") + in_address(settings.openai_base_url or "")
    return own + keys_inside(settings.model_options) + keys_inside(settings.generate_cfg)


def keys_inside(value: Any, *, secret: bool = False) -> list[str]:
    """What is called a key in a value, however deep; a `SecretStr` is one too."""
    if isinstance(value, SecretStr):
        return [value.get_secret_value()]
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return [
            one for name, inner in items for one in keys_inside(inner, secret=secret or is_called_secret(str(name)))
        ]
    if isinstance(value, list | tuple):
        return [one for inner in cast("list[Any]", value) for one in keys_inside(inner, secret=secret)]
    return [value] if secret and isinstance(value, str) else []
