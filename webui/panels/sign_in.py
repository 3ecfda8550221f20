"""The pages before the room: signing in, and what a one-time link opens. They need no script."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

from core.people.passwords import SHORTEST
from webui.middleware.entrance import plain_page

if TYPE_CHECKING:
    from core.people.people import Known
    from webui.words import Words

# The reader's own choice of theme, where the browser keeps one.
THEME: Final = (
    "<script>(() => { try { const chosen = localStorage.getItem('p-theme'); "
    "if (chosen) document.documentElement.style.colorScheme = chosen; } catch { } })();</script>"
)
LOOK: Final = """
:root { color-scheme: light dark; background: var(--paper);
  --paper: light-dark(#f8f7f3, #191b19); --sheet: light-dark(#fffefb, #222522);
  --ink: light-dark(#1d201c, #e8e5da); --ink-2: light-dark(#4d5049, #b9b7aa); --ink-3: light-dark(#5f6258, #9a998c);
  --rule: light-dark(#d8d5ca, #343832); --edge: light-dark(#7f8076, #74776c); --accent: light-dark(#1d5a49, #93ccb2);
  --on: light-dark(#fff, #10201a); --bad: light-dark(#96281f, #f0978b); --wait: light-dark(#7a5200, #e0b866); }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; color: var(--ink);
  font: 16px/1.5 system-ui, "Noto Sans", "Noto Sans CJK SC", sans-serif; }
h1, h2 { font-family: Georgia, "Noto Serif", "Noto Serif CJK SC", serif; font-weight: 500; line-height: 1.25; }
main { box-sizing: border-box; width: 360px; max-width: 100vw; padding: 24px 0; }
main > svg { display: block; width: 40px; height: 40px; margin-bottom: 20px; }
main h1 { margin: 0 0 4px; font-size: 30px; }
form { display: block; margin: 0; }
label { display: block; margin-top: 16px; font-size: 13px; color: var(--ink-2); }
input, select, button { font: inherit; box-sizing: border-box; min-height: 44px; padding: 8px 12px;
  border-radius: 6px; }
input, select { display: block; width: 100%; margin-top: 4px; font-size: 16px; border: 1px solid var(--edge);
  background: var(--sheet); color: var(--ink); }
button { font-size: 14px; border: 0; background: var(--accent); color: var(--on); cursor: pointer; }
a { color: var(--accent); }
[hidden] { display: none !important; }
main.door button { width: 100%; margin-top: 20px; }
.other { background: transparent; color: var(--ink); border: 1px solid var(--edge); }
a.main { background: var(--accent); color: var(--on); border: 1px solid transparent; }
a.main, a.other { display: block; margin-top: 20px; padding: 11px; border-radius: 6px; font-size: 14px;
  text-align: center; text-decoration: none; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
p { margin: 0; color: var(--ink-2); }
.note, footer { font-size: 12px; color: var(--ink-3); margin-top: 6px; }
[role=alert], [role=status] { font-size: 13px; margin-top: 12px; color: var(--bad); }
[role=status] { color: var(--accent); }
[role=alert]::before { content: "\\25c6\\a0\\a0"; }
.or { display: flex; align-items: center; gap: 12px; margin-top: 20px; font-size: 12px; color: var(--ink-3); }
.or::before, .or::after { content: ""; flex: 1; height: 1px; background: var(--rule); }
footer { margin-top: 32px; }
@media (max-width: 420px) { main { padding: 24px 20px; } }
"""
# Shown where the browser has them: over HTTPS and at localhost, and for a host that has a name.
PASSKEYS: Final = """<script>
(() => {
  const told = document.getElementById('passkey-told');
  const ask = async (path, body) => {
    const answer = await fetch(path, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
    });
    const said = await answer.json();
    if (!answer.ok) throw new Error(said.failed);
    return said;
  };
  const press = (button, work) => {
    button.hidden = false;
    button.addEventListener('click', async () => {
      told.hidden = true;
      button.disabled = true;
      try {
        location.assign((await work()).to);
      } catch (error) {
        button.disabled = false;
        if (error.name === 'NotAllowedError') return;
        told.textContent = error.message;
        told.hidden = false;
      }
    });
  };
  const password = () => document.getElementById('passkey-password')?.value ?? '';
  for (const button of document.querySelectorAll('[data-forget]')) {
    press(button, () => ask('./account/passkey/remove', { id: button.dataset.forget, password: password() }));
  }
  const named = !/^[\\d.]+$|:/.test(location.hostname);
  if (!named || !window.PublicKeyCredential?.parseCreationOptionsFromJSON) return;
  document.getElementById('passkeys')?.removeAttribute('hidden');
  const add = document.getElementById('add-passkey'), use = document.getElementById('use-passkey');
  if (add) {
    press(add, async () => {
      const options = await ask('./account/passkey/begin', { password: password() });
      const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
      return ask('./account/passkey/add', (await navigator.credentials.create({ publicKey })).toJSON());
    });
  }
  if (use) {
    press(use, async () => {
      const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(await ask('./sign-in/passkey/begin', {}));
      return ask('./sign-in/passkey/done', (await navigator.credentials.get({ publicKey })).toJSON());
    });
  }
})();
</script>"""
MARK: Final = (
    '<svg viewBox="0 0 32 32" fill="none" stroke-width="2.8" stroke-linecap="round" aria-hidden="true">'
    '<path d="M7 28V10.5A6.5 6.5 0 0 1 13.5 4H15a4 4 0 0 1 4 4" stroke="currentColor"/>'
    '<path d="M11 17.2a8 8 0 0 1 16 0z" fill="var(--accent)"/><path d="M13 22.6h12" stroke="#d9ae17"/>'
    '<path d="M13 28h7" stroke="currentColor"/></svg>'
)


@dataclass(frozen=True, slots=True)
class SignInView:
    """What the page to sign in shows.

    Args:
        host: The name by which the reader came.
        name: What was typed.
        problem: What is wrong with it.
        said: What went well.
        guests: Whether one may go on without an account.
        outside: Another service that one may sign in by; "" for none.
        base: The way to the page's root.
        link: The token of the one-time link that one came by.
    """

    host: str = ""
    name: str = ""
    problem: str = ""
    said: str = ""
    guests: bool = False
    outside: str = ""
    base: str = "./"
    link: str = ""


def sign_in_page(door: SignInView, words: Words) -> str:
    """Name and password."""
    focus = " autofocus"
    fields = _field(
        "name", words("account.name"), door.name, 'autocomplete="username"' + ("" if door.name else focus)
    ) + _field(
        "password",
        words("account.password"),
        "",
        'type="password" autocomplete="current-password"' + (focus if door.name else ""),
    )
    guest = _outside(door, words)
    if door.base == "./":
        guest += (
            f'<button type="button" class="other" id="use-passkey" hidden>{escape(words("account.passkey"))}</button>'
            f'<p id="passkey-told" role="alert" hidden></p>{PASSKEYS}'
        )
    if door.guests:
        guest += (
            f'<div class="or">{escape(words("account.or"))}</div><form method="post" action="{door.base}guest">'
            f'<button class="other">{escape(words("account.as_guest"))}</button></form>'
        )
    foot = words("account.forgotten")
    body = (
        f'<form method="post" action="{door.base}sign-in">{fields}{_told(door.problem, door.said)}'
        f"<button>{escape(words('account.sign_in'))}</button></form>{guest}<footer>{escape(foot)}</footer>"
    )
    return _page(words("account.hello"), words("account.room", host=door.host), body, words)


def link_page(kind: str, door: SignInView, role: str, words: Words) -> str:
    """What a one-time link opens.

    Args:
        kind: `first`: the first owner; `invited`: anybody else; `recovery`: another password.
        role: The name of the role that the link gives.
    """
    field_name = ""
    if kind != "recovery":
        typed = 'autocomplete="username"' + ("" if door.name else " autofocus")
        field_name = _field("name", words("account.name"), door.name, typed)
    typed = 'type="password" autocomplete="new-password" aria-describedby="how"' + (" autofocus" if door.name else "")
    password = _field("password", words("account.password"), "", typed)
    foot = f"<footer>{escape(words(f'account.{kind}_foot'))}</footer>"
    body = (
        f'<form method="post">{field_name}{password}'
        f'<p class="note" id="how">{escape(words("account.how", n=SHORTEST))}</p>{_told(door.problem, "")}'
        f"<button>{escape(words(f'account.{kind}_do'))}</button></form>{_outside(door, words)}{foot}"
    )
    return _page(words(f"account.{kind}_title"), words(f"account.{kind}_say", host=door.host, role=role), body, words)


def _outside(door: SignInView, words: Words) -> str:
    if not door.outside:
        return ""
    link = f"?link={escape(door.link)}" if door.link else ""
    said = escape(words("account.outside", service=door.outside))
    return (
        f'<div class="or">{escape(words("account.or"))}</div>'
        f'<a class="other" href="{door.base}sign-in/openid{link}">{said}</a>'
    )


def told_page(title: str, sentence: str, words: Words) -> str:
    """One sentence, and the way to sign in."""
    link = f'<p class="note"><a href="../sign-in">{escape(words("account.sign_in"))}</a></p>'
    return _page(title, sentence, link, words)


def not_allowed_page(known: Known | None, root: str, words: Words, *, nobody: bool = False) -> str:
    """Somebody may not use what stands at this address: as whom they are here, and the ways on.

    Args:
        known: Who asks; `None` for a guest without an account.
        root: The way to the page's root.
        nobody: Whether it can be used after signing in: then the page leads there alone.
    """
    if nobody:
        way = f'<a class="main" href="{root}sign-in">{escape(words("account.sign_in"))}</a>'
        return _page(words("account.sign_in"), words("account.needed"), way, words)
    back = f'<a class="main" href="{root}">{escape(words("people.back"))}</a>'
    if known is None:
        said = words("account.guests_may_not")
        other = f'<a class="other" href="{root}sign-in">{escape(words("account.sign_in"))}</a>'
    else:
        said = words("account.role_may_not", name=known.person.name, role=words(f"role.{known.person.role}"))
        other = f'<a class="other" href="{root}account">{escape(words("account.title"))}</a>'
    return _page(words("account.may_not"), said, back + other, words)


def _page(title: str, sentence: str, body: str, words: Words) -> str:
    said = f"<p>{escape(sentence)}</p>" if sentence else ""
    main = f'<main class="door">{MARK}<h1>{escape(title)}</h1>{said}{body}</main>'
    return plain_page(title, main, words, THEME, LOOK)


def _field(name: str, label: str, value: str, more: str) -> str:
    return f'<label>{escape(label)}<input name="{name}" value="{escape(value)}" required {more}></label>'


def _told(problem: str, said: str) -> str:
    alert = f'<p role="alert">{escape(problem)}</p>' if problem else ""
    return alert + (f'<p role="status">{escape(said)}</p>' if said else "")
