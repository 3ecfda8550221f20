"""Addresses in a question: a page that somebody asks to be read is fetched, and then it is a file like any other.

Only what says so plainly is fetched: a message that is nothing but addresses, or one that begins with "read",
"summarise" or the like and then names one. An address within other text is only text.
"""

from __future__ import annotations

import re

_MOST = 3
_LONGEST = 4000  # letters; whoever writes more does not just name a page
_URL = r"https?://[^\s<>\"“”，。；！？、（）《》【】]+"
_ALONE = re.compile(rf"\s*{_URL}(?:\s+{_URL})*\s*", re.IGNORECASE)
_ASKED = re.compile(
    r"\W*(?:(?:please|can you|could you|请|麻烦|帮我|你)\W*)*"
    r"(?:(?:read|summari[sz]e|open|fetch|load|look at|translate)(?![a-z-])|"
    r"阅读|读|总结|概括|归纳|看|打开|获取|翻译)"
    rf"\W*(?:\w+\W+){{0,4}}?\w{{0,12}}?{_URL}",
    re.IGNORECASE,
)
_URLS = re.compile(_URL, re.IGNORECASE)
_AFTER = ".,;:!?)]}'*_"  # what belongs to the sentence, not to the address


def pages_to_read(text: str) -> list[str]:
    """The addresses that a message asks to be read, three at most.

    Args:
        text: As it stands in the composer.
    """
    if len(text) > _LONGEST or not (_ALONE.fullmatch(text) or _ASKED.match(text)):
        return []
    found = (_plain(address) for address in _URLS.findall(text))
    return list(dict.fromkeys(found))[:_MOST]


def _plain(address: str) -> str:
    end = address.rstrip(_AFTER)
    # A bracket that the address itself opened is its own, as in many an encyclopedia.
    return f"{end})" if end.count("(") > end.count(")") and address[len(end) :].startswith(")") else end
