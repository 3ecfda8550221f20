"""What each role may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from core.storage.people import ROLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.storage.people import Role

Right: TypeAlias = Literal["talk", "own", "programs", "house"]
"""`talk`: ask with the models of the house, and keep what comes of it. `own`: services and keys of one's own, MCP
servers on the web, libraries, code, links to snapshots. `programs`: tools that start programs of the machine, and
addresses in its network. `house`: people, links that let them in, sums of use, the audit, the models of the house."""

RIGHTS: Final[Mapping[Role, frozenset[Right]]] = {
    "guest": frozenset({"talk"}),
    "member": frozenset({"talk", "own"}),
    "administrator": frozenset({"talk", "own", "programs", "house"}),
    "owner": frozenset({"talk", "own", "programs", "house"}),
}


def may(role: Role, right: Right) -> bool:
    """Whether a role has a right."""
    return right in RIGHTS[role]


def may_set(mine: Role, theirs: Role, to: Role) -> bool:
    """Whether who has the role `mine` may give somebody who has `theirs` the role `to`, or take theirs away.

    Owners may all; administrators may what concerns guests and members alone, so that they cannot put themselves above
    those who made them administrators.
    """
    if mine == "owner":
        return True
    return mine == "administrator" and max(_rank(theirs), _rank(to)) <= _rank("member")


def _rank(role: Role) -> int:
    return ROLES.index(role)
