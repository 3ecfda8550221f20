"""English for what one owner may do at once, and how often; part of `en.py`."""

from __future__ import annotations

LIMITS: dict[str, str] = {
    "reply.queued": "Waiting for your other replies to finish",
    "error.too_many_requests": "That was too much at once",
    "error.too_many_requests.do": "Try again in a moment.",
    "error.queue_full": "{waiting} of your replies are waiting already",
    "error.queue_full.do": "Send it again when one of them is finished, or stop one.",
}
