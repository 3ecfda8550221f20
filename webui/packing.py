"""Packing what is sent: the coding that a browser takes, and bytes in it."""

from __future__ import annotations

import gzip
from typing import Any, Literal, TypeAlias, cast

import brotli  # pyright: ignore[reportMissingTypeStubs]

Coding: TypeAlias = Literal["br", "gzip", ""]

_QUALITY = 5  # 11 saves a twelfth more, and takes twenty times as long


def coding_for(accept: str) -> Coding:
    """The best that an `Accept-Encoding` header allows: browsers take `br` over HTTPS and on this machine alone."""
    taken: set[str] = set()
    for part in accept.lower().split(","):
        name, _, quality = part.partition(";")
        if quality.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}:
            taken.add(name.strip())
    if "br" in taken:
        return "br"
    return "gzip" if "gzip" in taken else ""


def packed(body: bytes, coding: Coding) -> bytes:
    """`body` in that coding.

    Args:
        body: What is sent.
        coding: "" leaves it as it is.
    """
    if coding == "br":
        return cast("bytes", cast("Any", brotli).compress(body, quality=_QUALITY))
    return gzip.compress(body, 6, mtime=0) if coding == "gzip" else body
