"""People who sign in by an account at another service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from core.errors import ConflictError, ParlourError
from core.people.names import LONGEST_NAME, checked_name
from core.people.people import hash_of, new_person

if TYPE_CHECKING:
    from core.people.openid import Account
    from core.people.people import People, SignedIn
    from core.storage.people import Person, Role

_MOST_TRIES: Final = 20
_NAMELESS: Final = "Somebody"


async def sign_in_outside(
    people: People, account: Account, *, link: str = "", newcomers: Role | None = None, browser: str, former: str = ""
) -> SignedIn:
    """Sign a browser in as who has an account elsewhere; somebody new comes by a one-time link, or as settings say.

    What the service calls them is a name only: a person of that name here is somebody else.

    Args:
        link: The token of a link that they came by; "" for none.
        newcomers: The role of who comes without one; `None` where nobody may.
        browser: What the browser says that it is.
        former: The token that it has, which counts no more.

    Raises:
        NotFoundError: key `link_gone`.
        ParlourError: key `openid_unknown`: there is nobody with this account, and nobody new may come.
    """
    found = await people.store.signed_in_as(account.issuer, account.subject)
    person = found[0] if found is not None else await _made(people, account, link, newcomers)
    return await people.open_session(person, browser=browser, former=former)


async def _made(people: People, account: Account, link: str, newcomers: Role | None) -> Person:
    invitation = await people.store.invitation(hash_of(link)) if link else None
    role = invitation.role if invitation is not None else newcomers
    if role is None or (invitation is not None and invitation.person_id is not None):
        hint = "Ask for an invitation, and sign in by it."
        raise ParlourError("Nobody here has this account.", hint=hint, key="openid_unknown")
    wanted, outside = _name_of(account), (account.issuer, account.subject)
    for number in range(1, _MOST_TRIES):
        name = wanted if number == 1 else f"{wanted[: LONGEST_NAME - 4]} {number}"
        person = new_person(name, role)
        try:
            if invitation is not None:
                return await people.store.accept(invitation.id, person, outside)
            return await people.store.add(person, name, outside)
        except ConflictError:
            if (found := await people.store.signed_in_as(*outside)) is not None:  # in another tab, this very moment
                return found[0]
    return await people.store.add(new_person(new_person(_NAMELESS, role).id, role), _NAMELESS, outside)


def _name_of(account: Account) -> str:
    try:
        return checked_name(account.name[:LONGEST_NAME])
    except ParlourError:
        return _NAMELESS
