"""What signing in by another service and by a passkey need of the pages that let in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from core.errors import ParlourError
    from core.people.people import People, SignedIn
    from webui.words import Words


class SignInPages(Protocol):
    """Lets in who has proved who they are, and says why others are not."""

    people_here: People

    def words_of(self, request: Request) -> Words:
        """The words of the language that a request asks for."""
        ...

    def address_of(self, request: Request) -> str:
        """What wrong passwords of a browser are counted by besides its name; "" in a Space, where all have one."""
        ...

    def of_browser(self, request: Request) -> dict[str, str]:
        """What the browser says that it is, and the session that it has."""
        ...

    async def come_in(self, request: Request, done: SignedIn, to: str) -> Response:
        """Give the browser its session, and the person what she had as a guest."""
        ...

    async def refused(self, request: Request, error: ParlourError) -> Response:
        """The page to sign in, with why that did not work elsewhere."""
        ...
