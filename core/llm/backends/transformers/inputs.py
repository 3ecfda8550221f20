"""A request as Transformers takes it: prompt text, opened pictures, and sampling."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from dataclasses import dataclass, field
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote_to_bytes

from core.errors import FetchError, ModelMisbehavedError, ModelRefusedError, SettingsError
from core.llm.media import check_pixels, data_uri, unreadable
from core.llm.request import OUR_KEYS
from core.llm.wire.turns import item_name
from core.messages.content import ContentItem
from core.net.addresses import Reach
from core.net.fetcher import FetchLimits, fetch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from core.llm.backends.local import Json
    from core.llm.backends.transformers.load import Loaded

_CHATML: Final = (
    "{% for turn in messages %}<|im_start|>{{ turn.role }}\n{{ turn.content }}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant{{ '\\n' }}"  # a line break at the end of a template is dropped
)
_PLAIN: Final = (
    "{% for turn in messages %}{{ names[turn.role] }}{{ turn.content }}\n\n{% endfor %}{{ names.assistant.strip() }}"
)
_SPEAKERS: Final = {"system": "", "user": "User: ", "assistant": "Assistant: "}
PLAIN_STOP: Final = ("\n\nUser:",)
"""The stop word for a model that was never taught to take turns."""


def prompt_text(loaded: Loaded, turns: Sequence[Json], extra: Mapping[str, Any]) -> str:
    """The prompt. A last turn of the assistant's is one to be continued.

    Raises:
        ModelMisbehavedError: The model's own chat template fails.
    """
    turns = list(turns)
    begun = _text(turns.pop()["content"]) if turns and turns[-1]["role"] == "assistant" else ""
    renderer = loaded.processor if loaded.processor is not None else loaded.tokenizer
    if not has_template(loaded):
        marked = "<|im_end|>" in loaded.tokenizer.get_vocab()
        return _plain(loaded, turns, _CHATML if marked else _PLAIN) + begun
    error_of_templates: type[Exception] = import_module("jinja2").TemplateError
    options: dict[str, Any] = {"tokenize": False, "add_generation_prompt": True, **extra}
    try:
        return renderer.apply_chat_template(turns, **options) + begun
    except error_of_templates:
        pass  # many templates have no system turn
    try:
        return renderer.apply_chat_template(_without_system(turns), **options) + begun
    except error_of_templates as error:
        message = f"The model's chat template cannot render the conversation: {error}"
        raise ModelMisbehavedError(error, message=message) from error


def has_template(loaded: Loaded) -> bool:
    """Whether the model brings a chat template."""
    return bool(getattr(loaded.processor, "chat_template", None) or loaded.tokenizer.chat_template)


def _plain(loaded: Loaded, turns: Sequence[Json], template: str) -> str:
    written = [{"role": turn["role"], "content": _text(turn["content"])} for turn in turns]
    return loaded.tokenizer.apply_chat_template(written, chat_template=template, tokenize=False, names=_SPEAKERS)


def _without_system(turns: list[Json]) -> list[Json]:
    """The turns, the system's text moved to the front of the first question."""
    if len(turns) < 2 or turns[0]["role"] != "system":
        return turns
    system, first, *rest = turns
    before, after = system["content"], first["content"]
    both = f"{before}\n\n{after}" if isinstance(after, str) else [*before, {"type": "text", "text": "\n\n"}, *after]
    return [{**first, "content": both}, *rest]


def _text(content: str | list[Json]) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text") or "") for part in content)


_LIMITS: Final = FetchLimits(size=64 * 1024 * 1024, seconds=30.0, types=("image/", "application/octet-stream"))
_OPEN: Final = Reach()


async def opened_pictures(turns: Iterable[Json], *, reach: Reach = _OPEN) -> list[Any]:
    """Every picture of the turns, in order, as PIL images in RGB.

    Args:
        reach: Where pictures may be fetched from, redirects included.

    Raises:
        ModelRefusedError: One cannot be fetched, is no picture, or is larger than 64 MB (`picture_unreadable`).
    """
    addresses = [
        str(part["image"])
        for turn in turns
        if not isinstance(turn["content"], str)
        for part in turn["content"]
        if part["type"] == "image"
    ]
    return [await _open_picture(address, reach) for address in addresses]


async def _open_picture(address: str, reach: Reach) -> Any:
    name = item_name(ContentItem(image=address))
    if address.startswith(("http://", "https://")):
        raw = await _fetched(address, name, reach)
    else:
        uri = address if address.startswith("data:") else await asyncio.to_thread(data_uri, address)
        raw = _decoded(uri)
    return await asyncio.to_thread(_image, raw, name)


def _decoded(uri: str) -> bytes:
    head, _, body = uri.partition(",")
    try:
        return b64decode(body) if head.endswith(";base64") else unquote_to_bytes(body)
    except ValueError as error:
        raise unreadable("", "is damaged") from error


async def _fetched(address: str, name: str, reach: Reach) -> bytes:
    try:
        return (await fetch(address, limits=_LIMITS, reach=reach)).data
    except FetchError as error:
        if error.words_key == "fetch_too_large":
            raise unreadable(name, "is larger than 64 MB") from error
        raise unreadable(name, f"could not be fetched: {str(error).rstrip('.')}") from error


def _image(raw: bytes, name: str) -> Any:
    """The picture, turned by its EXIF orientation, on white where it is transparent."""
    from PIL import Image, ImageOps

    try:
        with Image.open(BytesIO(raw)) as opened:
            check_pixels(name, opened)
            picture = ImageOps.exif_transpose(opened)
            if not picture.has_transparency_data:
                return picture.convert("RGB")
            seen = picture.convert("RGBA")
            whole = Image.new("RGB", seen.size, "white")
            whole.paste(seen, mask=seen.getchannel("A"))
            return whole
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise unreadable(name, "is none, or is damaged") from error


_LENGTHS: Final = ("max_tokens", "max_completion_tokens", "max_new_tokens")
_NAMES: Final = {"repeat_penalty": "repetition_penalty"}
# Services' settings that have no effect with these values, and that Transformers cannot do with any other.
_NEUTRAL: Final[Mapping[str, tuple[Any, ...]]] = {
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "n": (1,),
    "response_format": ({"type": "text"},),
    "logprobs": (False,),
}
_FOR_SERVICES: Final = frozenset({"stream", "stream_options", "user", "store", "metadata", "service_tier"})


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a reply is sampled.

    Args:
        arguments: For `generate`.
        stop: Stop words.
        max_tokens: The longest reply; `None` leaves it to the context.
        seed: The same seed gives the same reply.
        template: Arguments for the chat template.
    """

    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    seed: int | None = None
    template: Mapping[str, Any] = field(default_factory=dict[str, Any])


def sampling(generate: Mapping[str, Any]) -> Sampling:
    """`generate_cfg`, in the names of services, as what Transformers takes.

    Raises:
        SettingsError: A value has the wrong type; the message names the field.
        ModelRefusedError: Transformers cannot do what a setting asks for.
    """
    given = {key: value for key, value in generate.items() if key not in OUR_KEYS | _FOR_SERVICES}
    given.update(_dict("extra_body", given.pop("extra_body", None)))
    given = {_NAMES.get(key, key): value for key, value in given.items() if value is not None}
    for key, values in _NEUTRAL.items():
        if key in given and (value := given.pop(key)) not in values:
            raise ModelRefusedError(
                code="400",
                message=f"A Transformers model cannot do {key}={value!r}.",
                hint="Leave it out, or use a GGUF file or a service that can.",
                sent=False,
            )
    template = _dict("chat_template_kwargs", given.pop("chat_template_kwargs", None))
    if "enable_thinking" in given:
        template = {"enable_thinking": given.pop("enable_thinking"), **template}
    lengths = [_integer(key, given.pop(key), least=1) for key in _LENGTHS if key in given]
    seed = _integer("seed", given.pop("seed")) if "seed" in given else None
    stop = _words(given.pop("stop", ()))
    return Sampling(_drawn(given), stop, min(lengths, default=None), seed, template)


def _drawn(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments for greedy decoding or sampling: temperature 0 means greedy."""
    for key in ("temperature", "top_p", "repetition_penalty"):
        if key in given:
            given[key] = _number(key, given[key])
    if given.get("temperature") == 0 or given.get("do_sample") is False:
        dropped = {"temperature", "top_p", "top_k", "min_p", "do_sample"}
        return {"do_sample": False, **{key: value for key, value in given.items() if key not in dropped}}
    if given.keys() & {"temperature", "top_p", "top_k", "min_p"}:
        given.setdefault("do_sample", True)
    return given


def _number(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise SettingsError(f"The setting {key!r} must be a number of at least 0, not {value!r}.")
    return float(value)


def _integer(key: str, value: object, *, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SettingsError(f"The setting {key!r} must be a whole number of at least {least}, not {value!r}.")
    return value


def _words(stop: object) -> tuple[str, ...]:
    words: Any = [stop] if isinstance(stop, str) else stop or []
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in cast("list[Any]", words)):
        raise SettingsError(f"The setting 'stop' must be words, not {stop!r}.")
    return tuple(word for word in cast("list[str]", words) if word)


def _dict(key: str, value: object) -> dict[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise SettingsError(f"The setting {key!r} must be a dict, not {value!r}.")
    return dict(cast("dict[str, Any]", value or {}))
