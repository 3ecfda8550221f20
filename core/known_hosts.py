"""Which addresses are a vendor's own: a key from the vendor's usual variable goes to no other."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

# The shared hosts of each region, those of a plan or a private network before them, and those of a workspace.
_DASHSCOPE: Final = re.compile(
    r"(?:[a-z0-9-]+\.)?dashscope\.aliyuncs\.com"
    r"|dashscope-(?:intl|us|finance)\.aliyuncs\.com"
    r"|[a-z0-9_-]+\.[a-z0-9-]+\.maas\.aliyuncs\.com"
)


def is_dashscope(address: str) -> bool:
    """Whether an address is one of DashScope's own; other services of its vendor are not, nor is HTTP in the open."""
    try:
        parts = urlsplit(address)
        usual = parts.scheme == "https" and parts.port in {None, 443}
    except ValueError:
        return False
    return usual and bool(_DASHSCOPE.fullmatch(parts.hostname or ""))
