"""What a search service is to the tools that use one; what it finds, and its answers without markup."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape
from typing import TYPE_CHECKING, Any, ClassVar, cast

from core.errors import FetchError, SettingsError, ToolError
from core.net.addresses import Reach, open_internet_and_own_network
from core.net.fetcher import FetchLimits
from core.net.service import Answer, ask

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.languages import Lang


LONGEST_SNIPPET = 1200  # characters


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search.

    Args:
        count: How many results at most.
        lang: The language that the one who asks reads.
    """

    query: str
    count: int
    lang: Lang = "en"


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A page that was found.

    Args:
        title: As the service gives it.
        snippet: Plain text.
        date: As the service writes it; "" if it does not.
    """

    title: str
    url: str
    snippet: str
    date: str = ""


@dataclass(frozen=True, slots=True)
class FoundPicture:
    """A picture that was found.

    Args:
        title: As the service gives it.
        page: The address of the page that it stands on.
        thumbnail: The address of a small one; "" where there is none.
        size: Width and height in pixels, 0 where they are not known.
    """

    title: str
    page: str
    image: str
    thumbnail: str = ""
    size: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Account:
    """Whose service is asked, and how.

    Args:
        api_key: For the service; never shown, logged or put into an error.
        base_url: Another address than the service's usual one.
        own_network: Whether that address may be of this machine or its network. True only where a person who owns the
            machine wrote it.
    """

    api_key: str = field(default="", repr=False)
    base_url: str = ""
    own_network: bool = False

    @property
    def reach(self) -> Reach:
        """How far a request may go."""
        return Reach(open_internet_and_own_network) if self.own_network and self.base_url else Reach()

    @classmethod
    def of(cls, cfg: Mapping[str, object]) -> Account:
        """The account that a tool's options name: `api_key`, `base_url`, and `own_network` (false by default).

        Raises:
            SettingsError: No request can carry the key.
        """
        key = str(cfg.get("api_key") or "").strip()
        if not (key.isascii() and key.isprintable()):
            # Nothing may show the key, and the error that sending it ends in would.
            raise SettingsError(
                "The key has a letter that no key can have.", hint="Copy it again from where it was made."
            )
        address = str(cfg.get("base_url") or "").strip().rstrip("/")
        return cls(key, address, bool(cfg.get("own_network", False)))


class SearchService:
    """Finds pages and pictures. A subclass sets the names and writes `pages`, and `pictures` if it can."""

    label: ClassVar[str] = ""
    home: ClassVar[str] = ""
    """Where it is asked; "" for one that has no usual address."""
    needs_key: ClassVar[bool] = False
    get_a_key: ClassVar[str] = ""

    def __init__(self, account: Account) -> None:
        self.account = account

    def check(self) -> None:
        """Whether it can be asked at all.

        Raises:
            SettingsError: A key or an address is missing.
        """
        if self.needs_key and not self.account.api_key:
            raise SettingsError(
                f"Searching with {self.label} needs a key.", hint=f"Get one at {self.get_a_key}, and enter it."
            )
        if not self.address:
            raise SettingsError(
                f"Searching with {self.label} needs the address of a server.", hint="Enter it, as https://…"
            )

    @property
    def address(self) -> str:
        """Where it is asked."""
        return self.account.base_url or self.home

    async def pages(self, wanted: SearchRequest) -> list[SearchHit]:
        """The pages that answer best, the best first.

        Raises:
            ToolError: The service cannot be asked, refuses, or answers with something else.
            FetchError: It cannot be reached.
        """
        raise NotImplementedError

    async def pictures(self, wanted: SearchRequest) -> list[FoundPicture]:
        """Pictures, the best first; errors as in `pages`."""
        del wanted
        raise ToolError(f"{self.label} does not search for pictures.", hint="Choose another search service.")


_LIMITS = FetchLimits(size=4 * 1024 * 1024, seconds=15.0)
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]+")
_LONGEST_ADDRESS = 2048
_NO_KEY = frozenset({401, 403})
_NO_MONEY = frozenset({402, 432, 433})


async def answer_of(label: str, url: str, *, reach: Reach, **question: Any) -> dict[str, Any]:
    """What a service answers to one question, as an object.

    Args:
        label: What to call the service in errors.
        reach: How far the request may go.
        question: `query`, `body` and `headers`, as for `core.net.service.ask`.

    Raises:
        ToolError: It refuses, is busy, or answers with something else. What it says may repeat the key, so it is not
            said again.
        FetchError: It cannot be reached, or may not be.
    """
    answer = await asked(label, url, reach=reach, **question)
    if answer.status != 200:
        raise refusal(label, answer)
    return object_of(label, answer)


async def asked(label: str, url: str, *, reach: Reach, limits: FetchLimits = _LIMITS, **question: Any) -> Answer:
    """An answer of any status; arguments and errors as in `answer_of`."""
    try:
        return await ask(url, limits=limits, reach=reach, **question)
    except FetchError as error:
        if error.words_key != "fetch_private":
            raise
        raise ToolError(
            f"{label} is at an address of this machine or its network, which may not be called.",
            hint="Whoever owns the machine can allow it: own_network.",
        ) from error


def object_of(label: str, answer: Answer) -> dict[str, Any]:
    """What an answer says, as an object.

    Raises:
        ToolError: It says something else.
    """
    try:
        said = answer.json()
    except ValueError as error:
        raise no_answer(label) from error
    if not isinstance(said, dict):
        raise no_answer(label)
    return cast("dict[str, Any]", said)


def refusal(label: str, answer: Answer) -> ToolError:
    """The error for an answer that is none but a status."""
    status = answer.status
    if status in _NO_KEY:
        return ToolError(f"{label} refuses the key (status {status}).", hint="Check the key in the settings.")
    if status in _NO_MONEY:
        return ToolError(f"The account at {label} has no searches left (status {status}).", hint="Check its plan.")
    if status == 429:
        wait = answer.retry_after
        when = f"in {wait:.0f} seconds" if wait and wait <= 3600 else "later"
        return ToolError(f"{label} is asked too often at the moment (status 429).", hint=f"Try again {when}.")
    if status >= 500:
        return ToolError(f"{label} is out of order (status {status}).", hint="Try again later.")
    return ToolError(
        f"{label} refuses the request (status {status}).", hint="Check its address and key in the settings."
    )


def no_answer(label: str) -> ToolError:
    """The error for an answer that cannot be read."""
    return ToolError(f"{label} answered with something that cannot be read.", hint="Check its address.")


def rows(said: Mapping[str, Any], *path: str) -> list[Mapping[str, Any]]:
    """The objects in the list that stands at a path; nothing where there is none."""
    found: Any = said
    for name in path:
        found = cast("Mapping[str, Any]", found).get(name) if isinstance(found, dict) else None
    listed = cast("list[Any]", found) if isinstance(found, list) else []
    return [cast("Mapping[str, Any]", row) for row in listed if isinstance(row, dict)]


def first(said: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """The first object in the list at a path; an empty one where there is none."""
    listed = rows(said, *path)
    return listed[0] if listed else {}


def text_of(value: object, most: int = LONGEST_SNIPPET) -> str:
    """A value as plain text on one line: no markup, no characters that cannot be seen."""
    text = unescape(_TAG.sub("", value)) if isinstance(value, str) else ""
    text = " ".join(_UNSEEN.sub(" ", text[: 4 * most]).split())
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def address_of(value: object) -> str:
    """A web address, or "" for whatever else."""
    text = value.strip() if isinstance(value, str) else ""
    fine = text.lower().startswith(("http://", "https://")) and len(text) <= _LONGEST_ADDRESS
    return text if fine and not any(letter <= " " or letter in '"<>\\`' for letter in text) else ""


def number_of(value: object) -> int:
    """A count of pixels; 0 for whatever else."""
    try:
        return max(0, int(cast("Any", value)))
    except (TypeError, ValueError, OverflowError):
        return 0
