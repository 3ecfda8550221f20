"""The one way in which something is fetched from the web because somebody, or something, named its address.

The name is looked up once, every address of it is checked, and the connection goes to a checked address and no other:
a name that changes its mind in between gains nothing. Each redirect is checked like the first address. No cookie, key
or proxy of this machine is ever sent along.

    >>> fetched = await fetch("https://example.org/report.pdf")
    >>> fetched.name, fetched.media_type, len(fetched.data)
    ('report.pdf', 'application/pdf', 48211)
"""

from __future__ import annotations

import asyncio
import re
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from core.errors import FetchError
from core.net.addresses import MARK_HEADER, Reach, is_own_server, mark_header
from core.net.body import ENCODINGS, Body, TooLargeError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    import httpx


_EXTENDED = re.compile(r"filename\*\s*=\s*(?:utf-8|iso-8859-1)'[^']*'([^;\s]+)", re.IGNORECASE)
_QUOTED = re.compile(r"filename\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|([^;\s]+))", re.IGNORECASE)
_INDEX = re.compile(r"(?:index|default|home)\.\w{2,5}\Z", re.IGNORECASE)
_LONGEST_NAME = 200
# The readers of documents go by the ending where the bytes alone leave doubt.
_ENDINGS: Mapping[str, tuple[str, ...]] = {
    "text/html": (".html", ".htm", ".xhtml"),
    "application/xhtml+xml": (".xhtml", ".html", ".htm"),
    "application/pdf": (".pdf",),
    "application/json": (".json",),
    "text/csv": (".csv",),
    "text/markdown": (".md", ".markdown"),
}


def name_of(path: str, disposition: str, media_type: str) -> str:
    """The name that a server gives, or the last part of an address; with the ending of its kind. "" for neither.

    Args:
        disposition: The answer's `content-disposition`.
    """
    name = _given(disposition) or unquote(path.rstrip("/").rpartition("/")[2])
    name = name.replace("\\", "/").rpartition("/")[2].strip().lstrip(".")[-_LONGEST_NAME:]
    if not name or _INDEX.match(name):
        return ""
    return with_ending(name, media_type)


def with_ending(name: str, media_type: str) -> str:
    """The name, with an ending that fits the media type where that has one."""
    endings = _ENDINGS.get(media_type, ())
    return name if not endings or name.lower().endswith(endings) else name + endings[0]


def _given(disposition: str) -> str:
    if found := _EXTENDED.search(disposition):
        return unquote(found[1])
    if found := _QUOTED.search(disposition):
        return re.sub(r"\\(.)", r"\1", found[1]) if found[1] is not None else found[2]
    return ""


_SCHEMES = {"http": 80, "https": 443}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HOST = re.compile(r"[\w.:-]+")
_KIND = re.compile(r"[\w.+-]{1,40}(?:/[\w.+-]{1,60})?", re.ASCII)
_LONGEST = 4096  # letters of an address
_CONNECT_SECONDS = 10.0
_MOST_TRIED = 3  # of the addresses of a name
_HEADERS = {"user-agent": "Parlour/1 (documents)", "accept": "*/*", "accept-encoding": ENCODINGS}

PAGES_AND_DOCUMENTS = (
    *("text/", "image/", "application/pdf", "application/json", "application/xml", "application/xhtml+xml"),
    *("application/epub+zip", "application/msword", "application/vnd.", "application/octet-stream"),
    *("application/x-pdf", "binary/octet-stream", "application/rtf", "application/zip"),
)


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """What a fetch may cost.

    Args:
        size: Bytes, after unpacking.
        seconds: For all of it, redirects too.
        redirects: How many are followed.
        types: What a media type may begin with; an answer that names none is taken.
    """

    size: int = 10 * 1024 * 1024
    seconds: float = 20.0
    redirects: int = 5
    types: tuple[str, ...] = PAGES_AND_DOCUMENTS


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came.

    Args:
        url: Where it came from in the end.
        media_type: As the server says, in small letters; "" if it does not.
        charset: As the server says; "" if it does not.
        name: What to call it: as the server says, or the last part of the address.
    """

    url: str
    media_type: str
    charset: str
    data: bytes
    name: str


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What is sent.

    Args:
        url: Read by `checked`.
        headers: Besides the usual ones; they go to this address and no other.
    """

    url: httpx.URL
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    content: bytes | None = field(default=None, repr=False)


_USUAL = FetchLimits()
_OPEN = Reach()


async def fetch(url: str, *, limits: FetchLimits = _USUAL, reach: Reach = _OPEN) -> Fetched:
    """Fetch what is at an address.

    Args:
        url: Begins with `http://` or `https://`.
        reach: How far it may go: the open internet by default.

    Raises:
        FetchError: The address is no web address, holds a password, or may not be called (`fetch_bad_address`,
            `fetch_private`, `fetch_own`); nobody answers, or somebody with another's certificate (`fetch_unreachable`,
            `fetch_untrusted`); the server refuses, or sends people around (`fetch_refused`, `fetch_redirects`); what it
            sends is too large, too slow, or of another kind (`fetch_too_large`, `fetch_too_slow`, `fetch_kind`).
    """
    target = checked(url)
    async with connected(target, limits, reach) as transport:
        for _ in range(limits.redirects + 1):
            response = await sent(transport, Outgoing(target), reach)
            try:
                if response.status_code not in _REDIRECTS:
                    return await _received(response, target, limits)
                target = _next(target, response)
            finally:
                await response.aclose()
    raise FetchError(
        f"{target.host} sends from one address to the next.",
        hint="Open it in a browser, and give the address where it ends.",
        key="fetch_redirects",
        host=target.host,
    )


@asynccontextmanager
async def connected(target: httpx.URL, limits: FetchLimits, reach: Reach) -> AsyncGenerator[httpx.AsyncHTTPTransport]:
    """A way out for one fetch, as long as the block runs; what goes wrong on it is told in sentences.

    Raises:
        FetchError: As `fetch` tells it.
    """
    import httpx

    try:
        async with (
            asyncio.timeout(limits.seconds),
            # Neither proxies nor certificates nor passwords of the environment: what was checked is what is called.
            httpx.AsyncHTTPTransport(
                verify=reach.trusted or _trusted(), trust_env=False, limits=httpx.Limits(max_keepalive_connections=0)
            ) as transport,
        ):
            yield transport
    except TimeoutError as error:
        raise _too_slow(target.host, limits.seconds) from error
    except httpx.HTTPError as error:
        raise (_untrusted if _is_about_trust(error) else _unreachable)(target.host) from error


def checked(url: str) -> httpx.URL:
    """The address, read once: what is checked is what is called.

    Raises:
        FetchError: key `fetch_bad_address`: it is no web address, or holds a name and password.
    """
    import httpx

    # Browsers and libraries disagree about what these mean in an address.
    fine = len(url) <= _LONGEST and "\\" not in url and not any(letter <= " " or letter == "\x7f" for letter in url)
    try:
        parts = httpx.URL(url) if fine else None
        port = parts.port if parts else None
        host = parts.host if parts else ""
    except (httpx.InvalidURL, ValueError, UnicodeError):
        parts, port, host = None, None, ""
    if parts is None or parts.scheme not in _SCHEMES or not _HOST.fullmatch(host) or not _is_port(port):
        raise FetchError(
            "This is not the address of a web page or file.",
            hint="Give an address that begins with https://.",
            key="fetch_bad_address",
        )
    if parts.userinfo:
        raise FetchError(
            "The address holds a name or a password.",
            hint="Give it without; pages that ask for a password cannot be fetched.",
            key="fetch_bad_address",
        )
    return parts.copy_with(fragment=None)


def _is_port(port: int | None) -> bool:
    return port is None or 0 < port < 65536


@cache
def _trusted() -> ssl.SSLContext:
    """The certificates that the web trusts, read once."""
    import httpx

    return httpx.create_ssl_context(trust_env=False)


async def sent(transport: httpx.AsyncHTTPTransport, what: Outgoing, reach: Reach) -> httpx.Response:
    """The beginning of the answer, from a checked address of the host.

    Raises:
        FetchError: The host has no address, or one that may not be called, such as that of this very server.
    """
    import httpx

    # The mark comes last: whatever a document or a model wrote into the headers, this installation knows its own.
    given = {name: value for name, value in what.headers.items() if name.lower() != MARK_HEADER}
    url, headers = what.url, {**_HEADERS, **given, **mark_header()}
    port = url.port or _SCHEMES[url.scheme]
    host = url.raw_host.decode("ascii")  # the name as it is sent, which systems would spell in another way
    addresses = await _addresses(host, port, reach)
    times: dict[str, Any] = httpx.Timeout(None, connect=_CONNECT_SECONDS).as_dict()
    for number, address in enumerate(addresses[:_MOST_TRIED], 1):
        # The certificate must be the name's, whatever the address; the Host header comes from the name too.
        extensions = {"sni_hostname": host, "timeout": times}
        request = httpx.Request(what.method, url, headers=headers, content=what.content, extensions=extensions)
        request.url = url.copy_with(host=address)
        try:
            return await transport.handle_async_request(request)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            if number == min(len(addresses), _MOST_TRIED):
                raise
    raise _unreachable(url.host)


async def _addresses(host: str, port: int, reach: Reach) -> list[str]:
    """The addresses of a host, all of which may be called."""
    try:
        found = await reach.resolve(host, port)
    except (OSError, UnicodeError) as error:
        raise _unreachable(host) from error
    if not found:
        raise _unreachable(host)
    if not all(reach.allows(address, port) for address in found):
        raise FetchError(
            f"{host} is not a public address.",
            hint="Only public pages are fetched, from the usual ports. "
            "What is on this computer or your own network can be saved and added as a file.",
            key="fetch_private",
            host=host,
        )
    if any(is_own_server(address, port) for address in found):
        hint = "Give the address of another service."
        raise FetchError(f"{host} is Parlour's own address.", hint=hint, key="fetch_own", host=host)
    return found


def _next(url: httpx.URL, response: httpx.Response) -> httpx.URL:
    import httpx

    try:
        return checked(str(url.join(response.headers.get("location", ""))))
    except (httpx.InvalidURL, ValueError) as error:
        raise _refused(url.host, response.status_code) from error


async def _received(response: httpx.Response, url: httpx.URL, limits: FetchLimits) -> Fetched:
    """The whole answer, within the limits."""
    if response.status_code != 200:
        raise _refused(url.host, response.status_code)
    media_type, _, more = response.headers.get("content-type", "").lower().partition(";")
    media_type = media_type.strip()
    if media_type and not media_type.startswith(limits.types):
        raise _other_kind(url.host, media_type)
    data = await body_of(response, url.host, limits.size)
    charset = more.partition("charset=")[2].split(";")[0].strip(" \"'")
    name = name_of(url.path, response.headers.get("content-disposition", ""), media_type) or url.host
    return Fetched(str(url), media_type, charset, data, name)


async def body_of(response: httpx.Response, host: str, most: int) -> bytes:
    """The body of an answer, unpacked.

    Raises:
        FetchError: It is too large, or packed in a way that was not asked for.
    """
    length, packed = response.headers.get("content-length", ""), response.headers.get("content-encoding", "")
    if not packed and length.isascii() and length.isdecimal() and int(length[:20]) > most:
        raise _too_large(host, most)
    try:
        body = Body(packed, most)
        async for piece in response.aiter_raw():
            body.feed(piece)
        return body.whole()
    except TooLargeError as error:
        raise _too_large(host, most) from error
    except ValueError as error:
        raise _other_kind(host, packed) from error


def _unreachable(host: str) -> FetchError:
    hint = "Check the address, and that this machine is online."
    return FetchError(f"{host} cannot be reached.", hint=hint, key="fetch_unreachable", host=host)


def _is_about_trust(error: BaseException | None) -> bool:
    """Whether a certificate is what the error comes from."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _untrusted(host: str) -> FetchError:
    hint = "Check the address; if it is right, save the page in a browser and add it as a file."
    return FetchError(f"The certificate of {host} cannot be trusted.", hint=hint, key="fetch_untrusted", host=host)


def _refused(host: str, status: int) -> FetchError:
    hint = "Open it in a browser; a page that asks for a login can be saved and added as a file."
    return FetchError(
        f"{host} does not give it out (status {status}).", hint=hint, key="fetch_refused", host=host, status=status
    )


def _too_large(host: str, most: int) -> FetchError:
    limit = max(1, round(most / 1024 / 1024))
    hint = "Save it, and add it as a file."
    return FetchError(
        f"What {host} sends is larger than {limit} MB.", hint=hint, key="fetch_too_large", host=host, limit=limit
    )


def _too_slow(host: str, seconds: float) -> FetchError:
    return FetchError(
        f"{host} took longer than {seconds:g} seconds.",
        hint="Try again later.",
        key="fetch_too_slow",
        host=host,
        seconds=f"{seconds:g}",
    )


def _other_kind(host: str, kind: str) -> FetchError:
    hint = "Pages, PDF, office files, pictures and text can be fetched."
    # A server may write whole sentences there, and this one is ours: a model takes it for our words.
    kind = kind if _KIND.fullmatch(kind) else "?"
    return FetchError(f"What {host} sends cannot be read ({kind}).", hint=hint, key="fetch_kind", host=host, kind=kind)
