"""What Parlour acknowledged in a data folder, as its user would remember it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Ledger:
    """What was acknowledged so far.

    Args:
        messages: Tags of questions, and where each is: owner and conversation.
        begun: Tags of questions that were sent; whether they came is not known.
        replies: Whole replies by the id of their message: owner, conversation, and what they said.
        files: Uploads by id: owner and SHA-256.
        documents: Documents by id: owner, conversation, and a word that stands in no other.
        asked: Runs that wait for their user: conversation by the tag of the call.
        deleted: Conversations that are gone.
        deleting: Conversations that may be gone.
    """

    messages: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    begun: list[str] = field(default_factory=list[str])
    replies: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    files: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    documents: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    asked: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    deleted: list[str] = field(default_factory=list[str])
    deleting: list[str] = field(default_factory=list[str])

    def note(self, told: dict[str, Any]) -> None:
        """One acknowledgement, as a life tells it."""
        match told.get("ack"):
            case "begun" | "deleted" | "deleting" as what:
                getattr(self, what).append(told["id"])
            case "messages" | "replies" | "files" | "documents" | "asked" as what:
                getattr(self, what)[told["id"]] = told["of"]
            case "decided":
                self.asked.pop(told["id"], None)
            case _:
                pass

    def as_dict(self) -> dict[str, Any]:
        """As a life is given it."""
        return asdict(self)
