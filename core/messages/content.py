"""One piece of a message: text, picture, file, sound or video."""

from __future__ import annotations

import mimetypes
from posixpath import splitext
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, PrivateAttr, model_validator

if TYPE_CHECKING:
    from collections.abc import KeysView

TEXT = "text"
"""The kind of a content item: text."""
IMAGE = "image"
"""A picture: an address, a path, or a `data:` address."""
FILE = "file"
"""A file: an address or a path."""
AUDIO = "audio"
"""A recording."""
VIDEO = "video"
"""A film: an address, or a list of pictures."""

ContentType: TypeAlias = Literal["text", "image", "file", "audio", "video"]
ContentValue: TypeAlias = str | dict[str, Any] | list[Any]

STORED = "/files/"
"""What addresses of stored files begin with; their ids follow."""

_KINDS: tuple[ContentType, ...] = ("text", "image", "file", "audio", "video")


class BaseModelCompatibleDict(BaseModel):
    """A pydantic model that also reads like a dict; dumps leave `None` out."""

    model_config = ConfigDict(extra="ignore")

    if TYPE_CHECKING:  # each class below writes its own `__init__`, for positional arguments

        def __init__(self, **data: Any) -> None: ...

    def __getitem__(self, item: str) -> Any:
        if item not in type(self).model_fields:
            raise KeyError(item)
        return getattr(self, item)

    def __setitem__(self, item: str, value: Any) -> None:
        setattr(self, item, value)

    def __contains__(self, item: object) -> bool:
        return item in type(self).model_fields and getattr(self, str(item)) is not None

    def get(self, key: str, default: Any = None) -> Any:
        """The field named `key`, or `default` where it is unknown or empty."""
        return (getattr(self, key) if key in type(self).model_fields else None) or default

    def keys(self) -> KeysView[str]:
        """The names of the fields that are set."""
        return self.model_dump().keys()

    def model_dump(self, **kwargs: Any) -> dict[str, Any]:
        """The fields as a dict, without `None` unless `exclude_none=False`."""
        kwargs.setdefault("exclude_none", True)
        return super().model_dump(**kwargs)

    def model_dump_json(self, **kwargs: Any) -> str:
        """The fields as JSON text, without `None` unless `exclude_none=False`."""
        kwargs.setdefault("exclude_none", True)
        return super().model_dump_json(**kwargs)

    def __str__(self) -> str:
        return str(self.model_dump())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model_dump()})"


class ContentItem(BaseModelCompatibleDict):
    """Exactly one of `text`, `image`, `file`, `audio`, `video`.

    Strings other than text are a path, a URL, a `data:` URI or the address of a stored file.
    Audio may be a dict (`{"data": ..., "format": ...}`), video a list of frames.

    Raises:
        ValidationError: None is given, or more than one.
    """

    text: str | None = None
    image: str | None = None
    file: str | None = None
    audio: str | dict[str, Any] | None = None
    video: str | list[Any] | None = None

    _kind: ContentType = PrivateAttr(default="text")

    def __init__(
        self,
        text: str | None = None,
        image: str | None = None,
        file: str | None = None,
        audio: str | dict[str, Any] | None = None,
        video: str | list[Any] | None = None,
        **_: Any,
    ) -> None:
        if type(text) is str and image is file is audio is video is None and type(self) is ContentItem:
            self._hold(text)
        else:
            super().__init__(text=text, image=image, file=file, audio=audio, video=video)

    def _hold(self, text: str) -> None:
        """What validation would leave of a text; conversations are mostly that, and are made anew for every call."""
        put = object.__setattr__
        fields: dict[str, Any] = dict.fromkeys(_KINDS)
        put(self, "__pydantic_fields_set__", set(fields))
        put(self, "__pydantic_extra__", None)
        put(self, "__pydantic_private__", {"_kind": "text"})
        fields["text"] = text
        put(self, "__dict__", fields)

    @model_validator(mode="after")
    def check_exclusivity(self) -> ContentItem:
        """One field is given; an empty text counts as given, an empty address does not."""
        given: list[ContentType] = [kind for kind in _KINDS if _is_given(kind, getattr(self, kind))]
        if len(given) != 1:
            found = ", ".join(given) or "none"
            raise ValueError(f"Exactly one of text, image, file, audio and video must be provided; found {found}.")
        self._kind = given[0]
        return self

    @property
    def type(self) -> ContentType:
        """Which of the five it is."""
        private: dict[str, Any] = self.__pydantic_private__ or {}  # as `self._kind`, without pydantic's long way round
        return private["_kind"]

    @property
    def value(self) -> ContentValue:
        """What the field holds."""
        return getattr(self, self._kind)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in _KINDS and _is_given(name, value):
            self._kind = name

    def get_type_and_value(self) -> tuple[ContentType, ContentValue]:
        """The pair `(type, value)`."""
        return self._kind, self.value

    def is_media_content(self) -> bool:
        """Whether it is a picture, sound or video."""
        return self._kind in {"image", "audio", "video"}

    def get_file_extension(self) -> str | None:
        """The extension in lower case without the dot; `None` for text or where there is none.

        A URL's query does not count, and a `data:` URI answers by its media type.
        """
        if self._kind == "text" or not isinstance(self.value, str):
            return None
        return _extension(self.value)


def _is_given(kind: str, value: object) -> bool:
    return value is not None if kind == "text" else bool(value)


def _extension(address: str) -> str | None:
    if address.startswith("data:"):
        media_type = address[5:].partition(",")[0].partition(";")[0]
        guess = mimetypes.guess_extension(media_type) or ""
    else:
        is_url = "://" in address
        guess = splitext((urlsplit(address).path if is_url else address).replace("\\", "/"))[1]
    return guess[1:].lower() or None
