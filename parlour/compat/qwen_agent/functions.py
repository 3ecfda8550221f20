"""The functions of Qwen-Agent's `utils` that programs use: `utils.utils`, `output_beautify`, `tokenization_qwen`."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import re
import shutil
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from core import ASSISTANT, FUNCTION, SYSTEM, USER, ContentItem, Message
from core.bridge.sync import run
from core.llm.request import has_chinese, merge_generate
from core.llm.tokens import count_tokens
from core.messages.json_text import read_object
from core.net.fetcher import fetch
from core.tools.arguments import extract_code
from core.tools.base import files_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__path__: list[str] = []  # `utils.utils` and so on are this module

__all__ = [
    "count_tokens",
    "encode_image_as_base64",
    "extract_code",
    "extract_files_from_messages",
    "extract_images_from_messages",
    "extract_text_from_message",
    "extract_urls",
    "format_as_text_message",
    "get_basename_from_url",
    "get_file_type",
    "has_chinese_chars",
    "has_chinese_messages",
    "hash_sha256",
    "is_http_url",
    "json_dumps_compact",
    "json_dumps_pretty",
    "json_loads",
    "merge_generate_cfgs",
    "print_traceback",
    "read_text_from_file",
    "save_text_to_file",
    "save_url_to_local_work_dir",
    "typewriter_print",
]
merge_generate_cfgs = merge_generate
json_loads = read_object
_log = logging.getLogger(__name__)
_WEB_ADDRESS = re.compile(r"https?://[^\s<>\"'，。；）)]+")
_KINDS = frozenset({"pdf", "docx", "pptx", "txt", "html", "csv", "tsv", "xlsx", "xls"})


def typewriter_print(messages: Sequence[Any], text: str) -> str:
    """Print what is new of a reply that grows, and return all of it.

    Args:
        messages: The reply so far, as `run` gives it.
        text: What the call before this one returned; "" at first.
    """
    parts = [part for message in messages for part in _told(message)]
    whole = "\n".join(parts)
    print(whole[len(text) :], end="", flush=True)  # noqa: T201 - what it is for
    return whole or text


def _told(message: Any) -> list[str]:
    if message["role"] == FUNCTION:
        return [f"[TOOL_RESPONSE] {message['name']}\n{_text(message)}"]
    if message["role"] != ASSISTANT:
        raise TypeError(f"A reply has no message of the role {message['role']!r}.")
    told = [f"[THINK]\n{message['reasoning_content']}"] if message.get("reasoning_content") else []
    told += [f"[ANSWER]\n{_text(message)}"] if message.get("content") else []
    if call := message.get("function_call"):
        told.append(f"[TOOL_CALL] {call['name']}\n{call['arguments']}")
    return told


def _text(message: Any) -> str:
    return _as_message(message).get_text_content()


def _as_message(message: Message | Mapping[str, Any]) -> Message:
    return message if isinstance(message, Message) else Message(**message)


def has_chinese_chars(data: object) -> bool:
    """Whether there is a Chinese character in what `data` is as text."""
    return has_chinese(f"{data}")


def has_chinese_messages(messages: Sequence[Any], check_roles: Sequence[str] = (SYSTEM, USER)) -> bool:
    """Whether a message of one of these roles has a Chinese character."""
    return any(has_chinese(_text(one)) for one in messages if one["role"] in check_roles)


def is_http_url(path_or_url: str) -> bool:
    """Whether it is an address on the web."""
    return path_or_url.startswith(("http://", "https://"))


def get_basename_from_url(path_or_url: str) -> str:
    """The name of the file that a path or an address ends in."""
    path = urlsplit(path_or_url).path if is_http_url(path_or_url) else path_or_url
    return unquote(path.replace("\\", "/").rstrip("/").rpartition("/")[2])


def get_file_type(path: str) -> str:
    """The ending of a document that can be read, else `unk`; an address without one is a web page."""
    ending = get_basename_from_url(path).rpartition(".")[2].lower()
    if ending in _KINDS:
        return ending
    return "html" if is_http_url(path) or ending == "htm" else "txt" if ending in {"md", "log"} else "unk"


def save_url_to_local_work_dir(url: str, save_dir: str, save_filename: str = "") -> str:
    """Bring a file of this machine, or what is at an address, into a folder; returns its path.

    Raises:
        FetchError: The address cannot be fetched, or is not on the open internet.
        OSError: The file cannot be copied.
    """
    place = Path(save_dir) / (save_filename or get_basename_from_url(url))
    place.parent.mkdir(parents=True, exist_ok=True)
    if is_http_url(url):
        place.write_bytes(run(fetch(url)).data)
    else:
        shutil.copy(url, place)
    return str(place)


def read_text_from_file(path: str) -> str:
    """What a file of text holds."""
    return Path(path).read_text("utf-8", errors="replace")


def save_text_to_file(path: str, text: str) -> None:
    """Write a file of text."""
    Path(path).write_text(text, "utf-8")


def encode_image_as_base64(path: str) -> str:
    """A picture's bytes as text."""
    return base64.b64encode(Path(path).read_bytes()).decode("ascii")


def hash_sha256(text: str) -> str:
    """The SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def extract_urls(text: str) -> list[str]:
    """The addresses on the web in a text."""
    return _WEB_ADDRESS.findall(text)


def extract_text_from_message(msg: Any, add_upload_info: bool = False) -> str:  # noqa: FBT001, FBT002 - its signature
    """A message's text, without the white space around it; with the names of its files where that is wished."""
    names = [f"[file]({get_basename_from_url(one)})" for one in extract_files_from_messages([msg], include_images=True)]
    upload = f"(Uploaded {' '.join(names)}) " if add_upload_info and names else ""
    return upload + _text(msg).strip()


def extract_files_from_messages(messages: Sequence[Any], include_images: bool = False) -> list[str]:  # noqa: FBT001, FBT002 - its signature
    """The addresses of the files in messages, each once; with those of pictures where that is wished."""
    told = [_as_message(one) for one in messages]
    pictures: set[str] = set() if include_images else set(extract_images_from_messages(told))
    return [address for address in files_of(told) if address not in pictures]


def extract_images_from_messages(messages: Sequence[Any]) -> list[str]:
    """The addresses of the pictures in messages, each once."""
    items = [item for one in messages for item in _items(_as_message(one)) if item.image]
    return list(dict.fromkeys(str(item.image) for item in items))


def _items(message: Message) -> list[ContentItem]:
    return message.content if isinstance(message.content, list) else []


def format_as_text_message(msg: Any, add_upload_info: bool = False, lang: str = "auto") -> Message:  # noqa: FBT001, FBT002 - its signature
    """A message of nothing but text."""
    del lang
    return _as_message(msg).model_copy(update={"content": extract_text_from_message(msg, add_upload_info)})


def json_dumps_pretty(obj: object, ensure_ascii: bool = False, indent: int = 2, **kwargs: Any) -> str:  # noqa: FBT001, FBT002 - its signature
    """JSON over several lines."""
    return json.dumps(obj, ensure_ascii=ensure_ascii, indent=indent, **kwargs)


def json_dumps_compact(obj: object, ensure_ascii: bool = False, **kwargs: Any) -> str:  # noqa: FBT001, FBT002 - its signature
    """JSON on one line."""
    return json.dumps(obj, ensure_ascii=ensure_ascii, **kwargs)


def print_traceback(is_error: bool = True) -> None:  # noqa: FBT001, FBT002 - its signature
    """Log the error that is being handled."""
    (_log.error if is_error else _log.warning)(traceback.format_exc())
