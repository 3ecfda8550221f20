"""`WebUI`: a program's agents in the page that the `parlour` command opens."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from core.bridge.snapshots import as_messages
from core.settings import Settings
from webui.page_look import Look
from webui.server import LAST, bind
from webui.serving import serve

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.types import ASGIApp

    from core.agents.base import Agent
    from core.agents.hub import MultiAgentHub
    from core.engine import Engine
    from core.messages.message import Message

_log = logging.getLogger(__name__)


class WebUI:
    """Serves agents in the browser.

        WebUI(Assistant(llm={"model": "qwen-plus"}, files=["manual.pdf"])).run()

    What an agent's tool may do is asked on the page as ever; conversations are kept in Parlour's data folder.

    Args:
        agent: One agent, or several (a list, or what has several): then the page has a chooser.
        chatbot_config: `user.name`, `user.avatar` and `agent.avatar` (paths of pictures; the latter also a dict of
            them by the agents' names), `input.placeholder`,
            `prompt.suggestions` (texts, or dicts with `text` and `files`), `verbose` (a line in the terminal for each
            call of a model).

    Raises:
        SettingsError: It is no agent, two have the same name, or a key or value of `chatbot_config` makes no sense.
    """

    def __init__(
        self, agent: Agent | Sequence[Agent] | MultiAgentHub, chatbot_config: Mapping[str, Any] | None = None
    ) -> None:
        from core.workspace.program import agents_of

        self.agents = agents_of(agent)
        self.front: Callable[[ASGIApp], ASGIApp] | None = None  # what stands before the page, such as an agent's doors
        self.look = Look.of(chatbot_config)

    def run(
        self,
        messages: Sequence[Message | dict[str, Any]] | None = None,
        share: bool = False,  # noqa: FBT001, FBT002 - Qwen-Agent's signature
        server_name: str | None = None,
        server_port: int | None = None,
        concurrency_limit: int | None = None,
        enable_mention: bool = False,  # noqa: FBT001, FBT002 - Qwen-Agent's signature
        **kwargs: Any,
    ) -> None:
        """Serve until Ctrl-C, or a signal says stop; what the program has after this call is done then.

        Where closing hangs, the process ends after 20 seconds, as the `parlour` command does, and the log says where.

        Args:
            messages: What every new conversation begins with.
            share: Taken for compatibility: Parlour opens no tunnel to the internet, and says so.
            server_name: The address to listen on; 127.0.0.1 if left out. Any but this machine's own makes each
                browser an owner of its own.
            server_port: The port; 7860, or the next free one, if left out.
            concurrency_limit: How many replies are written at the same time; no limit if left out.
            enable_mention: Whether `@name` in a question turns to the agent of that name.
            kwargs: What `agent.run` is called with.

        Raises:
            ParlourError: The address, the port or the data folder cannot be used.
        """
        if share:
            _log.warning("share=True opens no tunnel here; server_name='0.0.0.0' serves the network you are in.")
        settings = Settings.load(host=server_name, port=server_port, log_calls=self.look.verbose or None)
        if settings.accounts == "auto" and not settings.bound_to_this_machine:  # the program itself opened it to others
            settings = settings.model_copy(update={"accounts": "guests"})
        if settings.log_calls:
            logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
            logging.getLogger("core.llm.calls").setLevel(logging.INFO)
        beginning, _ = as_messages(messages) if messages else ([], False)

        def engine(settings: Settings) -> Engine:
            from core.engine import Engine
            from core.workspace.program import Program

            program = Program(
                self.agents,
                mention=enable_mention,
                beginning=beginning,
                at_once=concurrency_limit,
                options=kwargs,
            )
            return Engine(settings, program=program)

        settings.make_home()
        sock = bind(settings.host, settings.port, next_free=settings.may_move_port)
        serve(settings, settings.signing_secret(), sock, engine, self.look, front=self.front, last=LAST, goes_on=True)
