"""Settings: arguments, then `PARLOUR_*` variables, then `parlour.toml`. The only reader of the environment."""

from __future__ import annotations

import hmac
import ipaddress
import logging
import os
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import urlsplit

from platformdirs import user_cache_path
from pydantic import AliasChoices, Field, SecretStr, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from core.complaints import complaint, unheard
from core.errors import SettingsError
from core.grown_settings import GrownSettings
from core.known_hosts import is_dashscope
from core.setting_kinds import Hosts, Names, Pair, check_address, check_host, is_said

if TYPE_CHECKING:
    from collections.abc import Collection

    from core.languages import Lang


_LOG = logging.getLogger(__name__)
DEFAULT_CONFIG = Path("parlour.toml")
OPENAI_DEFAULT_MODEL = "gpt-5-mini"
DASHSCOPE_DEFAULT_MODEL = "qwen-plus"
DASHSCOPE_ADDRESS = "https://dashscope.aliyuncs.com/compatible-mode/v1"
NO_KEY = "EMPTY"
NO_TOKEN = "off"  # noqa: S105 - what says that there is none
SHORTEST_TOKEN = 8
SHORTEST_METRICS_TOKEN = 16
TRACE_FILE = "file:"
_NEW_OWNERS, _NEW_IN_A_SPACE = 30, 600  # in a minute, of one address
_OPENAI_HOST = "api.openai.com"
_DASHSCOPE_TYPES = {"qwen_dashscope", "qwenvl_dashscope", "qwenaudio_dashscope"}
_OPENAI_TYPES = {None, "openai", "oai", "qwenvl_oai"}
_NATIVE_TYPES = {"openai", "oai", "openai_public", "azure"}
_SITE = re.compile(r"https?://(?:\*\.)?[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?(?::(?:\d{1,5}|\*))?")
_ROOT = re.compile(r"(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,99}){1,8}")
_ADDRESSES = ("base_url", "model_server", "api_base", "base_http_api_url")


def _usual(name: str) -> AliasChoices:
    """The field's own name (arguments, the file) or the vendor's usual variable."""
    return AliasChoices(name, name.upper())


class Settings(GrownSettings):
    """Everything that can be set, read once, never changed. Keys are secrets: they do not show in `repr`.

    Args:
        config: The TOML file to read; `parlour.toml` in the working folder where it is left out.
        host: The address to listen on. Any but this machine's own makes each browser an owner of its own.
        token: Opens the page: a browser shows it once and is remembered. Given, it is asked of everybody; left out, one
            is made and kept in the data folder for the owner of a loopback address; `off` asks nobody for one.
        allowed_hosts: Further `Host` names that may be served, such as the one of a proxy in front: a list, or names
            with commas between them. Who comes by one of them is never the owner of this machine.
        trusted_proxies: Addresses or networks of the proxies whose `X-Forwarded-*` headers count; written in the same
            way.
        owners: `cookie` makes each browser an owner of its own even where only this machine can reach the page.
        root_path: The path under which a proxy shows the page, such as `/chat`; "" for the root of its site.
        accounts: Who comes by another address than this machine's: `guests`, each browser an owner of its own, or
            `accounts`, people with names and passwords; on this machine's too where it is set. `auto` is guests in a
            Space, and nobody elsewhere.
        guests: With accounts, whoever has none may go on as a guest.
        oidc_issuer, oidc_client_id, oidc_client_secret: A service of OpenID Connect that people may sign in by.
        oidc_newcomers: The role of who comes by it uninvited; nobody may where it is left out.
        openid_provider_url, oauth_client_id, oauth_client_secret: The same, as a Space with `hf_oauth` has them.
        space_host: The name of the Hugging Face Space that shows the page in its frame.
        frames: Other sites that may show the page in a frame, such as `https://blog.example.com`; it has to be served
            over HTTPS then.
        embed_sites: Sites whose pages may show the small chat of `/embed.js`; none where it is left out.
        embed_questions: How many questions an hour each address may ask there; 0 for no limit.
        bucket: A folder, such as a mounted bucket, that keeps what the data folder holds when the machine goes; on a
            Space one that is mounted is found by itself.
        model, model_type, base_url, api_key: The model that answers; left out, a vendor's key or the built-in one.
        model_options: Further keys for the model's back end, as it stands in the file's `[model_options]`.
        generate_cfg: How the model writes: `temperature`, `max_input_tokens` …
        weights_dir: Where model files are kept, for all clones of one user.
        lang: The language of the page; `auto` asks the browser.
        max_upload_mb: The largest file taken in, in MiB.
        summarise: Whether the oldest turns of a conversation that is too long for its model are told in short; else
            they are left out.
        share: Whether snapshots of conversations can be shared by links; else links that were made lead nowhere.
        titles: Whether the model that answered a conversation's first question is asked for its title; else the
            question's first words are its title.
        check_claims: Whether the sentences of an answer from documents are held against its passages.
        retrieval: How documents are searched: by words and meaning, or by words alone, which costs less.
        pdf_reader: The library that reads PDF: `pypdfium2` for who cannot take PyMuPDF's licence, the AGPL.
        max_iteration: The most model calls of one reply; then it pauses, and goes on when told to.
        reply_seconds: The time that one reply may take before it pauses; waiting for the user does not count.
        reply_cost: What the model calls of one reply may cost before it pauses, in the currency of the price list; no
            limit where it is left out.
        replies_at_once: How many replies of one owner are written at the same time; further ones wait for their turn.
        keep_events_days: After how many days the log of a finished reply is cut down to what its message does not say,
            such as how long each step took; 0 for never.
        code_kernels: How many kernels of the code interpreter one browser's conversations may keep; the one that was
            used longest ago makes room. The one local owner may have all.
        documents_waiting: How many documents of one owner may be read or wait for it; 0 for any number. Documents of a
            question that was accepted are always read, so that questions at the same moment may pass it.
        files_mb: How much room the files of one browser may take, in MiB; 0 for no limit. The one local owner has no
            limit, here and in the next two.
        uploads_per_hour: How many files one browser may send in an hour; 0 for no limit.
        messages_per_day: How many questions a guest and a member may ask in a day (UTC), as `200,0`; 0 for no limit.
            Who looks after the house has none, nor has the one local owner.
        tokens_per_month: How many tokens the model calls of their replies may take in a month, likewise.
        cost_per_month: What those may cost in a month, in US dollars, likewise.
        new_owners_per_minute: How many browsers of one address may come for the first time in a minute; 0 for no limit.
            Left out it is 30, and 600 in a Space, whose visitors all come from its proxy unless that is trusted.
        write_seconds: How long a browser may take nothing of an answer before its connection is ended.
        public_ask: How many questions an hour each address may ask over the Space's API without a key; 0 for none.
        log_calls: Whether the terminal gets a line for each call of a model: what, how long, how many tokens.
        logs: How the terminal's log lines are written: as text, or each as a JSON object with the ids of the run and
            the trace that it belongs to.
        metrics_token: Who shows it as a bearer token reads `/metrics`, in Prometheus' format; nobody where it is left
            out.
        traces: Where traces go: the address of a collector that speaks OTLP over HTTP, or `file:` and the path of a
            file, which `parlour traces` shows.
        skills: A folder of skills (folders with a `SKILL.md`) that everybody's assistant may use.
        code: The sandbox that runs the assistant's code; `auto` takes the strongest that holds on this machine.
            `docker` and `runsc` want an image named `parlour-code`, and a socket that is as good as the whole machine.
        demos: Recordings that the start page offers in place of those that come along: files, or folders of them; `off`
            for none.
    """

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix="PARLOUR_",
        env_ignore_empty=True,
        populate_by_name=True,
        protected_namespaces=(),
        hide_input_in_errors=True,
    )

    config: Path | None = None
    host: str = "127.0.0.1"
    port: int = Field(default=7860, ge=0, le=65535)
    token: SecretStr | None = None
    allowed_hosts: Hosts = ()
    trusted_proxies: Names = ()
    owners: Literal["auto", "cookie"] = "auto"
    accounts: Literal["auto", "guests", "accounts"] = "auto"
    guests: bool = False
    oidc_issuer: str = ""
    oidc_client_id: str = ""
    oidc_client_secret: SecretStr | None = None
    oidc_newcomers: Literal["guest", "member"] | None = None
    openid_provider_url: str = Field(default="", validation_alias=_usual("openid_provider_url"))
    oauth_client_id: str = Field(default="", validation_alias=_usual("oauth_client_id"))
    oauth_client_secret: SecretStr | None = Field(default=None, validation_alias=_usual("oauth_client_secret"))
    space_host: str = Field(default="", validation_alias=_usual("space_host"))
    root_path: str = ""
    frames: Names = ()
    embed_sites: Names = ()
    embed_questions: int = Field(default=60, ge=0)
    bucket: Path | None = None
    home: Path = Path("data")
    model: str | None = None
    model_type: str | None = None
    base_url: str | None = None
    api_key: SecretStr | None = None
    model_options: dict[str, Any] = Field(default_factory=dict, repr=False)
    generate_cfg: dict[str, Any] = Field(default_factory=dict, repr=False)
    openai_api_key: SecretStr | None = Field(default=None, validation_alias=_usual("openai_api_key"))
    openai_base_url: str | None = Field(default=None, validation_alias=_usual("openai_base_url"))
    dashscope_api_key: SecretStr | None = Field(default=None, validation_alias=_usual("dashscope_api_key"))
    weights_dir: Path = Field(default_factory=lambda: user_cache_path("parlour", appauthor=False) / "weights")
    lang: Literal["auto", "en", "zh"] = "auto"
    max_upload_mb: int = Field(default=50, ge=1)
    retrieval: Literal["hybrid", "keyword"] = "hybrid"
    summarise: bool = True
    share: bool = True
    titles: bool = True
    check_claims: bool = True
    pdf_reader: Literal["pymupdf", "pypdfium2"] = "pymupdf"
    max_iteration: int = Field(default=20, ge=1, le=99)
    reply_seconds: float = Field(default=600.0, gt=0)
    reply_cost: float | None = Field(default=None, gt=0)
    replies_at_once: int = Field(default=2, ge=1)
    keep_events_days: float = Field(default=90.0, ge=0)
    code_kernels: int = Field(default=1, ge=1)
    documents_waiting: int = Field(default=2000, ge=0)
    files_mb: int = Field(default=1024, ge=0)
    uploads_per_hour: int = Field(default=200, ge=0)
    messages_per_day: Pair = (200, 0)
    tokens_per_month: Pair = (0, 0)
    cost_per_month: Pair = (0, 0)
    new_owners_per_minute: int | None = Field(default=None, ge=0)
    write_seconds: float = Field(default=300.0, gt=0)
    public_ask: int = Field(default=0, ge=0)
    log_calls: bool = False
    logs: Literal["text", "json"] = "text"
    metrics_token: SecretStr | None = None
    traces: str | None = Field(
        default=None, validation_alias=AliasChoices("traces", "PARLOUR_TRACES", "OTEL_EXPORTER_OTLP_ENDPOINT")
    )
    skills: Path | None = None
    code: Literal["auto", "bubblewrap", "landlock", "docker", "runsc", "off"] = "auto"
    demos: Names | None = None

    @classmethod
    def load(cls, **arguments: Any) -> Settings:
        """Read the settings; arguments that are `None` count as left out.

        Raises:
            SettingsError: A value is wrong or a name unknown; the sentence names it, and shows of values no more than
                numbers and plain words, where none is secret.
        """
        variables = {name.upper(): value for name, value in os.environ.items()}
        said = [name for name, value in variables.items() if is_said(name, value)]
        if misspelled := unheard(said, cls.model_fields):
            raise SettingsError(misspelled, hint="Correct it and start again.")
        try:
            return cls(**{name: value for name, value in arguments.items() if value is not None})
        except (OSError, ValueError) as error:  # a value is wrong, or the file cannot be read
            file = _settings_file(arguments.get("config"))
            left = {name: value for name, value in variables.items() if arguments.get(_field_of(name)) is None}
            sentence = complaint(error, file, cls.model_fields, left)
            raise SettingsError(sentence, hint="Correct it and start again.") from error

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments over variables over the file."""
        del dotenv_settings, file_secret_settings
        file = _settings_file(cast("Any", init_settings).init_kwargs.get("config"))
        source = cast("Any", env_settings)
        source.env_vars = {name: value for name, value in source.env_vars.items() if is_said(name, value)}
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, file)

    @field_validator("home", "weights_dir", "bucket", "skills")
    @classmethod
    def _expand(cls, path: Path | None) -> Path | None:
        return path.expanduser() if path is not None else None

    @field_validator("token")
    @classmethod
    def _long_enough(cls, token: SecretStr | None) -> SecretStr | None:
        text = _shown(token)
        if token is not None and text != NO_TOKEN and (len(text) < SHORTEST_TOKEN or not text.isprintable()):
            raise ValueError(f"must be `{NO_TOKEN}` or at least {SHORTEST_TOKEN} letters and figures")
        return token

    @field_validator("metrics_token")
    @classmethod
    def _hard_to_guess(cls, token: SecretStr | None) -> SecretStr | None:
        text = _shown(token)
        if token is not None and (len(text) < SHORTEST_METRICS_TOKEN or not text.isascii() or not text.isprintable()):
            raise ValueError(f"must be at least {SHORTEST_METRICS_TOKEN} letters and figures")
        return token

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        for network in networks:
            try:
                ipaddress.ip_network(network, strict=False)
            except ValueError as error:
                raise ValueError("must be IP addresses or networks such as 10.0.0.0/8") from error
        return networks

    @field_validator("root_path")
    @classmethod
    def _is_path(cls, path: str) -> str:
        path = path.rstrip("/")
        if path and not _ROOT.fullmatch(path):  # it goes into cookies and redirections as it is
            raise ValueError("must be a path such as /chat")
        return path

    @field_validator("frames", "embed_sites")
    @classmethod
    def _are_sites(cls, sites: tuple[str, ...]) -> tuple[str, ...]:
        if not all(_SITE.fullmatch(site) for site in sites):  # they go into a header as they are
            raise ValueError("must be sites such as https://blog.example.com or https://*.example.com")
        return sites

    @field_validator("host")
    @classmethod
    def _is_host(cls, host: str) -> str:
        return check_host(host)

    @field_validator("oidc_issuer", "openid_provider_url")
    @classmethod
    def _signs_in(cls, address: str) -> str:
        return (check_address(address) or "") if address else ""

    @field_validator("base_url", "openai_base_url", "embedding_base_url")
    @classmethod
    def _reachable(cls, address: str | None) -> str | None:
        return check_address(address)

    @field_validator("traces")
    @classmethod
    def _traceable(cls, place: str | None) -> str | None:
        is_file = place is not None and place.startswith(TRACE_FILE) and place != TRACE_FILE
        return place if is_file else check_address(place)

    @property
    def bound_to_this_machine(self) -> bool:
        """Whether only this machine can reach the page; the bound address decides, never what a request says."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    def model_cfg(self) -> dict[str, Any]:
        """What `get_chat_model` is given: `PARLOUR_*`, then a vendor's key, then the built-in model."""
        cfg = self._own_model() or self._vendor_model() or {"model_type": "llama_cpp"}
        return self.completed({**cfg, **self.model_options})

    def completed(self, cfg: dict[str, Any]) -> dict[str, Any]:
        """A model's dict, with how it writes and where weights are kept."""
        kind = cfg.get("model_type")
        where = {"weights_dir": str(self.weights_dir)} if kind == "llama_cpp" else {}
        generate: dict[str, Any] = {"max_retries": 3}
        if kind in _NATIVE_TYPES and "fncall_prompt_type" not in self.generate_cfg:
            generate["use_raw_api"] = True  # tools by the service's own calling, in the prompt where it has none
        return {**where, **cfg, "generate_cfg": {**generate, **self.generate_cfg}}

    def signing_secret(self) -> str:
        """The secret that signs cookies: the given one, or one made once and kept in the data folder.

        Raises:
            SettingsError: The data folder cannot be written.
        """
        if self.secret is not None:
            return self.secret.get_secret_value()
        if self.space_hosts and (given := _shown(self.oauth_client_secret)):
            return hmac.digest(given.encode(), b"parlour.secret", "sha256").hex()
        return self._kept("secret")

    @property
    def space_hosts(self) -> tuple[str, ...]:
        """The names of the Space that shows the page; a custom domain stands beside the usual name."""
        return tuple(name for part in self.space_host.split(",") if (name := part.strip()))

    @property
    def is_framed(self) -> bool:
        """Whether other sites may show the page in a frame."""
        return bool(self.space_hosts or self.frames)

    @property
    def new_owners(self) -> int | None:
        """How many browsers of one address may come for the first time in a minute; `None` for no limit."""
        if self.new_owners_per_minute is None:
            return _NEW_IN_A_SPACE if self.space_hosts and not self.trusted_proxies else _NEW_OWNERS
        return self.new_owners_per_minute or None

    @property
    def asks_everybody(self) -> bool:
        """Whether a token was given, which everybody has to show; one that Parlour made is the local owner's alone."""
        return self.token is not None and not self.asks_nobody

    @property
    def asks_nobody(self) -> bool:
        """Whether the token was switched off."""
        return _shown(self.token) == NO_TOKEN

    @property
    def has_local_owner(self) -> bool:
        """Whether there is one owner of this machine, and not each browser an owner of its own."""
        return self.bound_to_this_machine and self.owners == "auto" and self.accounts == "auto"

    @property
    def openid(self) -> tuple[str, str, str] | None:
        """The address of a service that people may sign in by, what it calls this Parlour, and its secret."""
        own = self.oidc_issuer, self.oidc_client_id, _shown(self.oidc_client_secret)
        space = self.openid_provider_url, self.oauth_client_id, _shown(self.oauth_client_secret)
        return next((one for one in (own, space) if one[0] and one[1]), None)

    @property
    def has_accounts(self) -> bool:
        """Whether people sign in with names and passwords."""
        return self.accounts == "accounts"

    def check_whole(self) -> None:
        """Check that what is named is there.

        Raises:
            SettingsError: A folder or a file is not, or half of a service that people sign in by.
        """
        if bool(self.oidc_issuer) != bool(self.oidc_client_id):
            missing = "PARLOUR_OIDC_CLIENT_ID" if self.oidc_issuer else "PARLOUR_OIDC_ISSUER"
            raise SettingsError(
                f"{missing} is not set, and nobody can sign in without it.", hint="Set both, or neither."
            )
        if self.skills is not None and not self.skills.is_dir():
            raise SettingsError(
                f"There is no folder {self.skills}.",
                hint="Set PARLOUR_SKILLS to a folder with skills in it, or unset it.",
            )
        if gone := [one for one in self.demos or () if one != NO_TOKEN and not Path(one).exists()]:
            raise SettingsError(
                f"There is no recording {gone[0]}.", hint="Set PARLOUR_DEMOS to files, or folders of them, or to off."
            )

    def check_open_to(self) -> None:
        """Check that it was decided who may come, where others than this machine can reach the page.

        Raises:
            SettingsError: It was not.
        """
        decided = self.accounts != "auto" or self.owners == "cookie" or bool(self.space_hosts)
        if not (decided or self.bound_to_this_machine):
            raise SettingsError(
                f"Others can reach {self.host}, and it is not said who may come in.",
                hint="Set PARLOUR_ACCOUNTS=accounts for people with passwords, or PARLOUR_ACCOUNTS=guests to let in "
                "whoever can reach it, each browser with conversations of its own.",
                key="open_to_whom",
                host=self.host,
            )

    @property
    def may_move_port(self) -> bool:
        """Whether the next free port will do: the port is the usual one, and only this machine can know of it."""
        return "port" not in self.model_fields_set and self.bound_to_this_machine

    def page_token(self) -> str:
        """What a browser has to show to open the page; "" where nothing is asked.

        Raises:
            SettingsError: The data folder cannot be written.
        """
        if self.asks_everybody:
            return _shown(self.token)
        return self._kept("token") if self.has_local_owner and not self.asks_nobody else ""

    def _kept(self, name: str) -> str:
        try:
            return _kept_secret(self.make_home() / name)
        except OSError as error:
            why = error.strerror or str(error)
            raise SettingsError(f"The data folder {self.home} cannot be used: {why}.") from error

    def make_home(self) -> Path:
        """The data folder, made where there is none, open to its owner alone.

        Raises:
            SettingsError: It cannot be made or written.
        """
        hint = "Set PARLOUR_HOME to a folder that you may write."
        try:
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            why = "there is a file of that name" if self.home.exists() else error.strerror or str(error)
            raise SettingsError(f"The data folder {self.home} cannot be made: {why}.", hint=hint) from error
        if not os.access(self.home, os.W_OK | os.X_OK):
            raise SettingsError(f"The data folder {self.home} cannot be written.", hint=hint)
        make_private(self.home)
        return self.home

    def _own_model(self) -> dict[str, Any]:
        more = self.model_options
        address = self.base_url or next((more[name] for name in _ADDRESSES if more.get(name)), None)
        key = _shown(self.api_key) or more.get("api_key")
        cfg: dict[str, Any] = {"model": self.model, "model_type": self.model_type, "base_url": address, "api_key": key}
        cfg = {name: value for name, value in cfg.items() if value}
        if set(cfg) == {"model"} and cfg["model"].lower().endswith(".gguf"):
            cfg["model_type"] = "llama_cpp"
        if not cfg or cfg.get("model_type") == "llama_cpp":
            return cfg
        if cfg.get("model_type") in _DASHSCOPE_TYPES:
            return {**self._at_dashscope(address), **cfg}  # it has a model of its own where none is named
        if cfg.get("model_type") in _OPENAI_TYPES:
            cfg = {**(self._usual_service(key) if not address else {"api_key": self.key_for(address)}), **cfg}
        return {"model": OPENAI_DEFAULT_MODEL, "model_type": "openai", **cfg}

    def _usual_service(self, key: str | None) -> dict[str, Any]:
        """Where a model is that was named without an address: at the vendor whose key there is."""
        if self.dashscope_api_key and not (key or self.openai_api_key or self.openai_base_url):
            return {"base_url": DASHSCOPE_ADDRESS, "api_key": _shown(self.dashscope_api_key)}
        usual = {"base_url": self.openai_base_url, "api_key": _shown(self.openai_api_key)}
        return {name: value for name, value in usual.items() if value}

    def _at_dashscope(self, address: str | None) -> dict[str, Any]:
        """The vendor's key, for addresses of the vendor's; what is left out, the vendor's package knows."""
        vendor = address in {None, "dashscope"} or is_dashscope(str(address))
        return {"api_key": _shown(self.dashscope_api_key)} if vendor and self.dashscope_api_key else {}

    def key_for(self, address: str) -> str:
        """A vendor's key for the vendor's own address alone.

        Any other gets one that says nothing: were it left out, the vendor's package would take the key from its usual
        variable and send it there.
        """
        parts = urlsplit(address)
        host = parts.hostname if parts.scheme == "https" else ""
        if host == _OPENAI_HOST or address.rstrip("/") == (self.openai_base_url or "").rstrip("/"):
            return _shown(self.openai_api_key) or NO_KEY
        if address == "dashscope" or is_dashscope(address):
            return _shown(self.dashscope_api_key) or NO_KEY
        return NO_KEY

    def _vendor_model(self) -> dict[str, Any]:
        if self.openai_api_key or self.openai_base_url:
            cfg = {"base_url": self.openai_base_url, "api_key": _shown(self.openai_api_key)}
            given = {name: value for name, value in cfg.items() if value}
            return {"model": OPENAI_DEFAULT_MODEL, "model_type": "openai", **given}
        if self.dashscope_api_key:
            key = self.dashscope_api_key.get_secret_value()
            cfg = {"model": DASHSCOPE_DEFAULT_MODEL, "base_url": DASHSCOPE_ADDRESS, "api_key": key}
            return {"model_type": "openai", **cfg}
        return {}


def child_environment(names: Collection[str], beginnings: tuple[str, ...] = ()) -> dict[str, str]:
    """The few variables that a child process gets: those with one of `names`, or with one of `beginnings`."""
    return {name: value for name, value in os.environ.items() if name in names or name.startswith(beginnings)}


def named_key(variable: str) -> str:
    """The key in a variable that a configuration names as `${NAME}`; empty where it is not set."""
    return os.environ.get(variable, "").strip()


def terminal_language() -> Lang:
    """The language of the terminal, by `LC_ALL`, `LC_MESSAGES` and `LANG`; the first that is set counts."""
    said = next((value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := os.environ.get(name))), "")
    return "zh" if said.lower().startswith("zh") else "en"


def _shown(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret else ""


def _field_of(variable: str) -> str:
    return variable.removeprefix("PARLOUR_").lower()


def _settings_file(given: object) -> Path:
    """The file that was named, or the default one, which need not exist."""
    named = str(given or os.environ.get("PARLOUR_CONFIG") or "")
    if named and not Path(named).is_file():
        raise SettingsError(f"There is no settings file {named!r}.", hint="Check the path given to --config.")
    return Path(named) if named else DEFAULT_CONFIG


def make_private(home: Path) -> None:
    """Close a data folder to other accounts, where it is nobody's but Parlour's: empty, or with its database in it.

    A folder that holds anything else, such as the one somebody works in, keeps its mode; what is secret in it is
    private file by file.
    """
    try:
        mode = home.stat().st_mode
        ours = (home / "parlour.db").exists() or not any(home.iterdir())
        if os.name == "posix" and mode & 0o077 and ours and home.resolve() not in {Path.cwd(), Path.home()}:
            home.chmod(mode & 0o700)
    except OSError:
        _LOG.warning("The data folder %s is one that others on this machine can look into; make it private.", home)


def _kept_secret(path: Path) -> str:
    """Read the secret, or make it; of two processes that start together, both use the one that came first."""
    if not path.is_file():
        # Written aside and linked into place: nobody can read half a secret, and the mode is right from the start.
        draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(32))
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    if path.stat().st_mode & 0o077 and os.name == "posix":  # copied without its mode: others could read all keys
        try:
            path.chmod(0o600)
        except OSError:
            _LOG.warning("What %s holds is secret, and others on this machine can read it; make it private.", path)
    kept = path.read_bytes().decode("ascii", "ignore").strip()
    if not kept:
        raise SettingsError(f"The file {path} is empty.", hint="Delete it: a new one is made at the next start.")
    return kept
