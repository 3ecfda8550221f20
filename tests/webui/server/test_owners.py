"""Who asks: the bound address decides, cookies are signed, and foreign pages get no answer."""

from __future__ import annotations

import time
from hashlib import sha256

import pytest
from itsdangerous import TimestampSigner

from core.storage.base import LOCAL_OWNER
from webui.auth import Hosts, Owners

ODD_HOSTS = [
    "127.0.0.1:x",
    "127.0.0.1:80/../",
    "localhost:1 2",
    "[::1]x",
    "[::1",
    "127.0.0.1:",
    "localhost@evil:1",
    "a\nb",
]


def cookie_of(owners: Owners, owner: str) -> str:
    return owners.cookie(owner, https=False).partition(";")[0]


def test_on_a_loopback_address_everything_belongs_to_the_local_owner() -> None:
    owners = Owners("key", local=True)
    assert owners.of("") == LOCAL_OWNER
    assert owners.of("parlour=whatever") == LOCAL_OWNER


def test_a_browser_is_known_again_by_its_cookie() -> None:
    owners = Owners("key", local=False)
    owner = owners.new()
    assert owners.of(f"other=1; {cookie_of(owners, owner)}; more=2") == owner


@pytest.mark.parametrize("other", ['seen={"a": 1}', "a=b c", "[x]=1", "foo@bar=1", "a,b=1", 'q="open', "bare", "名=ü"])
def test_a_strange_cookie_of_another_program_does_not_make_a_browser_somebody_new(other: str) -> None:
    owners = Owners("key", local=False)
    owner = owners.new()
    assert owners.of(f"{other}; {cookie_of(owners, owner)}; {other}") == owner


@pytest.mark.parametrize(
    "cookies", ["", "=", "parlour", ";;;", "a=b", "\x00", "{name}=x", "{name}=local", "{name}=ü.ü.ü"]
)
def test_a_request_without_a_good_cookie_is_nobody(cookies: str) -> None:
    owners = Owners("key", local=False)
    assert owners.of(cookies.replace("{name}", owners.cookie_name)) is None


def test_a_cookie_of_another_server_or_changed_by_hand_is_worth_nothing() -> None:
    owners, other = Owners("key", local=False), Owners("another key", local=False)
    forged = cookie_of(other, "b-alice").replace(other.cookie_name, owners.cookie_name)
    changed = cookie_of(owners, "b-alice").replace("b-alice", "b-bob")
    assert owners.of(forged) is None
    assert owners.of(changed) is None


def test_the_cookie_is_kept_from_scripts_and_other_sites() -> None:
    owners = Owners("key", local=False)
    plain, secure = owners.cookie("b-a", https=False), owners.cookie("b-a", https=True)
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(plain.split("; "))
    assert "Secure" not in plain.split("; ")
    assert "Secure" in secure.split("; ")
    framed = Owners("key", local=False, framed=True).cookie("b-a", https=False).split("; ")
    assert {"HttpOnly", "SameSite=None", "Secure", "Partitioned"} <= set(framed)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:7860", "localhost:1", "LOCALHOST.", "[::1]:80", "[::1]"])
def test_a_server_of_this_machine_answers_to_the_names_of_this_machine(host: str) -> None:
    assert Hosts("127.0.0.1", any_address=False).knows(host)


@pytest.mark.parametrize(
    "host", ["", "evil.example", "127.0.0.1.evil.example", "10.0.0.5", "localhost.evil:1", *ODD_HOSTS]
)
def test_a_server_of_this_machine_answers_to_no_other_name(host: str) -> None:
    assert not Hosts("127.0.0.1", any_address=False).knows(host)


def test_bound_to_a_network_addresses_in_figures_are_fine_and_names_must_be_allowed() -> None:
    hosts = Hosts("0.0.0.0", ("chat.example", ""), any_address=True)
    assert hosts.knows("192.168.1.7:7860")
    assert hosts.knows("Chat.Example:443")
    assert not hosts.knows("evil.example:7860")
    assert not hosts.knows("")


@pytest.mark.parametrize(
    ("origin", "trusted"),
    [
        ("http://127.0.0.1:7860", True),
        ("https://chat.example", True),
        ("http://localhost:7860", False),  # another origin for a browser, so for us
        ("http://127.0.0.1:3000", False),
        ("https://evil.example", False),
        ("null", False),
        ("", False),
        ("file://", False),
        ("http://127.0.0.1:7860.evil.example", False),
    ],
)
def test_only_pages_of_this_server_and_of_allowed_names_may_ask(origin: str, trusted: bool) -> None:
    hosts = Hosts("127.0.0.1", ("chat.example",), any_address=False)
    assert hosts.trusts(origin, "127.0.0.1:7860") is trusted


def test_a_default_port_may_be_left_out() -> None:
    hosts = Hosts("0.0.0.0", ("chat.example",), any_address=True)
    assert hosts.trusts("http://10.0.0.5:80", "10.0.0.5")
    assert hosts.trusts("http://10.0.0.5", "10.0.0.5:80")


DAY = 24 * 3600


def values(header: str) -> str:
    """What a browser sends back of a `Set-Cookie` header."""
    return header.partition(";")[0]


@pytest.mark.parametrize("days", [364, 366, 3650, -1 / 24, -1 / 1440, -400])
def test_a_cookie_names_its_owner_however_far_the_clock_has_gone_on_or_back(
    days: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners, now = Owners("key", local=False), time.time()
    cookie = values(owners.cookie("b-alice", https=False))
    monkeypatch.setattr(time, "time", lambda: now + days * DAY)
    assert owners.of(cookie) == "b-alice"
    assert not owners.unread(cookie)


def test_a_cookie_of_the_first_version_still_names_its_owner() -> None:
    old = TimestampSigner("key", salt="parlour.owner", digest_method=sha256).sign("b-alice").decode()
    assert Owners("key", local=False).of(f"parlour-{sha256(b'key').hexdigest()[:8]}={old}") == "b-alice"


def test_over_https_the_cookie_is_one_that_no_neighbour_can_plant() -> None:
    owners = Owners("key", local=False)
    safe, plain = owners.cookie("b-alice", https=True), owners.cookie("b-bob", https=False)
    assert safe.startswith(f"__Host-{owners.cookie_name}=")
    assert "Path=/" in safe
    assert "Domain" not in safe
    for cookies in (f"{values(safe)}; {values(plain)}", f"{values(plain)}; {values(safe)}"):
        assert owners.of(cookies) == "b-alice"
    framed = Owners("key", local=False, framed=True).cookie("b-a", https=False)
    assert framed.startswith("__Host-")


def test_a_cookie_that_a_neighbour_planted_beside_it_hides_nobody() -> None:
    owners = Owners("key", local=False)
    good = values(owners.cookie("b-alice", https=False))
    for planted in ("garbage", "", "b-eve.x.y"):
        assert owners.of(f"{owners.cookie_name}={planted}; {good}") == "b-alice"
        assert not owners.unread(f"{good}; {owners.cookie_name}={planted}")


def test_no_cookie_names_the_owner_of_the_machine() -> None:
    owners = Owners("key", local=False)
    assert owners.of(values(owners.cookie(LOCAL_OWNER, https=False))) is None


def test_a_browser_stays_who_it_is_as_long_as_it_comes_once_a_year(monkeypatch: pytest.MonkeyPatch) -> None:
    owners, now = Owners("key", local=False), time.time()
    first = owners.cookie("b-alice", https=False)
    lasts = int(first.partition("Max-Age=")[2].partition(";")[0])
    assert lasts > 366 * DAY, "so a visit a year later finds it, and renews it for as long again"
    monkeypatch.setattr(time, "time", lambda: now + 364 * DAY)
    again = owners.cookie(owners.of(values(first)) or "", https=False)
    monkeypatch.setattr(time, "time", lambda: now + 366 * DAY)
    assert owners.of(values(again)) == "b-alice"
