"""People with accounts: how they come, sign in and leave; and what administrators may do about them."""

from __future__ import annotations

import re
import secrets
import time
from collections import OrderedDict
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

from core.bridge.pool import BoundedDict, Listeners
from core.errors import NotFoundError, ParlourError
from core.people.names import checked_name, name_key
from core.people.passwords import Passwords, check_password
from core.people.roles import may, may_set
from core.people.tries import Tries, TryLimiter
from core.storage.people import ROLES, TERMINAL, Invitation, Person, Session

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from core.people.roles import Right
    from core.storage.people import PeopleStore, Role

PERSON: Final = "p-"
"""The ids of owners that are people begin so."""
STAYS: Final = 30 * 24 * 3600.0
"""Seconds for which a session that is not used is there."""
INVITED_FOR: Final = 7 * 24 * 3600.0
FRESH: Final = 600.0
"""Seconds after signing in, or typing the password, in which nobody is asked for it once more to remove a way in."""
LIMITED: Final = ("messages", "tokens", "cost", "megabytes")
_WHOLE: Final = frozenset({"messages", "tokens"})
"""What a person or a group may have limits of: questions in a day, tokens and US dollars in a month, stored files."""
_MOST_OF_A_LIMIT: Final = 1e15
_IN_GROUPS: Final = re.compile(r"\d{1,3}(,\d{3})+(\.\d*)?", re.ASCII)
_SEEN_EACH: Final = 300.0  # seconds between two notes that a session is used
_SURE_FOR: Final = 5.0  # seconds for which a session is not looked for again: another process may have ended it
_MOST_KNOWN: Final = 10_000
_LONGEST_BROWSER: Final = 200


class SignedIn(NamedTuple):
    """A browser that signed in: the token that its cookie is to hold, and what it opens."""

    token: str
    session: Session
    person: Person


class Ended(NamedTuple):
    """Sessions of a person that ended: one by its id, or, where that is "", all but one.

    Args:
        but: The id of the one that goes on; "" for none.
    """

    person_id: str
    session_id: str = ""
    but: str = ""

    def covers(self, session: Session) -> bool:
        """Whether a session is among them."""
        if session.person_id != self.person_id or (self.but and session.id == self.but):
            return False
        return not self.session_id or session.id == self.session_id


class Known(NamedTuple):
    """Who asks, and by which session."""

    person: Person
    session: Session


class People:
    """The rules about people, over what is stored of them.

    Args:
        store: Has them.
        tries: Counts wrong passwords.

    Attributes:
        ended: Told of sessions that ended, so that whoever serves one stops.
    """

    def __init__(self, store: PeopleStore, tries: TryLimiter | None = None) -> None:
        self.store = store
        self._tries = tries or Tries()
        self._in_use = False
        self._proved = BoundedDict[str, float](_MOST_KNOWN)  # when a password was typed, by session
        self._sessions: OrderedDict[str, tuple[Known | None, float]] = OrderedDict()
        self.ended = Listeners[Ended]()

    async def begin(self) -> None:
        """From now on who has no account is a guest. Raises MissingExtraError, StorageError."""
        self._in_use = True
        await self.passwords.matches("", "")  # the first who signs in waits no longer than the others
        await self.store.list()

    def may(self, person_id: str, right: Right) -> bool:
        """Whether somebody has a right; without accounts each owner has all."""
        return not self._in_use or may(self.store.roles.get(person_id, "guest"), right)

    def check_may(self, person_id: str, right: Right) -> None:
        """Whether somebody has a right. Raises ParlourError (key `role_forbidden`)."""
        if not self.may(person_id, right):
            raise forbidden()

    def lets_programs_in(self, person_id: str) -> bool:
        """Whether programs of somebody may come in, by a key or a token that was once given to them."""
        return not self.is_gone(person_id) and self.may(person_id, "own")

    def is_gone(self, person_id: str) -> bool:
        """Whether this is somebody whose account was deleted."""
        return person_id.startswith(PERSON) and person_id not in self.store.roles

    @cached_property
    def passwords(self) -> Passwords:
        """Made when the first is needed. Raises MissingExtraError."""
        return Passwords()

    # ---- who asks

    async def by_session(self, tokens: Iterable[str]) -> Known | None:
        """Who shows one of these tokens; `None` for nobody. Raises StorageError."""
        for token in tokens:
            known = await self._session(hash_of(token))
            if known is not None:
                return known
        return None

    async def _session(self, session_id: str) -> Known | None:
        now = time.time()
        found, at = self._sessions.get(session_id, (None, 0.0))
        if not now - _SURE_FOR < at <= now:
            both = await self.store.session(session_id, now - STAYS)
            if both is None and found is not None:  # another process ended it
                self._drop(found.person.id, session_id)
            found = Known(both[1], both[0]) if both is not None else None
            self._keep(session_id, found, now)
        if found is not None and now - found.session.seen_at > _SEEN_EACH:
            await self.store.seen(session_id, found.person.id, now)
            session = Session(session_id, found.person.id, found.session.browser, found.session.created_at, seen_at=now)
            found = Known(found.person, session)
            self._keep(session_id, found, now)
        return found

    def _keep(self, session_id: str, known: Known | None, now: float) -> None:
        self._sessions[session_id] = (known, now)
        self._sessions.move_to_end(session_id)
        while len(self._sessions) > _MOST_KNOWN:
            self._sessions.popitem(last=False)

    # ---- coming and going

    async def sign_in(self, name: str, password: str, *, address: str, browser: str, former: str = "") -> SignedIn:
        """Sign a browser in by a name and a password.

        Whether there is somebody of this name makes no difference, neither in what is said nor in how long it takes.

        Args:
            address: Where it comes from, for counting wrong passwords.
            browser: What it says that it is.
            former: The token that it has, which counts no more.

        Raises:
            ParlourError: key `sign_in_wrong`.
            TooManyRequestsError: key `sign_in_often`.
            StorageError: The database failed.
        """
        key = name_key(name)
        await self._tries.begin(key, address)
        person = await self.store.named(key)
        kept = person.password if person is not None else ""
        if not await self.passwords.matches(kept, password) or person is None:
            raise ParlourError("Name or password is wrong.", key="sign_in_wrong")
        await self._tries.was_right(key, address)
        if self.passwords.is_weak(kept):
            await self.store.rehash(person.id, kept, await self.passwords.hashed(password))
        return await self.open_session(person, browser=browser, former=former)

    async def open_session(self, person: Person, *, browser: str, former: str = "") -> SignedIn:
        """Sign a browser in as somebody who has proved who they are: always by a new token. Raises StorageError."""
        token, now = secrets.token_urlsafe(32), time.time()
        browser = browser[:_LONGEST_BROWSER].encode(errors="replace").decode()
        session = Session(hash_of(token), person.id, browser, now, now)
        gone = hash_of(former) if former else ""
        await self.store.open_session(session, gone)
        if gone:
            known, _ = self._sessions.pop(gone, (None, 0.0))
            self.ended(Ended(known.person.id if known else person.id, gone))
        return SignedIn(token, session, person)

    async def sign_out(self, known: Known) -> None:
        """End the session. Raises StorageError."""
        await self.end_session(known.person, known.session.id)

    async def end_session(self, person: Person, session_id: str) -> None:
        """End one of a person's own sessions. Raises StorageError."""
        await self.store.end_session(person.id, session_id)
        self._drop(person.id, session_id)

    async def change_password(self, known: Known, old: str, new: str, *, address: str) -> None:
        """Another password for who knows the old one; all other sessions end.

        Raises:
            ParlourError: key `password_wrong`, or as `check_password`.
            TooManyRequestsError: key `sign_in_often`.
        """
        person = await self.check_password_of(known, old, address=address)
        check_password(new, person.name)
        await self.store.set_password(person.id, await self.passwords.hashed(new), but=known.session.id)
        self._drop(person.id, but=known.session.id)

    async def check_password_of(self, known: Known, password: str, *, address: str) -> Person:
        """Whether somebody who is signed in knows their password; who has none must have signed in a moment ago.

        Raises:
            ParlourError: key `password_wrong` or `sign_in_again`.
            TooManyRequestsError: key `sign_in_often`.
        """
        person = await self.store.get(known.person.id)
        if not person.password:
            if not self._is_fresh(known):
                hint = "Sign out, and in again."
                raise ParlourError("This browser signed in a while ago.", hint=hint, key="sign_in_again")
            return person
        await self._tries.begin(person.name_key, address)
        if not await self.passwords.matches(person.password, password):
            raise ParlourError("The present password is wrong.", key="password_wrong")
        await self._tries.was_right(person.name_key, address)
        self._proved[known.session.id] = time.time()
        return person

    async def check_there(self, known: Known, password: str, *, address: str) -> None:
        """Whether somebody is at the browser who knows the password, or signed in within the last ten minutes.

        A password that was right counts as long. Raises as `check_password_of`.
        """
        if not self._is_fresh(known):
            await self.check_password_of(known, password, address=address)

    def _is_fresh(self, known: Known) -> bool:
        proved = max(known.session.created_at, self._proved.get(known.session.id, 0.0))
        return 0 <= time.time() - proved < FRESH

    async def accept(self, token: str, name: str, password: str, *, browser: str, former: str = "") -> SignedIn:
        """Become a person by an invitation, and be signed in.

        Raises:
            ConflictError: key `name_taken`.
            NotFoundError: key `link_gone`.
            ParlourError: As `checked_name` and `check_password`.
        """
        invitation = await self.store.invitation(hash_of(token))  # first: a guess costs no hashing
        shown = checked_name(name)
        check_password(password, shown)
        hashed = await self.passwords.hashed(password)
        made = await self.store.accept(invitation.id, new_person(shown, invitation.role, hashed))
        return await self.open_session(made, browser=browser, former=former)

    async def recover(self, token: str, password: str, *, browser: str, former: str = "") -> SignedIn:
        """Choose a new password by a recovery link, and be signed in; all other ways in that there were end.

        Raises:
            NotFoundError: key `link_gone`.
            ParlourError: As `check_password`.
        """
        invitation = await self.store.invitation(hash_of(token))
        check_password(password)
        person = await self.store.renew(invitation.id, await self.passwords.hashed(password))
        self._drop(person.id)
        return await self.open_session(person, browser=browser, former=former)

    async def link(self, token: str) -> Invitation:
        """What a one-time link is for. Raises NotFoundError (`link_gone`), StorageError."""
        return await self.store.invitation(hash_of(token))

    # ---- what administrators do

    async def first_link(self) -> str | None:
        """The token of a link that makes the first owner; `None` where there are people. Raises StorageError."""
        await self.store.list()
        if self.store.roles:
            return None
        return await self._invited("owner", "", INVITED_FOR, replace=True)

    async def invite(self, me: Person | None, role: str, *, seconds: float = INVITED_FOR) -> str:
        """The token of a link that makes a person of a role.

        Args:
            me: Who invites; `None` for whoever has the terminal.
            seconds: How long it counts.

        Raises:
            ParlourError: key `role_forbidden`.
        """
        wanted = checked_role(role)
        _check_may(await self._fresh(me), wanted, wanted)
        return await self._invited(wanted, by_whom(me), seconds)

    async def recovery_link(self, me: Person | None, person_id: str, *, seconds: float = INVITED_FOR) -> str:
        """The token of a link that lets somebody choose a new password; an earlier one counts no more.

        Raises:
            NotFoundError: There is no such person.
            ParlourError: key `role_forbidden`.
        """
        person = await self.store.get(person_id)
        _check_may(await self._fresh(me), person.role, person.role)
        token, now = secrets.token_urlsafe(32), time.time()
        made = Invitation(hash_of(token), person.role, person.id, by_whom(me), now, now + seconds)
        await self.store.invite(made, replace=True)
        return token

    async def revoke(self, me: Person | None, invitation_id: str) -> None:
        """Let a link count no more. Raises NotFoundError (`link_gone`), ParlourError (`role_forbidden`)."""
        invitation = await self.store.invitation(invitation_id)
        _check_may(await self._fresh(me), invitation.role, invitation.role)
        await self.store.revoke(invitation_id, by_whom(me))

    async def set_role(self, me: Person | None, person_id: str, role: str) -> Person:
        """Another role for somebody, which holds at once.

        Raises:
            ConflictError: key `last_owner`.
            NotFoundError: There is no such person.
            ParlourError: key `role_forbidden`.
        """
        wanted = checked_role(role)
        person = await self.store.get(person_id)
        _check_may(await self._fresh(me), person.role, wanted)
        changed = await self.store.set_role(person_id, wanted, by_whom(me))
        self._forget(person_id)
        return changed

    async def end_sessions(self, me: Person | None, person_id: str) -> None:
        """End all sessions of somebody. Raises NotFoundError, ParlourError (`role_forbidden`)."""
        person = await self.store.get(person_id)
        _check_may(await self._fresh(me), person.role, person.role)
        await self.store.end_sessions(person_id, by_whom(me))
        self._drop(person_id)

    async def set_limits(self, me: Person | None, person_id: str, typed: Mapping[str, str]) -> None:
        """What somebody may use, each a number as it was typed; what is left empty is as usual, 0 is no limit.

        Raises:
            NotFoundError: There is no such person.
            ParlourError: key `limits_odd` or `role_forbidden`.
        """
        person = await self.store.get(person_id)
        _check_may(await self._fresh(me), person.role, person.role)
        await self.store.set_limits(person_id, typed_limits(typed), by_whom(me))

    async def remove(self, me: Person | None, person_id: str) -> Person:
        """Take an account away, one's own included; what is theirs is to be deleted after that.

        Raises:
            ConflictError: key `last_owner`.
            NotFoundError: There is no such person.
            ParlourError: key `role_forbidden`.
        """
        person = await self.store.get(person_id)
        if me is None or me.id != person_id:
            _check_may(await self._fresh(me), person.role, person.role)
        gone = await self.store.remove(person_id, by_whom(me))
        self._drop(person_id)
        return gone

    # ---- inside

    async def _invited(self, role: Role, by: str, seconds: float, *, replace: bool = False) -> str:
        token, now = secrets.token_urlsafe(32), time.time()
        await self.store.invite(Invitation(hash_of(token), role, None, by, now, now + seconds), replace=replace)
        return token

    async def _fresh(self, me: Person | None) -> Person | None:
        """Who acts, with the role that they have this moment: another may have just taken it."""
        if me is None:
            return None
        try:
            return await self.store.get(me.id)
        except NotFoundError as error:
            raise forbidden() from error

    def _forget(self, person_id: str) -> None:
        for session_id in [one for one, (known, _) in self._sessions.items() if known and known.person.id == person_id]:
            del self._sessions[session_id]

    def _drop(self, person_id: str, session_id: str = "", *, but: str = "") -> None:
        """Forget sessions that ended, and tell whoever still serves one."""
        if session_id:
            self._sessions.pop(session_id, None)
        else:
            self._forget(person_id)
        self.ended(Ended(person_id, session_id, but))


def typed_limits(typed: Mapping[str, str]) -> dict[str, float]:
    """Limits of what is named in `LIMITED`, each as it was typed; what is left empty is left out.

    Raises:
        ParlourError: key `limits_odd`.
    """
    return {name: _number(text, whole=name in _WHOLE) for name in LIMITED if (text := typed.get(name, "").strip())}


def _number(typed: str, *, whole: bool) -> float:
    """A number from 0 up, also as pages write it, with commas between thousands. Raises ParlourError (`limits_odd`)."""
    try:
        number = float((typed.replace(",", "") if _IN_GROUPS.fullmatch(typed) else typed)[:20])
    except ValueError:
        number = -1.0
    if not 0 <= number < _MOST_OF_A_LIMIT or (whole and number % 1):
        raise ParlourError("A limit is a number from 0 up; of questions and tokens, a whole one.", key="limits_odd")
    return number


def hash_of(token: str) -> str:
    """What finds a session or a link by its token: the table alone opens nothing."""
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def new_person(name: str, role: Role, password: str = "") -> Person:
    """Somebody new, with a name that was checked and the hash of a password."""
    return Person(f"{PERSON}{secrets.token_urlsafe(16)}", name, name_key(name), role, password, {}, time.time(), None)


def checked_role(role: str) -> Role:
    """A role by its name. Raises ParlourError (key `role_unknown`)."""
    found: Role | None = next((one for one in ROLES if one == role), None)
    if found is None:
        raise ParlourError("There is no such role.", hint=f"Known: {', '.join(ROLES)}.", key="role_unknown")
    return found


def by_whom(me: Person | None) -> str:
    """Who acts, as it stands in the audit."""
    return me.name if me is not None else TERMINAL


def _check_may(me: Person | None, theirs: Role, to: Role) -> None:
    if me is not None and not may_set(me.role, theirs, to):
        raise forbidden()


def forbidden() -> ParlourError:
    """What is said to whom a role does not allow something."""
    return ParlourError("Your role does not allow this.", hint="Ask an owner.", key="role_forbidden")
