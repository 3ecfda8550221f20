"""A model judges the sentences of a reply when its reader wants that, after its price was seen, and that is kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from core.errors import ModelServiceError, NotFoundError, SettingsError
from core.llm.request import ChatRequest
from core.runs.log import ModelCalled
from core.runs.reply import Reply as Shown
from core.runs.rows import logged_of
from core.storage.preferences import PreferenceStore
from core.testing.script import Reply
from core.workspace.judging import JudgingState
from tests.webui.server.test_evidence import House, opened, policy_text
from webui.frames import Frames
from webui.panels.settings import ShownSettings, settings_html
from webui.render.citations import claims_summary
from webui.render.judging import Judging, judging_html
from webui.words import Words

pytestmark = pytest.mark.anyio

SAID = (
    "The deductible for water damage is four hundred and twenty euros. "
    "Fire damage has a deductible of three hundred euros. "
    "The deductible for water damage is 900 euros in the cellar."
)
NO_TO_THE_SECOND = Reply('{"1": "yes", "2": "no"}')


class Judged:
    """A house in which a reply has three sentences: the rules speak against the third."""

    def __init__(self, house: House, asked: list[ChatRequest]) -> None:
        self.house = house
        self.asked = asked

    @property
    def calls(self) -> int:
        """How often a model was asked to judge."""
        return sum(one.purpose == "claims" for one in self.asked)

    async def does(self, step: str = "") -> None:
        await self.house.does(do="judge", id=self.house.reply, step=step)

    async def reply(self) -> Shown:
        message = await self.house.engine.stores.of(self.house.view.owner).conversations.message(self.house.reply)
        return await self.house.engine.runs.of(self.house.view.owner).reply(message)

    async def line(self, lang: str = "en") -> str:
        """The line below the reply."""
        async with self.house.desk.workspace(self.house.view) as workspace:
            may, state = await workspace.judging.may(), workspace.judging.state(self.house.reply)
        judging = Judging(state) if may else None
        return unescape(judging_html(await self.reply(), Words.of(lang), self.house.reply, judging))

    async def page(self) -> str:
        """The conversation as a tab gets it."""
        frames = Frames(self.house.engine, self.house.desk.views)
        async for frame in frames.follow(self.house.view):
            if frame is not None:
                return unescape(json.dumps(frame.chat, ensure_ascii=False, default=str))
        return ""

    async def verdicts(self) -> list[str]:
        return [one.verdict for one in (await self.reply()).claims]

    async def settled(self) -> None:
        """Wait until nothing is made beside any more."""
        async with asyncio.timeout(180):
            while self.house.engine.services.beside.is_busy(self.house.engine.stores.of(self.house.view.owner)):
                await asyncio.sleep(0.01)  # between two looks


@asynccontextmanager
async def replied(tmp_path: Path, judge: Callable[[ChatRequest], Reply], choice: str = "") -> AsyncIterator[Judged]:
    asked: list[ChatRequest] = []

    def answering(request: ChatRequest) -> Reply:
        asked.append(request)
        return judge(request) if request.purpose == "claims" else Reply(SAID)

    async with opened(tmp_path / "home", answering=answering) as house:
        house.engine.services.beside._idle = 0.01  # pyright: ignore[reportPrivateUsage]
        await house.engine.stores.of(house.view.owner).preferences.change("judge", choice)
        await house.asks(policy_text(tmp_path))
        judged = Judged(house, asked)
        await judged.settled()
        yield judged


async def test_another_model_than_the_one_whose_price_was_shown_is_offered_anew(
    tmp_path: Path, anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with replied(tmp_path, lambda _: NO_TO_THE_SECOND) as judged:
        await judged.does()
        monkeypatch.setattr("core.workspace.judging._priced", _dear)
        await judged.does("yes")
        await judged.settled()
        assert judged.calls == 0, "its price was not seen"
        assert "12.00" in await judged.line()
        await judged.does("yes")
        await judged.settled()
        assert judged.calls == 1


async def _dear(*_: object) -> JudgingState:
    return JudgingState("offered", "another", 100, cost=12.0)


async def test_two_quick_presses_ask_once_and_what_is_under_way_can_be_stopped_though_judging_is_switched_off(
    tmp_path: Path, anyio_backend: str
) -> None:
    async with replied(tmp_path, lambda _: Reply('{"1": "yes", "2": "no"}', pace=30.0)) as judged:
        await judged.does()
        await asyncio.gather(judged.does("yes"), judged.does("yes"))
        await judged.house.engine.stores.of(judged.house.view.owner).preferences.change("judge", "never")
        async with judged.house.desk.workspace(judged.house.view) as workspace:
            states = await workspace.judging.states({judged.house.reply: await judged.reply()})
        assert states is not None
        assert states[judged.house.reply] is not None
        await judged.does("stop")
        await judged.settled()
        assert judged.calls <= 1
        assert await judged.verdicts() == ["supported", "supported", "unsupported"]


async def test_it_is_asked_on_the_second_click_after_the_price_and_what_it_says_is_kept(
    tmp_path: Path, anyio_backend: str
) -> None:
    async with replied(tmp_path, lambda _: NO_TO_THE_SECOND) as judged:
        assert await judged.verdicts() == ["supported", "supported", "unsupported"]
        assert "Checked without a model." in await judged.line()
        await judged.does("yes")
        await judged.settled()
        assert judged.calls == 0, "its price was not seen"
        await judged.does()
        assert judged.calls == 0
        line = await judged.line()
        assert "tokens (free)" in line
        assert "55 %" in line
        await judged.does("yes")
        await judged.settled()
        assert judged.calls == 1
        assert await judged.verdicts() == ["supported", "unsupported", "unsupported"]
        assert "support 1 of the 2 sentences" in await judged.line()
        assert "Rules and a model found support for 1 of 3 sentences" in claims_summary(
            await judged.reply(), Words.of("en")
        )
        text = judged.asked[-1].messages[-1].get_text_content()
        assert "900 euros in the cellar" not in text, "what the rules speak against is not asked about"
    async with opened(tmp_path / "home", judged.house.view.conversation_id) as again:
        again.reply = judged.house.reply
        later = Judged(again, [])
        assert await later.verdicts() == ["supported", "unsupported", "unsupported"]
        assert "句中，段落能支持 1 句" in await later.line("zh")
        runs = again.engine.stores.of(again.view.owner).runs
        message = await again.engine.stores.of(again.view.owner).conversations.message(again.reply)
        events = [one.event for one in logged_of(await runs.events(message.run_id or ""))]
        (line,) = [one for one in events if isinstance(one, ModelCalled) and one.purpose == "claims"]
        assert line.usage is not None
        async with again.desk.workspace(again.view) as workspace:
            calls = await workspace.conversation(message.conversation_id).inspecting().lines(message)
        assert "claims" in [one.purpose for one in calls]


async def test_not_now_takes_the_offer_away(tmp_path: Path, anyio_backend: str) -> None:
    async with replied(tmp_path, lambda _: NO_TO_THE_SECOND) as judged:
        await judged.does()
        await judged.does("no")
        assert "Checked without a model." in await judged.line()
        await judged.does("yes")
        await judged.settled()
        assert judged.calls == 0


async def test_stop_leaves_what_the_rules_say(tmp_path: Path, anyio_backend: str) -> None:
    async with replied(tmp_path, lambda _: Reply(hang=True)) as judged:
        await judged.does()
        await judged.does("yes")
        async with asyncio.timeout(30):
            while not judged.calls:
                await asyncio.sleep(0.01)  # until the model is asked
        line = await judged.line()
        assert "judges the sentences" in line
        assert "#do-judgestop-" in line
        await asyncio.wait_for(judged.does("stop"), 10)
        await judged.settled()
        assert await judged.verdicts() == ["supported", "supported", "unsupported"]
        assert "Checked without a model." in await judged.line()


async def test_a_service_that_fails_gives_one_sentence_and_leaves_what_the_rules_say(
    tmp_path: Path, anyio_backend: str
) -> None:
    def fails(_: ChatRequest) -> Reply:
        raise ModelServiceError("503", "overloaded")

    async with replied(tmp_path, fails) as judged:
        await judged.does()
        await judged.does("yes")
        await judged.settled()
        line = await judged.line()
        assert "The rules’ verdict stays." in line
        page = await judged.page()
        assert "The rules’ verdict stays." in page
        assert "Try again…" in line
        assert await judged.verdicts() == ["supported", "supported", "unsupported"]
        await judged.does()
        assert "tokens (free)" in await judged.line(), "the price stands there again"


async def test_a_model_that_says_neither_yes_nor_no_changes_nothing(tmp_path: Path, anyio_backend: str) -> None:
    async with replied(tmp_path, lambda _: Reply("I would rather not.")) as judged:
        await judged.does()
        await judged.does("yes")
        await judged.settled()
        assert await judged.verdicts() == ["supported", "supported", "unsupported"]
        assert "said neither yes nor no" in await judged.line()


@pytest.mark.parametrize(("choice", "calls"), [("always", 1), ("", 0), ("never", 0)])
async def test_it_is_asked_by_itself_only_where_that_was_chosen(
    tmp_path: Path, anyio_backend: str, choice: str, calls: int
) -> None:
    async with replied(tmp_path, lambda _: NO_TO_THE_SECOND, choice) as judged:
        assert judged.calls == calls
        assert (await judged.verdicts())[1] == ("unsupported" if calls else "supported")
        if choice == "never":
            assert "do-judge" not in await judged.line()
            with pytest.raises(NotFoundError):
                await judged.does()


def test_the_settings_offer_three_ways_and_say_what_each_reply_costs() -> None:
    page = unescape(settings_html(ShownSettings(judge_cost=0.0012), Words("en")))
    row = page.partition('id="p-v-judge"')
    assert "up to 2,300 tokens ($0.0012)" in row[0][-500:]
    assert '<option value="" selected>On a click</option>' in row[2][:300]
    assert 'id="p-v-judge"' not in settings_html(ShownSettings(may_judge=False), Words("en"))


def test_other_values_are_refused() -> None:
    async def change(value: Any) -> None:
        await PreferenceStore(None).change("judge", value)  # pyright: ignore[reportArgumentType]

    for wrong in ("sometimes", True, 1):
        with pytest.raises(SettingsError):
            asyncio.run(change(wrong))
