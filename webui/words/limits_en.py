"""English for what one owner may do at once, and how often; part of `en.py`."""

from __future__ import annotations

LIMITS: dict[str, str] = {
    "reply.queued": "Waiting for your other replies to finish",
    "error.too_many_requests": "That was too much at once",
    "error.too_many_requests.do": "Try again in a moment.",
    "error.queue_full": "{waiting} of your replies are waiting already",
    "error.queue_full.do": "Send it again when one of them is finished, or stop one.",
    "error.quota_full": "Your files take up all the room there is for them ({limit} MB)",
    "error.quota_full.do": "Delete conversations or libraries with files that you no longer need, then add it again.",
    "error.too_many_uploads": "You have added many files within an hour",
    "error.too_many_uploads.do": "Add more in {minutes} min.",
    "error.too_many_visitors": "Too many new visitors from your network at once",
    "error.too_many_visitors.do": "Wait {seconds} s, then reload this page.",
    "error.own_kernel_busy": "The code interpreter is at work in another of your conversations",
    "error.own_kernel_busy.do": "Try again when that is done.",
    "invisible.removed": "{n} invisible characters removed",
    "invisible.removed_one": "1 invisible character removed",
}
