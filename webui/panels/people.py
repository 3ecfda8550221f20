"""The pages about people: one's own account, and who has one. They need no script."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any, Final

from core.people.passwords import SHORTEST
from core.people.roles import RIGHTS, may_set
from core.storage.people import ROLES, TERMINAL
from core.storage.use import Use
from webui.middleware.entrance import plain_page
from webui.panels.groups import groups_html, limit_fields
from webui.panels.sign_in import LOOK, PASSKEYS, THEME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.storage.groups import Group
    from core.storage.people import Act, Invitation, Person, Role, Session
    from webui.words import Words

_STYLE: Final = (
    LOOK
    + """
body { display: block; }
main.wide { width: auto; max-width: 840px; margin: 0 auto; padding: 24px; overflow-wrap: anywhere; }
.when, .yes { white-space: nowrap; }
header { display: flex; align-items: baseline; gap: 16px; border-bottom: 1px solid var(--rule); padding-bottom: 16px;
  margin-bottom: 24px; }
header h1 { font-size: 19px; margin: 0; }
header a { margin-left: auto; font-size: 14px; }
h2 { font-size: 19px; margin: 32px 0 4px; }
table { width: 100%; border-collapse: collapse; font-size: 14px; margin-top: 8px; }
th { text-align: left; font-weight: 400; font-size: 12px; color: var(--ink-2); padding: 6px 12px 6px 0;
  border-bottom: 1.5px solid var(--ink); }
td { padding: 8px 12px 8px 0; border-bottom: 1px solid var(--rule); vertical-align: middle; }
td:last-child, th:last-child { padding-right: 0; }
td small { display: block; font-size: 12px; color: var(--ink-3); }
.right { text-align: right; font-variant-numeric: tabular-nums; }
td form, .row form { display: inline-flex; align-items: center; gap: 6px; }
td select, td button, td input, .row button, .row select { display: inline-block; width: auto; min-height: 40px;
  margin: 0; padding: 4px 10px; font-size: 13px; }
td button, button.plain { background: transparent; color: var(--ink); border: 1px solid var(--edge); }
button.danger { color: var(--bad); border-color: var(--bad); }
.row { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; margin-top: 12px; }
tr:has(+ tr.more) td { border-bottom: 0; padding-bottom: 0; }
tr.more td { padding-top: 0; }
td label { margin: 0; display: inline-flex; align-items: center; gap: 8px; }
td form { flex-wrap: wrap; align-items: end; }
td { overflow-wrap: anywhere; }
td form, td select, td input { max-width: 100%; }
details div { max-width: 640px; }
summary { cursor: pointer; padding: 8px 0; font-size: 13px; color: var(--ink-2); }
details div { display: flex; flex-wrap: wrap; gap: 8px; padding: 8px 0; }
details .groups { display: grid; grid-template-columns: minmax(0, 1fr) auto auto; align-items: center;
  max-width: 520px; }
.groups form, .groups label { display: contents; }
.groups span { justify-self: start; }
.made { border: 1px solid var(--accent); border-radius: 10px; padding: 16px; background: var(--sheet);
  margin-top: 16px; overflow-wrap: anywhere; }
.made code { font-size: 14px; }
.form { max-width: 360px; }
.form button { margin-top: 16px; }
.yes { color: var(--accent); }
@media (max-width: 839px) {
  main.wide { padding: 16px; }
  table.people, .people tbody, .people tr, .people td { display: block; }
  .people thead { display: none; }
  .people tr td { border: 0; padding: 4px 0; }
  .people tr { border-bottom: 1px solid var(--rule); padding: 8px 0; }
  .people tr:has(+ tr.more) { border-bottom: 0; padding-bottom: 0; }
  .people .right { text-align: left; }
}
"""
)
_MIB: Final = 1024 * 1024
_FORMS: Final = (("html", "HTML"), ("pdf", "PDF"), ("md", "Markdown"), ("json", "JSON"))


@dataclass(frozen=True, slots=True)
class ShownPeople:
    """What the page of the people shows.

    Args:
        me: Who looks at it.
        used: Their sums of this month, by id: sums, never words.
        link: A one-time link that was just made, shown once.
        problem: What could not be done.
        said: What was done.
    """

    me: Person
    people: Sequence[Person] = ()
    used: Mapping[str, Use] = field(default_factory=dict[str, Use])
    invitations: Sequence[Invitation] = ()
    acts: Sequence[Act] = ()
    groups: Sequence[Group] = ()
    link: str = ""
    problem: str = ""
    said: str = ""


def people_page(shown: ShownPeople, words: Words) -> str:
    """Who has an account, with which role; links that were made; what roles may do; what administrators did."""
    rows = "".join(_person_row(one, shown, words) for one in shown.people)
    heads = "".join(f"<th>{escape(words(f'people.{key}'))}</th>" for key in ("name", "role", "month", "seen"))
    body = (
        f"<p>{escape(words('people.counted', n=len(shown.people)))}</p>{told_html(shown.problem, shown.said)}"
        f"{_made(shown.link, words)}"
        f'<table class="people"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'
        f"<p class='note'>{escape(words('people.never_read'))}</p>"
        f"<h2>{escape(words('people.invite'))}</h2>{_invite(shown, words)}{_invitations(shown, words)}"
        f"<h2>{escape(words('groups.title'))}</h2>{groups_html(shown.groups, shown.people, words)}"
        f"<h2>{escape(words('people.roles'))}</h2>{_rights(words)}"
        f"<h2>{escape(words('people.audit'))}</h2>{_acts(shown.acts, words)}"
    )
    return house_page(words("people.title"), body, words)


@dataclass(frozen=True, slots=True)
class ShownAccount:
    """What the page of one's own account shows.

    Args:
        session: The one that looks at it.
        keeps: They look after the house.
        shares: There are groups that they may share with, or something is shared with them.
        passkeys: What is kept of their passkeys, by id.
    """

    me: Person
    session: str
    sessions: Sequence[Session] = ()
    problem: str = ""
    said: str = ""
    keeps: bool = False
    shares: bool = False
    passkeys: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, dict[str, Any]])


def account_page(shown: ShownAccount, words: Words) -> str:
    """Name and role, the browsers that are signed in, the password, and the way out."""
    rows = "".join(_session_row(one, shown, words) for one in shown.sessions)
    links = [("./lending", "lending.title")] if shown.shares else []
    links += [("./people", "people.title")] if shown.keeps else []
    anchors = " ".join(f'<a href="{to}">{escape(words(key))}</a>' for to, key in links)
    link = f'<p class="row">{anchors}</p>' if anchors else ""
    old = [("old", "current-password")] if shown.me.password else []
    fields = "".join(
        f'<label>{escape(words(f"account.{name}"))}<input type="password" name="{name}" required autocomplete="{how}">'
        "</label>"
        for name, how in (*old, ("new", "new-password"))
    )
    change, note, do = ("change", "how", "change_do") if shown.me.password else ("choose", "choose_how", "choose_do")
    body = (
        f"<p>{escape(words('account.signed_in_as', name=shown.me.name, role=words(f'role.{shown.me.role}')))}</p>"
        f"{told_html(shown.problem, shown.said)}{link}"
        f'<form class="row" method="post" action="./sign-out"><button class="plain">{escape(words("account.sign_out"))}'
        f"</button></form>"
        f"<h2>{escape(words('account.browsers'))}</h2><table><tbody>{rows}</tbody></table>"
        f"<h2>{escape(words(f'account.{change}'))}</h2>"
        f'<form class="form" method="post" action="./account/password">{fields}'
        f'<p class="note">{escape(words(f"account.{note}", n=SHORTEST, name=shown.me.name))}</p>'
        f"<button>{escape(words(f'account.{do}'))}</button></form>"
        f"{_passkeys(shown, words)}"
        f"<h2>{escape(words('account.leave'))}</h2><p>{escape(words('account.leave_say'))}</p>"
        '<p class="row">'
        + "".join(
            f'<a href="./conversations/export?as={form}" download>{escape(name)}</a>'
            for form, name in (("bundle", words("settings.export_bundle")), *_FORMS)
        )
        + '</p><form class="form" method="post" action="./account/delete">'
        f"{_sure(shown.me, words)}"
        f'<button class="plain danger">{escape(words("account.leave_do"))}</button></form>'
    )
    return house_page(words("account.title"), body, words)


# ---- parts


def _sure(me: Person, words: Words) -> str:
    """The field without which an account is not deleted."""
    if me.password:
        field = "<input type='password' name='password' required autocomplete='current-password'>"
        return f"<label>{escape(words('account.old'))}{field}</label>"
    field = "<input name='name' required autocomplete='off'>"
    return f"<label>{escape(words('people.type_name', name=me.name))}{field}</label>"


def _passkeys(shown: ShownAccount, words: Words) -> str:
    rows = "".join(
        f"<tr><td>{escape(str(data.get('browser') or words('account.a_device')))}</td>"
        f'<td class="right"><button type="button" data-forget="{escape(one)}">'
        f"{escape(words('account.passkey_remove'))}</button></td></tr>"
        for one, data in shown.passkeys.items()
    )
    typed = "type='password' id='passkey-password' autocomplete='current-password'"
    label = f"<div class='form'><label>{escape(words('account.passkey_password'))}<input {typed}></label></div>"
    password = label if shown.me.password else ""
    return (
        f"<section id='passkeys' hidden><h2>{escape(words('account.passkeys'))}</h2>"
        f"<p>{escape(words('account.passkeys_say'))}</p>"
        f"<table><tbody>{rows}</tbody></table>{password}"
        f'<p class="row"><button type="button" id="add-passkey" hidden>{escape(words("account.passkey_add"))}</button>'
        f'</p><p id="passkey-told" role="alert" hidden></p></section>{PASSKEYS}'
    )


def _person_row(one: Person, shown: ShownPeople, words: Words) -> str:
    used = shown.used.get(one.id, Use())
    mine = one.id == shown.me.id
    name = words("people.you", name=one.name) if mine else one.name
    month = words(
        "people.used", messages=used.messages, tokens=f"{used.tokens:,}", cost=f"{used.cost:.2f}", mb=used.bytes // _MIB
    )
    seen = _when(one.seen_at) if one.seen_at is not None else words("people.not_yet")
    may_change = may_set(shown.me.role, one.role, one.role)
    more = _more(one, words) if may_change and not mine else ""
    return (
        f"<tr><td>{escape(name)}</td><td>{_role(one, shown, words)}</td><td>{escape(month)}</td>"
        f"<td>{escape(seen)}</td></tr>{more}"
    )


def _role(one: Person, shown: ShownPeople, words: Words) -> str:
    may: list[Role] = [role for role in reversed(ROLES) if may_set(shown.me.role, one.role, role)]
    if not may:
        return escape(words(f"role.{one.role}"))
    label = escape(words("people.role_of", name=one.name))
    return (
        f'<form method="post" action="./people/role"><input type="hidden" name="person" value="{one.id}">'
        f'<select name="role" aria-label="{label}">{_options(may, one.role, words)}</select>'
        f"<button>{escape(words('people.change'))}</button></form>"
    )


def _more(one: Person, words: Words) -> str:
    def act(name: str, kind: str = "") -> str:
        return (
            f'<form method="post" action="./people/{name}"><input type="hidden" name="person" value="{one.id}">'
            f'<button class="{kind}">{escape(words(f"people.{name}"))}</button></form>'
        )

    sure = escape(words("people.type_name", name=one.name))
    delete = (
        f'<form method="post" action="./people/delete"><input type="hidden" name="person" value="{one.id}">'
        f'<input name="name" placeholder="{sure}" aria-label="{sure}" autocomplete="off" required>'
        f'<button class="danger">{escape(words("people.delete"))}</button></form>'
    )
    fields = limit_fields(one.limits, words)
    limits = (
        f'<form method="post" action="./people/limits"><input type="hidden" name="person" value="{one.id}">{fields}'
        f"<button>{escape(words('people.limits'))}</button></form>"
    )
    summary = escape(words("people.more_of", name=one.name))
    acts = f"{act('recover')}{act('end')}{limits}{delete}"
    return (
        f'<tr class="more"><td colspan="4"><details><summary>{summary}</summary><div>{acts}</div></details></td></tr>'
    )


def _options(roles: Sequence[Role], chosen: Role, words: Words) -> str:
    return "".join(
        f'<option value="{role}"{" selected" if role == chosen else ""}>{escape(words(f"role.{role}"))}</option>'
        for role in roles
    )


def _invite(shown: ShownPeople, words: Words) -> str:
    may: list[Role] = [role for role in ROLES if may_set(shown.me.role, role, role)]
    lengths = {1: words("people.days_one"), **{n: words("people.days", n=n) for n in (7, 30)}}
    days = "".join(
        f'<option value="{n}"{" selected" if n == 7 else ""}>{escape(said)}</option>' for n, said in lengths.items()
    )
    return (
        f"<p>{escape(words('people.invite_say'))}</p>"
        '<form class="row" method="post" action="./people/invite">'
        f'<select name="role" aria-label="{escape(words("people.role"))}">{_options(may, "member", words)}</select>'
        f'<select name="days" aria-label="{escape(words("people.counts_for"))}">{days}</select>'
        f"<button>{escape(words('people.invite_do'))}</button></form>"
    )


def _invitations(shown: ShownPeople, words: Words) -> str:
    names = {one.id: one.name for one in shown.people}

    def row(one: Invitation) -> str:
        about = words("people.link_for", name=names.get(one.person_id or "", "")) if one.person_id else ""
        revoke = (
            f'<form method="post" action="./people/revoke"><input type="hidden" name="link" value="{one.id}">'
            f"<button>{escape(words('people.revoke'))}</button></form>"
        )
        may = may_set(shown.me.role, one.role, one.role)
        until = words("people.until", when=_when(one.ends_at), who=one.made_by)
        return (
            f"<tr><td>{escape(about or words(f'role.{one.role}'))}<small>{escape(until)}</small></td>"
            f'<td class="right">{revoke if may else ""}</td></tr>'
        )

    rows = "".join(map(row, shown.invitations))
    return f"<table><tbody>{rows}</tbody></table>" if rows else ""


def _rights(words: Words) -> str:
    heads = "".join(f'<th class="right">{escape(words(f"role.{role}"))}</th>' for role in ROLES)

    def cell(role: Role, right: str) -> str:
        if right not in RIGHTS[role]:
            return '<td class="right">–</td>'
        return f'<td class="right yes">{escape(words("people.yes"))}</td>'

    rows = "".join(
        f"<tr><td>{escape(words(f'right.{right}'))}</td>{''.join(cell(role, right) for role in ROLES)}</tr>"
        for right in ("talk", "own", "programs", "house")
    )
    return f"<table><thead><tr><th></th>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _acts(acts: Sequence[Act], words: Words) -> str:
    rows = "".join(
        f'<tr><td class="when">{escape(_when(one.at))}</td><td>{escape(said_of(one, words))}</td></tr>' for one in acts
    )
    return f"<table><tbody>{rows}</tbody></table>" if rows else f"<p>{escape(words('people.no_acts'))}</p>"


def said_of(act: Act, words: Words) -> str:
    """What an administrator did, in a sentence."""
    given = {
        name: words(f"role.{value}") if value in ROLES else str(value)
        for name, value in act.details.items()
        if name in {"from", "to", "role", "group"}
    }
    filled = {"role": "", "group": "", "was": given.get("from", ""), "now": given.get("to", ""), **given}
    filled = {name: value for name, value in filled.items() if name not in {"from", "to"}}
    who = words("audit.terminal") if act.by == TERMINAL else act.by
    return words(f"audit.{act.did}", who=who, whom=act.to, **filled)


def _session_row(one: Session, shown: ShownAccount, words: Words) -> str:
    here = f"<small>{escape(words('account.this_one'))}</small>" if one.id == shown.session else ""
    end = (
        f'<form method="post" action="./account/end"><input type="hidden" name="session" value="{one.id}">'
        f"<button>{escape(words('account.end'))}</button></form>"
    )
    since = words("account.since", made=_when(one.created_at), seen=_when(one.seen_at))
    shown_as = escape(one.browser or words("account.a_browser"))
    return f'<tr><td>{shown_as}{here}<small>{escape(since)}</small></td><td class="right">{end}</td></tr>'


def _made(link: str, words: Words) -> str:
    if not link:
        return ""
    return f'<div class="made"><p>{escape(words("people.made"))}</p><code>{escape(link)}</code></div>'


def told_html(problem: str, said: str) -> str:
    """What could not be done, and what was."""
    alert = f'<p role="alert">{escape(problem)}</p>' if problem else ""
    return alert + (f'<p role="status">{escape(said)}</p>' if said else "")


def _when(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M}"


def house_page(title: str, body: str, words: Words) -> str:
    """A whole page about people, with the way back."""
    back = escape(words("people.back"))
    head = f'<header><h1>{escape(title)}</h1><a href="./">{back}</a></header>'
    return plain_page(title, f'<main class="wide">{head}{body}</main>', words, THEME, _STYLE)
