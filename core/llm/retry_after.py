"""The `Retry-After` header, which holds seconds or a date."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def seconds_until(retry_after: str | None, now: datetime | None = None) -> float | None:
    """Seconds to wait, never below zero; `None` where the header is missing or says nothing.

    Args:
        retry_after: The header's value.
        now: Counted from here; the present by default.
    """
    if not retry_after:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        return _until(retry_after, now or datetime.now(UTC))
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _until(date: str, now: datetime) -> float | None:
    try:
        when = parsedate_to_datetime(date)
    except ValueError:
        return None
    if when.tzinfo is None:  # "-0000": the service does not say where it is, which is Greenwich in HTTP
        when = when.replace(tzinfo=UTC)
    return max((when - now).total_seconds(), 0.0)
