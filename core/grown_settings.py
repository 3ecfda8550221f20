"""Settings of an installation that is larger than one machine; left out, all is kept in the data folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import SecretStr
from pydantic_settings import BaseSettings

if TYPE_CHECKING:
    from pathlib import Path


class GrownSettings(BaseSettings):
    """Where things are kept that several Parlours share.

    Args:
        database: The address of a PostgreSQL database, as in `postgresql://name:password@host:5432/database`.
    """

    database: SecretStr | None = None

    def database_in(self, home: Path) -> Path | str:
        """Where the rows are: the address that was given, else a file in the data folder."""
        return self.database.get_secret_value() if self.database is not None else home / "parlour.db"
