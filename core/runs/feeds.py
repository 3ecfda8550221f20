"""Which feed tells of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.runs.feed import TableFeed
from core.runs.redis_feed import RedisFeed

if TYPE_CHECKING:
    from core.runs.feed import Feed
    from core.storage.stores import Stores


def feed_at(redis: str, stores: Stores) -> Feed:
    """What tells of runs: by a Redis, else by the tables alone.

    Args:
        redis: Its address; "" where there is none.

    Raises:
        MissingExtraError: What speaks to it is not installed.
        ValueError: It is no address of a Redis.
    """
    if not redis:
        return TableFeed(stores.run_news)
    return RedisFeed(stores.run_news, redis)
