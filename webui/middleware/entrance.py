"""The way in: a token is shown in the address or typed in, and a cookie that cannot be read is not lost."""

from __future__ import annotations

import time
from collections import OrderedDict
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers

from webui.middleware.answers import answer, read_body, refuse, words_of
from webui.middleware.headers import OTHER_POLICY
from webui.middleware.proxy import client_address, counted_as
from webui.middleware.then import is_asked, page_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Receive, Scope, Send

    from core.errors import TooManyRequestsError
    from webui.auth import Owners, PageToken
    from webui.words import Words

TOKEN_PATH = "/token"  # noqa: S105 - a path
ANEW_PATH = "/start-afresh"
_FORM_LIMIT = 8 * 1024
_WRONG, _WITHIN = 10, 60.0  # wrong tokens of one address, seconds
_MOST_ADDRESSES = 10_000
_HTML = "text/html; charset=utf-8"
_NO_STORE = ("cache-control", "no-store")


class Entrance:
    """Answers who has no way in yet.

    Args:
        owners: Makes owners for browsers that begin afresh.
        kept: The token is one that Parlour made and keeps in its data folder.
        now: Seconds that never go back.
    """

    def __init__(
        self, token: PageToken, owners: Owners, *, kept: bool, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._token = token
        self._owners = owners
        self._kept = kept
        self._sentence = "entrance.kept" if kept else "entrance.given"
        self._guesses = _Guesses(now)
        self._by_programs = _Guesses(now)  # apart: a program that goes on showing an old token keeps nobody out

    async def by_address(self, scope: Scope, send: Send, *, known: bool) -> None:
        """`GET /?token=…`: the cookie is given, and the token disappears from the address.

        Args:
            send: Takes the answer.
            known: The browser has shown the token before, so that a wrong one is no news.
        """
        asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        token = next(value for name, value in asked if name == "token")
        rest = urlencode([(name, value) for name, value in asked if name != "token"])
        if known and not self._token.matches(token):
            await _go(send, rest, place=scope.get("place", ""))
            return
        await self._shown(scope, send, token, rest)

    def by_program(self, scope: Scope, token: str) -> bool:
        """Whether a program shows the token, in a header; wrong ones have a limit of their own."""
        guesser, right = _guesser(scope), self._token.matches(token)
        if self._by_programs.wait(guesser) and not self._kept:
            return False
        if not right:
            self._by_programs.count(guesser)
        return right

    async def by_form(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`POST /token`: what was typed in."""
        typed = await _form(receive)
        rest = urlencode([("c", typed["c"])]) if typed.get("c") else ""
        then = typed.get("then", "")
        if then.isascii() and then.isprintable() and " " not in then:
            place, _, rest = page_of(then).partition("?") if then else ("", "", rest)
            scope = {**scope, **({"place": place} if then else {})}
        await self._shown(scope, send, typed.get("token", ""), rest)

    async def ask(self, scope: Scope, send: Send, status: int = 401, problem: str = "") -> None:
        """The page that says where the token is, and takes it.

        Args:
            send: Takes the answer.
            problem: What is wrong with the one that was shown.
        """
        words = words_of(scope)
        asked = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        alert = f'<p role="alert" id="problem">{escape(problem)}</p>' if problem else ""
        is_program = is_asked(scope)  # which the page is about that comes then
        action = f"../{TOKEN_PATH.removeprefix('/')}" if is_program else _from_here(scope, TOKEN_PATH)
        then = escape(scope["query_string"].decode("latin-1")) if is_program else ""
        described = ' aria-describedby="problem" aria-invalid="true"' if problem else ""
        body = (
            f"<main><h1>{escape(words('entrance.title'))}</h1><p>{escape(words(self._sentence))}</p>{alert}"
            f'<form method="post" action="{action}">'
            f'<input type="hidden" name="c" value="{escape(asked.get("c", "")[:200])}">'
            f'<input type="hidden" name="then" value="{then}">'
            f"<label>{escape(words('entrance.field'))}"
            f'<input type="password" name="token" autocomplete="current-password" required autofocus{described}>'
            "</label>"
            f"<button>{escape(words('entrance.open'))}</button></form></main>"
        )
        page = plain_page(words("entrance.title"), body, words)
        headers = [_NO_STORE, *([("retry-after", str(int(_WITHIN)))] if status == 429 else [])]
        await answer(send, status, page, _HTML, headers)

    async def say_unread(self, scope: Scope, send: Send) -> None:
        """The page for a browser whose owner's cookie cannot be read: nothing is overwritten before it is told to."""
        words = words_of(scope)
        title = words("unread.title")
        body = (
            f"<main><h1>{escape(title)}</h1><p>{escape(words('unread.say'))}</p>"
            f'<form method="post" action="{_from_here(scope, ANEW_PATH)}">'
            f"<button>{escape(words('unread.anew'))}</button></form></main>"
        )
        await answer(send, 409, plain_page(title, body, words), _HTML, [_NO_STORE])

    async def say_too_many(self, scope: Scope, send: Send, error: TooManyRequestsError) -> None:
        """The page for one browser too many: too many of its address came for the first time just now."""
        words = words_of(scope)
        happened, remedy = words.error_parts(error)
        body = f"<main><h1>{escape(happened)}</h1><p>{escape(remedy)}</p></main>"
        wait = ("retry-after", str(error.retry_after))
        await answer(send, 429, plain_page(happened, body, words), _HTML, [_NO_STORE, wait])

    async def refuse(self, scope: Scope, send: Send, key: str) -> None:
        """Refuse a request that came from elsewhere; whoever opens the page in a browser gets a page that says why.

        It is a page of nobody's: under the policy of what is refused it is no document of this site.
        """
        reads = "text/html" in Headers(scope=scope).get("accept", "")
        if scope["method"] != "GET" or scope["path"] != "/" or not reads:
            await refuse(scope, send, 403, key)
            return
        words = words_of(scope)
        title = words("refused.title")
        body = f"<main><h1>{escape(title)}</h1><p>{escape(words(key))}</p></main>"
        headers = [_NO_STORE, ("content-security-policy", OTHER_POLICY)]
        await answer(send, 403, plain_page(title, body, words), _HTML, headers)

    async def begin_afresh(self, scope: Scope, send: Send) -> None:
        """`POST /start-afresh`: a new owner, and the cookie that cannot be read under another name."""
        unread = self._owners.unread(Headers(scope=scope).get("cookie", ""))
        https = scope["scheme"] == "https"
        cookies: list[str] = []
        if unread:
            cookies = [
                self._owners.set_aside(unread, https=https),
                self._owners.cookie(self._owners.new(), https=https),
            ]
        await _go(send, "", cookies)

    async def _shown(self, scope: Scope, send: Send, token: str, rest: str) -> None:
        guesser = _guesser(scope)
        right = self._token.matches(token)
        wait = self._guesses.wait(guesser)
        # What Parlour made cannot be found by trying, so nobody's wrong tokens keep its owner out.
        if wait and not (right and self._kept):
            await self.ask(scope, send, 429, words_of(scope)("entrance.too_often", seconds=wait))
        elif right:
            proof = self._token.proof(https=scope["scheme"] == "https")
            await _go(send, rest, [proof], scope.get("place", ""))
        else:
            self._guesses.count(guesser)
            await self.ask(scope, send, 401, words_of(scope)("entrance.wrong"))


def _from_here(scope: Scope, path: str) -> str:
    """A path of ours as a relative address: the page may lie below the root of its site."""
    return f"{scope.get('base', './')}{path.removeprefix('/')}"


def _guesser(scope: Scope) -> str:
    """Whose wrong tokens count together.

    A page of another site can let a browser ask as often as it likes; that must not keep the browser's user out.
    """
    led = Headers(scope=scope).get("sec-fetch-site", "") in {"cross-site", "same-site"}
    address = counted_as(client_address(scope))
    return f"{address} led by another site" if led else address


class _Guesses:
    """Wrong tokens of each address: a short token that somebody chose must not be found by trying."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._wrong: OrderedDict[str, list[float]] = OrderedDict()

    def wait(self, address: str) -> int:
        """Seconds until this address may try again; 0 for at once."""
        recent = [at for at in self._wrong.get(address, []) if self._now() - at < _WITHIN]
        return max(1, round(_WITHIN - (self._now() - recent[0]))) if len(recent) >= _WRONG else 0

    def count(self, address: str) -> None:
        """One more."""
        recent = [at for at in self._wrong.pop(address, []) if self._now() - at < _WITHIN]
        self._wrong[address] = [*recent, self._now()]
        while len(self._wrong) > _MOST_ADDRESSES:
            self._wrong.popitem(last=False)


async def _form(receive: Receive) -> dict[str, str]:
    """The fields of a form; none where it is too long or no form."""
    body = await read_body(receive, _FORM_LIMIT)
    try:
        return dict(parse_qsl((body or b"").decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=10))
    except ValueError:
        return {}


async def _go(send: Send, query: str, cookies: list[str] | None = None, place: str = "") -> None:
    """To the page, or to the place within it; always Parlour's own, whatever stood in the address."""
    headers = [("location", f"./{place}?{query}" if query else f"./{place}"), _NO_STORE]
    await answer(send, 303, "", headers=[*headers, *(("set-cookie", cookie) for cookie in cookies or [])])


_STYLE = """
:root { color-scheme: light dark; background: light-dark(#f8f7f3, #191b19); color: light-dark(#1d201c, #e4e1d6); }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; font: 18px/1.5 Georgia, "Noto Serif", serif; }
main { max-width: 34rem; padding: 24px; }
h1 { font-size: 30px; font-weight: normal; margin: 0 0 12px; }
form { display: flex; flex-wrap: wrap; gap: 8px; align-items: end; margin-top: 24px; }
label { flex: 1 1 14rem; display: grid; gap: 4px; font-size: 15px; }
input, button { font: inherit; padding: 8px 12px; border-radius: 6px; min-height: 44px; box-sizing: border-box; }
input { width: 100%; border: 1px solid #7f8076; background: light-dark(#fffefb, #232622); color: inherit; }
button { border: 0; background: light-dark(#1d5a49, #8fc9b2); color: light-dark(#fff, #12211b); cursor: pointer; }
[role=alert] { color: light-dark(#96281f, #f0a49b); }
"""


def plain_page(title: str, body: str, words: Words, head: str = "", style: str = _STYLE) -> str:
    """A whole document.

    Args:
        title: Text.
        body: Markup.
        head: Markup for the head.
        style: How it looks.
    """
    return (
        f'<!doctype html>\n<html lang="{words("lang.tag")}"><head><meta charset="utf-8">{head}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body>{body}</body></html>\n"
    )
