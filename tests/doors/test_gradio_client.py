"""Where `PARLOUR_PUBLIC_ASK` is on, Gradio's own client asks as it asks any Gradio application; elsewhere it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from core.testing.script import Reply, refusal
from tests.doors.house import house_in
from webui.handlers.public_queue import FUNCTION


@pytest.fixture(autouse=True)
def no_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client tells its makers nothing."""
    monkeypatch.setenv("GRADIO_ANALYTICS_ENABLED", "False")


def test_the_client_of_gradio_asks_one_question_after_another_and_two_at_once(
    tmp_path: Path,
) -> None:
    with house_in(tmp_path / "home", whole=True, owners="cookie", public_ask=20) as house:
        client = Client(house.address, verbose=False)
        told: Any = client.view_api(return_format="dict", print_info=False)
        assert [*told["named_endpoints"]] == ["/ask"]
        house.says(Reply(calls=[("calculator", {"expression": "6 * 7"})]), "It is 42.")
        assert client.predict("What is 6 times 7?", api_name="/ask") == "It is 42."
        house.says("Nobody.", "Nobody.")
        jobs = [client.submit(question="Is anybody there?", api_name="/ask") for _ in range(2)]
        assert [job.result(30) for job in jobs] == ["Nobody.", "Nobody."]
        client.close()


def test_what_fails_is_told_in_a_sentence_and_so_is_who_asks_too_often(tmp_path: Path) -> None:
    with house_in(tmp_path / "home", whole=True, owners="cookie", public_ask=1) as house:
        client = Client(house.address, verbose=False)
        house.says(*[refusal(400, "secret")] * 4)
        with pytest.raises(AppError) as failed:
            client.predict("Well?", api_name="/ask")
        assert "secret" not in str(failed.value)
        with pytest.raises(httpx.HTTPStatusError, match="429"):
            client.predict("And now?", api_name="/ask")
        client.close()


def test_the_queue_has_no_other_function_and_is_closed_where_nobody_may_ask(tmp_path: Path) -> None:
    with house_in(tmp_path / "home", whole=True, owners="cookie", public_ask=20) as house:
        for wrong in ({"fn_index": 0}, {"fn_index": FUNCTION, "session_hash": ""}, {"session_hash": "s"}, [], None):
            asked = {"data": ["Well?"], "session_hash": "s", **wrong} if isinstance(wrong, dict) else wrong
            assert httpx.post(f"{house.address}/gradio_api/queue/join", json=asked).status_code == 403
        for method, path in (("GET", "queue/data?session_hash=unheard"), ("POST", "queue/data"), ("GET", "queue/join")):
            assert httpx.request(method, f"{house.address}/gradio_api/{path}").status_code == 403


def test_left_out_it_is_closed(tmp_path: Path) -> None:
    with house_in(tmp_path / "home", whole=True, owners="cookie") as house:
        asked = {"data": ["Well?"], "fn_index": FUNCTION, "session_hash": "s"}
        assert httpx.post(f"{house.address}/gradio_api/queue/join", json=asked).status_code == 403
