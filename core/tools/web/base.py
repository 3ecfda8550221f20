"""What a search service is to the tools that use one, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from core.errors import SettingsError, ToolError
from core.net.addresses import Reach, open_internet_and_own_network

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_SNIPPET = 1200  # characters


@dataclass(frozen=True, slots=True)
class Wanted:
    """A search.

    Args:
        query: In any words.
        count: How many results at most.
        lang: The language that the one who asks reads.
    """

    query: str
    count: int
    lang: Literal["en", "zh"] = "en"


@dataclass(frozen=True, slots=True)
class Found:
    """A page that was found.

    Args:
        title: As the service gives it.
        url: Its address.
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
        image: Its own address.
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
    """Finds pages and pictures. A subclass sets the names and writes `pages`, and `pictures` if it can.

    Args:
        account: Whose.
    """

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

    async def pages(self, wanted: Wanted) -> list[Found]:
        """The pages that answer best, the best first.

        Raises:
            ToolError: The service cannot be asked, refuses, or answers with something else.
            FetchError: It cannot be reached.
        """
        raise NotImplementedError

    async def pictures(self, wanted: Wanted) -> list[FoundPicture]:
        """Pictures, the best first; errors as in `pages`."""
        del wanted
        raise ToolError(f"{self.label} does not search for pictures.", hint="Choose another search service.")
