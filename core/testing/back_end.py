"""A back end as the contract suite sees it: how to open it, and what it cannot do by its nature."""

from __future__ import annotations

from collections.abc import Callable, Mapping  # noqa: TC003 - a data class keeps its types
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from core.llm.open_model import get_chat_model

if TYPE_CHECKING:
    from core.llm.base import BaseChatModel
    from core.testing.model_server import ModelServer

Settings: TypeAlias = dict[str, Any]

WORD_FOR_WORD: Final[Mapping[str, str]] = {
    "reasoning": "What is six times seven? Answer as in this example: "
    "<think>Two and three are five.</think> The answer is 5.",
    "three_calls": "Call weather for Oslo, then for Beijing, then for Rome. Write three <tool_call> blocks.",
}
"""Questions for small models: they think, and make more than one call, where they are told how."""


def opened_by_settings(settings: Mapping[str, Any]) -> BaseChatModel:
    """A model of the catalog."""
    return get_chat_model(settings)


@dataclass(frozen=True, slots=True)
class BackEnd:
    """One row of the table.

    Args:
        name: What a failing test is called after.
        settings: The dict for `get_chat_model`, given a server of the test kit; a back end that runs here ignores it.
        scripted: Whether that server decides what the model says. Where it does not, the promises are asked of a real
            model: that there is text, not which.
        native: Added to `generate_cfg` so that calls are the service's own.
        leaves_out: Promises that it cannot keep by its nature, each with the reason.
        questions: What to ask for a promise, where a real model needs other words than the suite's.
        picture: A piece of text that a request has when a picture is in it; by default the start of its base64.
        open: From the settings to the model; for a model that all tests share.
        closes: Whether a test closes the model it opened.
        marks: Names of pytest marks, "slow" for one.
        counts_thoughts: Whether the service tells how many tokens went into thinking.
    """

    name: str
    settings: Callable[[ModelServer], Settings]
    scripted: bool = True
    native: Mapping[str, Any] = field(default_factory=lambda: {"use_raw_api": True})
    leaves_out: Mapping[str, str] = field(default_factory=dict[str, str])
    questions: Mapping[str, str] = field(default_factory=dict[str, str])
    picture: str = "iVBORw0KGgo"
    open: Callable[[Settings], BaseChatModel] = opened_by_settings
    closes: bool = True
    marks: tuple[str, ...] = ()
    counts_thoughts: bool = True
