"""Who speaks, where there are several: a name, and a small picture that is made of it."""

from __future__ import annotations

import re
from hashlib import sha256

from webui.render.html import escaped

_TINTS = 8
_PARTS = re.compile(r"[^\W_]+")
# Scripts that write a word in one sign: one of them says enough.
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")


def face(name: str) -> str:
    """Markup of the small picture: initials, until the style of the page puts a program's own picture in their place.

    The tint follows from the name alone, so that it is the same wherever and whenever the name is shown.
    """
    tint = int(_digest(name)[:8], 16) % _TINTS
    return f'<span class="p-face p-tint-{tint} {face_class(name)}" aria-hidden="true">{escaped(initials(name))}</span>'


def face_class(name: str) -> str:
    """The class by which the style of the page knows this name's picture."""
    return f"p-face-{_digest(name)[:10]}"


def initials(name: str) -> str:
    """One or two signs that stand for a name: "Data Analyst" is DA, "研究员" is 研."""
    parts = _PARTS.findall(name)
    if not parts:
        return name.strip()[:1] or "?"
    if _WIDE.match(parts[0]):
        return str(parts[0][0])
    letters = [str(part[0]) for part in parts[:2] if not _WIDE.match(part)]
    return "".join(letters).upper()[:2]


def speaker(name: str) -> str:
    """The line above what somebody says, where there are several."""
    return f'<p class="p-speaker">{face(name)}<span>{escaped(name)}</span></p>'


def _digest(name: str) -> str:
    return sha256(name.strip().casefold().encode()).hexdigest()
