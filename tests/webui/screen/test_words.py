"""Both languages say the same things, and every error has its sentence."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import string
import subprocess
import sys
from pathlib import Path

import pytest

import core.errors
from core.errors import ModelUnavailableError, ParlourError
from core.rag.parsers.catalog import READABLE
from webui.words import LANGUAGES, Words, script_words, sentences

EN, ZH = sentences("en"), sentences("zh")
ROOT = Path(__file__).resolve().parents[3]
WORDS = ROOT / "webui" / "words"
SOURCES = [path for room in ("core", "webui") for path in (ROOT / room).rglob("*.py")]


def blanks(sentence: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name}


def test_every_language_has_the_keys_of_english_and_no_others() -> None:
    assert {lang: set(EN) ^ set(sentences(lang)) for lang in LANGUAGES} == {lang: set() for lang in LANGUAGES}


def test_a_new_language_is_one_file(tmp_path: Path) -> None:
    room = tmp_path / "three_languages"
    shutil.copytree(WORDS, room, ignore=shutil.ignore_patterns("__pycache__"))
    assert {path.stem for path in room.glob("*.toml")} == set(LANGUAGES)
    table = (room / "en.toml").read_text("utf-8")
    (room / "fr.toml").write_text(table.replace("New chat", "Nouvelle discussion"), "utf-8")
    tried = "from three_languages import Words; print(Words.of('fr-FR,fr;q=0.9,en;q=0.8')('history.new'))"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}
    done = subprocess.run([sys.executable, "-c", tried], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "Nouvelle discussion"


def test_a_sentence_has_the_same_blanks_in_both_languages() -> None:
    assert not [key for key in EN if blanks(EN[key]) != blanks(ZH[key])]


def test_no_sentence_is_empty() -> None:
    assert not [key for table in (EN, ZH) for key, said in table.items() if not said.strip()]


# Words that readers stumbled over, and that others took the place of.
RETIRED = re.compile(r"\b([Rr]eckon(s|ed)?|Given|[Cc]ame back|stands? in the documents|bears? out|borne out)\b")


def test_no_word_that_readers_stumbled_over_comes_back() -> None:
    assert {key: said for key, said in EN.items() if RETIRED.search(said)} == {}


def test_every_error_of_the_house_has_a_sentence() -> None:
    classes = [one for _, one in inspect.getmembers(core.errors, inspect.isclass) if issubclass(one, ParlourError)]
    assert not [one.key for one in classes if f"error.{one.key}" not in EN]


def test_every_error_key_written_in_the_code_has_a_sentence() -> None:
    keys = {
        key
        for path in SOURCES
        for key in re.findall(r"""\bkey(?:: ClassVar\[str\])? ?= ?"([a-z_]+)\"""", path.read_text("utf-8"))
    }
    assert len(keys) > 20
    assert not sorted(key for key in keys if f"error.{key}" not in EN)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_key_that_the_page_asks_for_is_there(lang: str) -> None:
    asked = {
        key
        for path in (ROOT / "webui").rglob("*.py")
        for key in re.findall(r"""words\("([a-z_.0-9]+)\"""", path.read_text("utf-8"))
    }
    assert len(asked) > 30
    assert not sorted(key for key in asked if key not in Words(lang))  # pyright: ignore[reportArgumentType]


def test_every_key_that_the_script_asks_for_is_in_the_page() -> None:
    tables = {lang: json.loads(script_words(lang)) for lang in LANGUAGES}
    scripts = [path.read_text("utf-8") for path in (ROOT / "assets" / "js").glob("*.js")]
    asked = {key for script in scripts for key in re.findall(r"\bsay\('([a-z_]+)'", script)}
    asked |= {key for script in scripts for key in re.findall(r"\['(?:\.[^']+|textarea)', '([a-z_]+)'\]", script)}
    assert len(asked) > 15
    assert not [key for key in asked for table in tables.values() if key not in table]


@pytest.mark.parametrize(
    ("header", "lang"),
    [
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en-GB,en;q=0.9,zh;q=0.8", "en"),
        ("fr,zh-TW;q=0.5,en;q=0.3", "zh"),
        ("de", "en"),
        ("", "en"),
        (None, "en"),
        ("zh;q=oops, en", "en"),
    ],
)
def test_the_language_is_the_one_the_browser_likes_best(header: str | None, lang: str) -> None:
    assert Words.of(header).lang == lang


def test_an_error_is_one_line_with_what_happened_and_what_to_do() -> None:
    details = {"name": "a.pdf", "size": 212, "limit": 100}
    said = Words("en").error({"key": "upload_too_large", "details": details})
    assert said == "a.pdf is 212 MB; the limit is 100 MB. Send the part you need."
    assert Words("zh").error(ParlourError("x", key="busy")) == "这个对话正在回答。请等它写完，或点“停止”。"


def test_a_service_that_answered_with_an_error_is_not_said_to_be_silent() -> None:
    answered = ModelUnavailableError(None, "502", "Bad gateway")
    assert Words("en").error(answered).startswith("The model service answered with an error (502).")
    assert Words("zh").error(answered).startswith("模型服务返回了错误（502）。")
    assert Words("en").error(ModelUnavailableError()).startswith("The model server did not answer.")


@pytest.mark.parametrize(("lang", "pictures"), [("en", "pictures"), ("zh", "图片")])
def test_the_kinds_that_are_read_are_all_named(lang: str, pictures: str) -> None:
    said = Words(lang).error({"key": "document_unsupported", "details": {"name": "a.exe"}})
    assert pictures in said
    assert not [kind for kind in READABLE if kind not in said and kind not in {"PNG", "JPEG", "TIFF"}]


def test_an_error_nobody_has_words_for_is_told_as_unexpected() -> None:
    assert Words("en").error({"key": "martian", "details": {}}).startswith(EN["error.unexpected"])


def test_a_blank_that_nobody_filled_does_no_harm() -> None:
    assert "…" in Words("en").error({"key": "upload_too_large", "details": None})


@pytest.mark.parametrize("value", [5, True, "x", [], {}, None])
def test_details_of_another_kind_than_parlour_writes_do_no_harm(value: object) -> None:
    """A conversation that comes in may say of its errors whatever it likes."""
    for key in (one.removeprefix("error.") for one in EN if one.startswith("error.")):
        details = dict.fromkeys(("files", "more", "extra", "kind", "promised", "code", "reason", "name"), value)
        assert Words("en").error({"key": key, "details": details})


def test_braces_in_what_fills_a_blank_stay_text() -> None:
    assert "{evil}" in Words("en").error({"key": "document_broken", "details": {"name": "{evil}"}})


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.04, "0.0 s"), (2.14, "2.1 s"), (31.4, "31 s"), (125, "2 min 5 s"), (-1, "0.0 s")]
)
def test_durations_are_short(seconds: float, said: str) -> None:
    assert Words("en").seconds(seconds) == said


@pytest.mark.parametrize(
    ("lang", "key", "one", "many"),
    [
        ("en", "messages", "within the hour.", "in 2 hours."),
        ("en", "tokens", "in 1 day;", "in 2 days;"),
        ("en", "cost", "in 1 day;", "in 2 days;"),
        ("zh", "messages", "一小时内", "2 小时"),
        ("zh", "tokens", "1 天后", "2 天后"),
    ],
)
def test_a_limit_says_when_it_begins_anew_in_one_day_or_in_several(lang: str, key: str, one: str, many: str) -> None:
    words = Words(lang)
    for n, said in ((1, one), (2, many)):
        details = {"limit": "5", "hours": n, "days": n}
        assert said in words.error({"key": f"quota_{key}", "details": details})
