"""What is ready and what is not: the database, the model, the page."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from core.errors import ParlourError

PartName: TypeAlias = Literal["database", "model", "page"]
PartState: TypeAlias = Literal["ready", "loading", "failed"]


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the house.

    Args:
        done, total: Bytes fetched so far and in all while `loading`; 0 where nothing is fetched.
        label: What the page calls it, such as the model's name.
        in_process: The model runs in this process; else it is a service.
        built_in: It is one that Parlour fetches by itself.
        answered: The model has written a reply; before, a service is but set up.
        remedy_key: Names the sentence that says what to do about a failure; its blanks are in `details`.
    """

    state: PartState = "loading"
    done: int = 0
    total: int = 0
    label: str = ""
    in_process: bool = False
    built_in: bool = False
    remedy_key: str = ""
    details: dict[str, Any] | None = None
    answered: bool = False


WAITS: Final = "model_waits"
"""The note that a model counts as ready, whose weights are fetched and loaded once somebody asks."""


class Readiness:
    """The parts and their states. `changed` is called after each change."""

    def __init__(self, changed: Callable[[], None] | None = None) -> None:
        self.parts: dict[PartName, Part] = {"database": Part(), "model": Part(), "page": Part()}
        self.notes: dict[str, dict[str, Any]] = {}
        """What else `/readyz` tells; the page works without it."""
        self.checks: dict[str, Callable[[], dict[str, Any]]] = {}
        """What is looked at each time `/readyz` is asked: each tells whether it is `ready`, and what else is known."""
        self._changed = changed

    def __getitem__(self, name: PartName) -> Part:
        return self.parts[name]

    @property
    def ready(self) -> bool:
        """Whether people can use the page; it works without a model too, and then says what to do."""
        return self._is_ready(check() for check in self.checks.values())

    def mark(self, name: PartName, state: PartState, **changes: Any) -> None:
        """Set a part's state and what else is known; a new state forgets bytes and remedy unless given."""
        fresh = (
            {"done": 0, "total": 0, "remedy_key": "", "details": None, "answered": False}
            if state != self.parts[name].state
            else {}
        )
        self.parts[name] = replace(self.parts[name], state=state, **{**fresh, **changes})
        if self._changed is not None:
            self._changed()

    def note(self, name: str, told: dict[str, Any]) -> None:
        """Tell something besides the parts, such as which sandbox holds on this machine."""
        self.notes[name] = told
        if self._changed is not None:
            self._changed()

    def fail(self, name: PartName, error: ParlourError) -> None:
        """Mark a part as failed, with the remedy that the error names."""
        self.mark(name, "failed", remedy_key=error.words_key, details=dict(error.details))

    def as_dict(self) -> dict[str, Any]:
        """The form of `/readyz`, which is stricter than `ready`: without a model nobody gets an answer here."""
        parts = {name: asdict(part) for name, part in self.parts.items()}
        checks = {name: check() for name, check in self.checks.items()}
        answers = self._is_ready(checks.values()) and self.parts["model"].state != "failed"
        return {"ready": answers, "parts": parts, **checks, **self.notes}

    def _is_ready(self, checked: Iterable[dict[str, Any]]) -> bool:
        parts = self.parts["database"].state == self.parts["page"].state == "ready"
        return parts and all(one["ready"] for one in checked)
