"""Settings: where they come from, what wins, what never shows."""

from __future__ import annotations

import errno
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from core.errors import SettingsError
from core.llm.open_model import get_chat_model
from core.settings import Settings
from core.testing.model_server import ModelServer
from core.testing.script import Reply


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder without a settings file."""
    monkeypatch.chdir(tmp_path)


def model(**given: Any) -> dict[str, Any]:
    cfg = Settings.load(**given).model_cfg()
    cfg.pop("generate_cfg")
    return cfg


def test_arguments_win_over_variables_and_variables_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "parlour.toml").write_text('host = "file"\nport = 1\nmodel = "from-file"\n')
    monkeypatch.setenv("PARLOUR_PORT", "2")
    monkeypatch.setenv("PARLOUR_HOST", "variable")
    settings = Settings.load(host="argument", port=None)
    assert (settings.host, settings.port, settings.model) == ("argument", 2, "from-file")


def test_a_named_file_is_read_and_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.toml").write_text("port = 3\n")
    assert Settings.load(config=tmp_path / "mine.toml").port == 3
    monkeypatch.setenv("PARLOUR_CONFIG", str(tmp_path / "mine.toml"))
    assert Settings.load().port == 3
    with pytest.raises(SettingsError, match=r"not-there\.toml"):
        Settings.load(config=Path("not-there.toml"))


@pytest.mark.parametrize("text", ["port = ", "colour = 'red'\n", "port = 'x'\n", "model_options = 1\n"])
def test_a_wrong_file_is_told_in_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "parlour.toml").write_text(text)
    with pytest.raises(SettingsError) as caught:
        Settings.load()
    assert "Correct it" in str(caught.value)


def test_a_wrong_value_is_named_but_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLOUR_PORT", "sk-canary")
    with pytest.raises(SettingsError, match="'port'") as caught:
        Settings.load()
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("PORT", "99999", r"'port' \(PARLOUR_PORT\) must be a whole number from 0 to 65535, not 99999\."),
        ("FILES_MB", "-5", r"\(PARLOUR_FILES_MB\) must be a whole number, 0 or more, not -5\."),
        ("GUESTS", "maybe", r"\(PARLOUR_GUESTS\) must be true or false, not maybe\."),
        ("LANG", "de", r"\(PARLOUR_LANG\) must be 'auto', 'en' or 'zh', not de\."),
        ("REPLY_SECONDS", "inf", r"\(PARLOUR_REPLY_SECONDS\) must be below 1000000000000, not inf\."),
        ("UPLOADS_PER_HOUR", "9" * 19, r"\(PARLOUR_UPLOADS_PER_HOUR\) must be below 1000000000000, not 9"),
        ("MESSAGES_PER_DAY", "many", r"\(PARLOUR_MESSAGES_PER_DAY\) must be a number, 0 or more, or two, .* 200,0\."),
        ("MODEL_OPTIONS", "hot", r"\(PARLOUR_MODEL_OPTIONS\) must be written as JSON, such as \{\"temp"),
        ("HOST", "999.1.1.1", r"\(PARLOUR_HOST\) must be an IP address such as 127\.0\.0\.1, or the name"),
        ("ALLOWED_HOSTS", "https://chat.example.com/", r"\(PARLOUR_ALLOWED_HOSTS\) must be names such as chat\."),
        ("ALLOWED_HOSTS", "*.example.com", r"\(PARLOUR_ALLOWED_HOSTS\) must be names such as chat\."),
        ("OIDC_ISSUER", "abc", r"\(PARLOUR_OIDC_ISSUER\) must be an address such as"),
        ("TRACES", "abc", r"'traces' \(PARLOUR_TRACES\) must be an address such as"),
        ("MODLE", "x", r"There is no setting PARLOUR_MODLE\. Did you mean PARLOUR_MODEL\?"),
        ("OPENAI_API_KEY", "sk-canary", r"no setting PARLOUR_OPENAI_API_KEY\. Did you mean OPENAI_API_KEY\?"),
    ],
)
def test_a_wrong_variable_is_one_sentence_that_says_what_was_typed_where_and_what_to_write(
    variable: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"PARLOUR_{variable}", value)
    with pytest.raises(SettingsError, match=said) as caught:
        Settings.load()
    assert "canary" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", list(Settings.model_fields))
@pytest.mark.parametrize("value", ["", "  "])
def test_of_each_setting_a_variable_with_nothing_in_it_counts_as_none(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alias = Settings.model_fields[name].validation_alias is not None and name != "traces"
    monkeypatch.setenv(name.upper() if alias else f"PARLOUR_{name.upper()}", value)
    if name != "config":
        assert name not in Settings.load().model_fields_set


def test_what_kubernetes_sets_for_a_service_of_our_name_is_no_setting_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PORT": "tcp://10.0.0.1:80",
        "PORT_80_TCP_ADDR": "10.0.0.1",
        "SERVICE_HOST": "10.0.0.1",
        "DATABASE_PORT": "tcp://10.0.0.2:5432",  # of one named parlour-database
        "DATABASE_SERVICE_HOST": "10.0.0.2",
    }.items():
        monkeypatch.setenv(f"PARLOUR_{name}", value)
    monkeypatch.setenv("PARLOUR_DOMAIN", "chat.example.org")  # of Caddy beside it
    assert Settings.load().port == 7860


def test_what_a_setting_names_and_is_not_there_is_told_at_the_start(tmp_path: Path) -> None:
    for given, said in (
        ({"skills": tmp_path / "gone"}, "no folder .*gone.* PARLOUR_SKILLS"),
        ({"demos": ("gone.jsonl",)}, r"no recording gone\.jsonl.* PARLOUR_DEMOS"),
        ({"oidc_issuer": "https://login.example.com"}, "PARLOUR_OIDC_CLIENT_ID is not set"),
        ({"oidc_client_id": "parlour"}, "PARLOUR_OIDC_ISSUER is not set"),
    ):
        with pytest.raises(SettingsError, match=said):
            Settings.load(**given).check_whole()
    Settings.load(skills=tmp_path, demos=("off",)).check_whole()


def test_keys_do_not_show() -> None:
    settings = Settings.load(
        api_key="sk-canary", openai_api_key="sk-canary", secret="sk-canary", model_options={"key": "sk-canary"}
    )
    assert "canary" not in repr(settings) + str(settings) + settings.model_dump_json(exclude={"model_options"})


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings.load().port = 1  # type: ignore[misc]


def test_without_anything_the_built_in_model_answers(tmp_path: Path) -> None:
    assert model(weights_dir=tmp_path) == {"model_type": "llama_cpp", "weights_dir": str(tmp_path)}


def test_a_vendors_key_brings_a_default_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASHSCOPE_API_KEY", "sk-d")
    asked = model()
    assert (asked["model"], asked["model_type"], asked["api_key"]) == ("qwen-plus", "openai", "sk-d")
    assert asked["base_url"].endswith("/compatible-mode/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-o")
    assert model() == {"model": "gpt-5-mini", "model_type": "openai", "api_key": "sk-o"}
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert model()["base_url"] == "http://127.0.0.1:1/v1"


def test_parlours_own_settings_win_over_a_vendors_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-o")
    monkeypatch.setenv("PARLOUR_MODEL", "mine")
    assert model() == {"model": "mine", "model_type": "openai", "api_key": "sk-o"}
    monkeypatch.setenv("PARLOUR_API_KEY", "sk-p")
    assert model()["api_key"] == "sk-p"
    monkeypatch.setenv("PARLOUR_BASE_URL", "http://127.0.0.1:2/v1")
    monkeypatch.delenv("PARLOUR_API_KEY")
    assert model()["api_key"] == "EMPTY"  # the vendor's key is not sent to another address, whoever looks for it
    monkeypatch.setenv("PARLOUR_MODEL_TYPE", "llama_cpp")
    assert model()["model_type"] == "llama_cpp"


@pytest.mark.anyio
async def test_a_vendors_key_never_leaves_for_another_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-o")
    with ModelServer(Reply(text="Hello!")) as server:
        for given in ({"base_url": server.base_url}, {"model_options": {"model_server": server.base_url}}):
            asked = get_chat_model(Settings.load(**given).model_cfg())
            await asked.achat([{"role": "user", "content": "Hi"}])
            await asked.aclose()
        assert [exchange.headers.get("authorization") for exchange in server.requests] == ["Bearer EMPTY"] * 2


def test_a_vendors_own_address_gets_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-o")
    monkeypatch.setenv("DASHSCOPE_API_KEY", "sk-d")
    assert model(base_url="https://api.openai.com/v1/")["api_key"] == "sk-o"
    assert model(base_url="https://dashscope.aliyuncs.com/compatible-mode/v1")["api_key"] == "sk-d"
    assert model(base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1")["api_key"] == "sk-d"
    assert model(base_url="https://mine.oss-cn-beijing.aliyuncs.com/v1")["api_key"] == "EMPTY"
    assert model(base_url="http://api.openai.com/v1")["api_key"] == "EMPTY"  # not in the clear
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:3/v1")
    assert model(base_url="http://127.0.0.1:3/v1")["api_key"] == "sk-o"


def test_a_model_named_without_an_address_is_the_vendors_whose_key_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASHSCOPE_API_KEY", "sk-d")
    asked = model(model="qwen-max")
    assert (asked["model"], asked["api_key"]) == ("qwen-max", "sk-d")
    assert "dashscope" in asked["base_url"]
    assert "base_url" not in model(model="gpt-5", api_key="sk-p")


@pytest.mark.parametrize(
    ("address", "key"),
    [
        (None, "sk-dashscope"),
        ("https://dashscope-intl.aliyuncs.com/api/v1", "sk-dashscope"),
        ("https://elsewhere.example/api/v1", ""),
        ("http://dashscope.aliyuncs.com/api/v1", ""),
        ("https://mine.oss-cn-beijing.aliyuncs.com/api/v1", ""),
    ],
)
def test_dashscopes_own_types_get_the_vendors_key_at_the_vendors_addresses(address: str | None, key: str) -> None:
    settings = Settings.load(model_type="qwenvl_dashscope", base_url=address, dashscope_api_key="sk-dashscope")
    cfg = settings.model_cfg()
    assert (cfg.get("api_key", ""), cfg.get("base_url"), "model" in cfg) == (key, address, False)
    options = {"base_http_api_url": address} if address else {}
    cfg = Settings.load(
        model_type="qwenvl_dashscope", model_options=options, dashscope_api_key="sk-dashscope"
    ).model_cfg()
    assert cfg.get("api_key", "") == key


def test_a_file_of_weights_is_run_here_whatever_keys_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-o")
    asked = model(model="models/mine.GGUF")
    assert (asked["model"], asked["model_type"]) == ("models/mine.GGUF", "llama_cpp")
    assert "api_key" not in asked


def test_an_empty_variable_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLOUR_MODEL", "")
    monkeypatch.setenv("OPENAI_API_KEY", "")
    assert model()["model_type"] == "llama_cpp"


def test_the_back_ends_own_keys_pass_through() -> None:
    cfg = Settings.load(model_options={"threads": 2}, generate_cfg={"temperature": 0}).model_cfg()
    assert cfg["threads"] == 2
    assert cfg["generate_cfg"] == {"max_retries": 3, "temperature": 0}


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.2", False),
        ("example.org", False),
        ("localhost.example.org", False),
    ],
)
def test_the_bound_address_says_whether_only_this_machine_can_come(host: str, here: bool) -> None:
    assert Settings.load(host=host).bound_to_this_machine is here


def test_the_secret_is_made_once_and_private(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with ThreadPoolExecutor(8) as pool:
        secrets = set(pool.map(lambda _: Settings.load(home=home).signing_secret(), range(32)))
    (secret,) = secrets
    assert len(secret) >= 32
    assert stat.S_IMODE((home / "secret").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert [path.name for path in home.iterdir()] == ["secret"]
    assert Settings.load(home=home, secret="given").signing_secret() == "given"


def test_a_secret_that_others_could_read_is_made_private_again(tmp_path: Path) -> None:
    secret = Settings.load(home=tmp_path).signing_secret()
    (tmp_path / "secret").chmod(0o644)
    assert Settings.load(home=tmp_path).signing_secret() == secret
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_a_secret_whose_mode_cannot_be_changed_is_used_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As with a secret that a container was given read-only: the house opens all the same."""
    secret = Settings.load(home=tmp_path).signing_secret()
    (tmp_path / "secret").chmod(0o644)

    def refused(*given: object, **more: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "chmod", refused)
    assert Settings.load(home=tmp_path).signing_secret() == secret
    assert "others on this machine can read" in caplog.text
    assert secret not in caplog.text


def test_a_data_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match="file"):
        Settings.load(home=tmp_path / "file" / "home").signing_secret()


def test_a_data_folder_that_is_there_already_is_closed_to_other_accounts(tmp_path: Path) -> None:
    for content in ((), ("parlour.db", "notes")):
        home = tmp_path / f"home{len(content)}"
        home.mkdir(mode=0o755)
        for name in content:
            (home / name).touch()
        Settings.load(home=home).make_home()
        assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_a_folder_that_holds_other_things_keeps_its_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "thesis.tex").touch()
    tmp_path.chmod(0o755)
    Settings.load(home=tmp_path).signing_secret()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600
    (tmp_path / "parlour.db").touch()
    monkeypatch.chdir(tmp_path)
    Settings.load(home=Path()).make_home()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755, "nor does the folder that somebody works in"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("chat.example.com", ("chat.example.com",)),
        ("a, b,,c ", ("a", "b", "c")),
        ('["a", "b"]', ("a", "b")),
        (" ", ()),
        (",", ()),
    ],
)
def test_names_are_written_with_commas_or_as_json(
    text: str, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARLOUR_ALLOWED_HOSTS", text)
    assert Settings.load().allowed_hosts == names
    monkeypatch.setenv("SPACE_HOST", text if not text.startswith("[") else "a,b")
    assert Settings.load().space_hosts == names


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("ALLOWED_HOSTS", "[a", "names with commas"),
        ("TRUSTED_PROXIES", "10.0.0.0/8,proxy.example", "IP addresses or networks"),
        ("TOKEN", "short", "at least 8"),
    ],
)
def test_a_list_or_token_that_makes_no_sense_is_one_sentence_without_its_value(
    variable: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"PARLOUR_{variable}", value)
    with pytest.raises(SettingsError, match=said) as refused:
        Settings.load()
    assert value not in str(refused.value)


@pytest.mark.parametrize("kept", ["", "\n", "\u00e9"])
def test_a_token_file_that_is_empty_opens_nothing(tmp_path: Path, kept: str) -> None:
    (tmp_path / "token").write_text(kept, "utf-8")
    with pytest.raises(SettingsError, match="token is empty"):
        Settings.load(home=tmp_path).page_token()


def test_a_token_is_there_for_the_owner_of_a_loopback_address_alone(tmp_path: Path) -> None:
    made = Settings.load(home=tmp_path).page_token()
    assert len(made) >= 32
    assert Settings.load(home=tmp_path).page_token() == made
    assert Settings.load(home=tmp_path, token="given-by-hand").page_token() == "given-by-hand"
    for settings in ({"token": "off"}, {"host": "0.0.0.0"}, {"owners": "cookie"}):
        assert Settings.load(home=tmp_path, **settings).page_token() == ""


@pytest.mark.parametrize(
    ("settings", "opens"),
    [
        *(({}, True), ({"host": "0.0.0.0"}, False), ({"host": "0.0.0.0", "token": "a long token"}, False)),
        *(({"host": "0.0.0.0", "accounts": one}, True) for one in ("guests", "accounts")),
        ({"host": "0.0.0.0", "space_host": "a.hf.space"}, True),
        ({"host": "0.0.0.0", "owners": "cookie"}, True),
    ],
)
def test_what_others_can_reach_opens_only_where_it_was_said_who_may_come_in(
    settings: dict[str, str], opens: bool
) -> None:
    read = Settings.load(**settings)
    if opens:
        read.check_open_to()
    else:
        with pytest.raises(SettingsError, match="PARLOUR_ACCOUNTS=accounts"):
            read.check_open_to()
    assert read.has_local_owner == (settings == {})


@pytest.mark.parametrize(("typed", "read"), [("5", (5, 5)), ("50,500", (50, 500)), (7, (7, 7)), ([1, 2], (1, 2))])
def test_a_limit_is_a_number_for_guests_and_one_for_members_or_one_for_both(
    typed: object, read: tuple[float, float]
) -> None:
    assert Settings.load(messages_per_day=typed).messages_per_day == read


@pytest.mark.parametrize("typed", ["", "1,2,3", "-1", "many", "nan"])
def test_a_limit_that_is_none_is_named(typed: str) -> None:
    with pytest.raises(SettingsError, match="messages_per_day"):
        Settings.load(messages_per_day=typed)
