"""English: what is said before the page opens, and where a request is refused."""

from __future__ import annotations

ENTRANCE: dict[str, str] = {
    "entrance.title": "Open Parlour",
    "entrance.kept": (
        "Open the address that Parlour printed in the terminal when it started (it ends with ?token=…), or enter that "
        "token here; it is also in the file “token” in Parlour's data folder."
    ),
    "entrance.given": (
        "Enter the token that Parlour was started with (PARLOUR_TOKEN); whoever runs it can tell you, and the terminal "
        "prints it with the address."
    ),
    "entrance.field": "Token",
    "entrance.open": "Open",
    "entrance.wrong": "That is not the token of this Parlour.",
    "entrance.too_often": "Too many wrong tokens; try again in {seconds} seconds.",
    "entrance.needed": "This needs Parlour's token: load the page and follow what it says.",
    "unread.title": "This browser's cookie cannot be read",
    "unread.say": (
        "Your conversations are still there, but the cookie that they belong to has been damaged or comes from another "
        "Parlour; restore it if you have a copy, or start afresh: the old cookie is kept under another name."
    ),
    "unread.anew": "Start afresh",
    "refused.host": (
        "Parlour does not answer to this name. If it is the name of your proxy or network, whoever runs Parlour can "
        "add it with PARLOUR_ALLOWED_HOSTS; everybody who comes by that name then has conversations of their own and "
        "can start no programs."
    ),
    "refused.site": "Parlour answers only its own page; this request came from another site.",
    "refused.own": "Parlour does not answer requests of its own tools.",
    "refused.relayed": (
        "This request came through a proxy or tunnel, and Parlour here belongs to one person at this machine. Let "
        "the proxy pass on its own host name and add that name with PARLOUR_ALLOWED_HOSTS; visitors then have "
        "conversations of their own and can start no programs. docs/proxies.md shows how."
    ),
    "refused.not_here": "There is nothing here.",
    "refused.not_yours": "This belongs to another browser, or to an earlier visit; load the page again.",
    "refused.too_much": "This is more than Parlour takes at once.",
}
