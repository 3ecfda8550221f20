"""The page where somebody lets another program in, or does not. It needs no script, and stands in no frame."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from core.mcp.app_addresses import THIS_MACHINE
from webui.middleware.entrance import plain_page
from webui.panels.sign_in import LOOK, MARK, THEME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webui.words import Words

_LOOK: Final = """
main.door { width: 420px; }
.facts { margin: 20px 0 0; padding: 0; list-style: none; border-top: 1px solid var(--rule); }
.facts li { padding: 10px 0; border-bottom: 1px solid var(--rule); font-size: 14px; overflow-wrap: anywhere; }
.facts b { display: block; font-weight: 400; font-size: 12px; color: var(--ink-3); }
fieldset { margin: 20px 0 0; padding: 0; border: 0; }
legend { padding: 0; font-size: 13px; color: var(--ink-2); }
label.tick { display: flex; gap: 10px; align-items: center; min-height: 44px; margin: 0; font-size: 15px;
  color: var(--ink); }
label.tick input { flex: none; width: 20px; min-height: 20px; height: 20px; margin: 0; accent-color: var(--accent); }
.warn { margin-top: 16px; font-size: 13px; color: var(--wait); }
.both { display: flex; gap: 12px; }
.both button { flex: 1; }
@media (max-width: 420px) { main.door { width: 100vw; } }
"""


@dataclass(frozen=True, slots=True)
class ConsentView:
    """What somebody is asked.

    Args:
        program: What the program calls itself.
        site: The host that describes it; "" where it introduced itself.
        back: Where it is sent back to: a host, or a scheme such as `cursor:`.
        person: Who agrees; "" where people have no accounts.
        host: The name by which the reader came.
        scopes: What it asks for.
        ticket: Proves that this very page was shown to this very person.
    """

    program: str
    site: str
    back: str
    person: str
    host: str
    scopes: Sequence[str]
    ticket: str


def consent_page(asked: ConsentView, words: Words) -> str:
    """The question, with what there is to know."""
    here = asked.back.strip("[]") in THIS_MACHINE
    back = words("consent.here") if here else asked.back
    facts = [(words("consent.back"), back)]
    facts.append((words("consent.who"), asked.site) if asked.site else (words("consent.who"), words("consent.itself")))
    if asked.person:
        facts.append((words("consent.as"), asked.person))
    rows = "".join(f"<li><b>{escape(name)}</b>{escape(value)}</li>" for name, value in facts)
    ticks = "".join(
        f'<label class="tick"><input type="checkbox" name="scope" value="{one}" checked>'
        f"{escape(words(f'consent.may_{one}'))}</label>"
        for one in asked.scopes
    )
    warn = f'<p class="warn">{escape(words("consent.here_warn"))}</p>' if here else ""
    body = (
        f'<ul class="facts">{rows}</ul>{warn}<form method="post"><input type="hidden" name="ticket" '
        f'value="{escape(asked.ticket)}"><fieldset><legend>{escape(words("consent.may"))}</legend>{ticks}</fieldset>'
        f'<div class="both"><button name="answer" value="no" class="other">{escape(words("consent.no"))}</button>'
        f'<button name="answer" value="yes">{escape(words("consent.yes"))}</button></div></form>'
        f"<footer>{escape(words('consent.foot'))}</footer>"
    )
    title = words("consent.title", program=asked.program)
    return _page(title, words("consent.say", program=asked.program, host=asked.host), body, words)


def no_consent_page(title: str, sentence: str, back: str, words: Words) -> str:
    """Why nobody is asked.

    Args:
        back: The address that tells the program; "" where it cannot be told.
    """
    host = urlsplit(back).hostname or f"{urlsplit(back).scheme}:"
    link = f'<a class="other" href="{escape(back)}" rel="noreferrer">{escape(words("consent.tell", host=host))}</a>'
    return _page(title, sentence, link if back else "", words)


def _page(title: str, sentence: str, body: str, words: Words) -> str:
    main = f'<main class="door">{MARK}<h1>{escape(title)}</h1><p>{escape(sentence)}</p>{body}</main>'
    return plain_page(title, main, words, THEME, LOOK + _LOOK)
