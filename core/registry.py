"""A table of names: each stands for a class that is imported only when somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Generic, TypeVar, cast

from core.errors import SettingsError, UnknownNameError, extra_for, shown

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a class lives: `"package.module:Class"`."""

    where: str


def check_name(name: object, decorator: str) -> None:
    """Raise SettingsError where what is to be known by a name is given none; `decorator` is what asks for it."""
    if not isinstance(name, str) or not name.strip():
        said = f"name of {decorator} must be a text with something in it, not {shown(name)}."
        raise SettingsError(said, hint=f'Write @{decorator}("mine").', name="name")


def check_class(given: object, decorator: str, base: str) -> None:
    """Raise SettingsError where what is to be known by a name is no class; `base` is what such a class derives from."""
    if not isinstance(given, type):
        hint = f'Write @{decorator}("mine") above a class of {base}.'
        raise SettingsError(f"{decorator} takes a class, not {shown(given)}.", hint=hint)


class Registry(Mapping[str, T], Generic[T]):
    """Name to class. Listing the names imports nothing.

    Args:
        kind: What the names stand for, used in messages: "model type", "tool" …
        catalog: The entries that ship with Parlour.
    """

    def __init__(self, kind: str, catalog: Mapping[str, Entry]) -> None:
        self.kind = kind
        self._entries: dict[str, Entry] = dict(catalog)
        self._loaded: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        """Import and return what `name` stands for.

        Raises:
            UnknownNameError: The name is not here. It is a `KeyError` too, so `get` and `in` behave.
            MissingExtraError: A package it needs is not installed.
        """
        if name not in self._loaded:
            if name not in self._entries:
                raise UnknownNameError(self.kind, name, self)
            self._loaded[name] = self._load(name, self._entries[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._entries, *self._loaded]))

    def __len__(self) -> int:
        return len({*self._entries, *self._loaded})

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self._loaded

    def add(self, name: str, item: T) -> None:
        """Put `item` under `name`, over what was there."""
        self._loaded[name] = item

    def remove(self, name: str) -> None:
        """Take a name that was added at run time out again; one from the catalog is itself again."""
        self._loaded.pop(name, None)

    def adder(self, name: str) -> Callable[[T], T]:
        """A decorator that adds what it decorates."""

        def add(item: T) -> T:
            self.add(name, item)
            return item

        return add

    def _load(self, name: str, entry: Entry) -> T:
        module, _, attribute = entry.where.partition(":")
        with extra_for(f"The {self.kind} {name!r}"):
            return cast("T", getattr(import_module(module), attribute))
