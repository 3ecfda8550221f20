"""The way from one version of a turn to the next: ‹ 2 / 3 ›."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webui.render.html import escaped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webui.words import Words


def versions_html(message_id: str, versions: Sequence[str], words: Words, *, free: bool) -> str:
    """Markup for a turn's line of actions; nothing where it is the only version.

    Args:
        message_id: The turn that is shown.
        versions: All its versions, the oldest first.
        words: The reader's.
        free: Whether another one can be turned to.
    """
    if len(versions) < 2 or message_id not in versions:
        return ""
    at = versions.index(message_id)
    older = versions[at - 1] if at else ""
    newer = versions[at + 1] if at + 1 < len(versions) else ""
    # The numbers are to be seen; the words around them, and not the stroke between them, are to be heard.
    before, between, after = (_heard(part) for part in words("versions.which", number="|", total="|").split("|"))
    return (
        f'<span class="p-versions p-v-{escaped(message_id)}">{_step("older", older if free else "", words)}'
        f'<span class="p-number">{before}{at + 1}<span class="p-stroke"></span>{between}{len(versions)}{after}</span>'
        f"{_step('newer', newer if free else '', words)}</span>"
    )


def _heard(text: str) -> str:
    return f'<span class="p-sr">{escaped(text)}</span>' if text else ""


def _step(way: str, to: str, words: Words) -> str:
    """A link to a version; where there is none, or it cannot be turned to now, but its sign."""
    if not to:
        return f'<span class="p-dead p-{way}"></span>'
    label = escaped(words(f"versions.{way}"))
    return (
        f'<a class="p-do p-{way}" role="button" href="#do-version-{escaped(to)}" title="{label}">'
        f'<span class="p-sr">{label}</span></a>'
    )
