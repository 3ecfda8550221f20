"""English for what is fetched from the web; part of `en.py`."""

from __future__ import annotations

LINKS: dict[str, str] = {
    "error.fetch_failed": "The page could not be fetched",
    "error.fetch_failed.do": "Check the address, or save the page and add it as a file.",
    "error.fetch_bad_address": "This is not the address of a web page or file",
    "error.fetch_bad_address.do": "Give one that begins with https:// and holds no password.",
    "error.fetch_private": "{host} is not on the open internet",
    "error.fetch_private.do": "Only public pages are fetched, from the usual ports. "
    "What is on this computer or your own network can be saved and added as a file.",
    "error.fetch_own": "{host} is Parlour's own address",
    "error.fetch_own.do": "Give the address of another page or service.",
    "error.fetch_unreachable": "{host} cannot be reached",
    "error.fetch_unreachable.do": "Check the address, and that this computer is online.",
    "error.fetch_untrusted": "The certificate of {host} cannot be trusted",
    "error.fetch_untrusted.do": "Check the address; if it is right, save the page in a browser and add it as a file.",
    "error.fetch_refused": "{host} does not give this page out (status {status})",
    "error.fetch_refused.do": "Open it in a browser. A page behind a login can be saved and added as a file.",
    "error.fetch_redirects": "{host} sends from one address to the next",
    "error.fetch_redirects.do": "Open it in a browser, and give the address where it ends.",
    "error.fetch_too_large": "What {host} sends is larger than {limit} MB",
    "error.fetch_too_large.do": "Save it, and add it as a file.",
    "error.fetch_too_slow": "{host} took longer than {seconds} seconds",
    "error.fetch_too_slow.do": "Try again later.",
    "error.fetch_kind": "What {host} sends cannot be read ({kind})",
    "error.fetch_kind.do": "Web pages, PDF, office files, pictures and text can be fetched.",
}
