"""`parlour keys create`: the key, and a line where what it is for is switched off."""

from __future__ import annotations

from pathlib import Path

import pytest

from webui.__main__ import main

EMBED = ["keys", "create", "blog", "--for", "embed", "--model", "scripted"]


def made(capsys: pytest.CaptureFixture[str], command: list[str], home: Path, lang: str = "en") -> list[str]:
    assert main([*command, "--home", str(home), "--lang", lang]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(("lang", "said"), [("en", "The small chat is off"), ("zh", "小聊天窗尚未开启")])
def test_a_key_for_the_small_chat_says_where_no_site_may_show_it(
    lang: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, key, note = made(capsys, EMBED, tmp_path / "home", lang)
    assert key.startswith("pk-")
    assert note.startswith(said)
    assert "PARLOUR_EMBED_SITES" in note


def test_a_key_for_what_is_on_says_no_more_than_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(made(capsys, ["keys", "create", "editor"], tmp_path / "home")) == 2
    monkeypatch.setenv("PARLOUR_EMBED_SITES", "https://blog.example.com")
    assert len(made(capsys, EMBED, tmp_path / "home")) == 2
