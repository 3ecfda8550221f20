"""What time it is, here or anywhere; a model has no clock."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from core.errors import ToolError
from core.tools.base import BaseTool

if TYPE_CHECKING:
    from collections.abc import Mapping

_OFFSET = re.compile(r"^(?:utc|gmt)?\s*([+-])\s*(\d{1,2})(?::?(\d{2}))?$", re.IGNORECASE)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DAYS_ZH = "一二三四五六日"
# Places that no zone is named after; the others are found by the zone's last part.
_PLACES = {
    "beijing": "Asia/Shanghai", "china": "Asia/Shanghai", "shenzhen": "Asia/Shanghai", "guangzhou": "Asia/Shanghai",
    "北京": "Asia/Shanghai", "上海": "Asia/Shanghai", "中国": "Asia/Shanghai", "深圳": "Asia/Shanghai",
    "广州": "Asia/Shanghai", "杭州": "Asia/Shanghai", "成都": "Asia/Shanghai", "香港": "Asia/Hong_Kong",
    "台北": "Asia/Taipei", "澳门": "Asia/Macau", "东京": "Asia/Tokyo", "日本": "Asia/Tokyo", "japan": "Asia/Tokyo",
    "首尔": "Asia/Seoul", "韩国": "Asia/Seoul", "korea": "Asia/Seoul", "新加坡": "Asia/Singapore",
    "曼谷": "Asia/Bangkok", "迪拜": "Asia/Dubai", "新德里": "Asia/Kolkata", "孟买": "Asia/Kolkata",
    "印度": "Asia/Kolkata", "india": "Asia/Kolkata", "mumbai": "Asia/Kolkata", "delhi": "Asia/Kolkata",
    "new delhi": "Asia/Kolkata", "bangalore": "Asia/Kolkata", "悉尼": "Australia/Sydney",
    "墨尔本": "Australia/Melbourne", "莫斯科": "Europe/Moscow", "伦敦": "Europe/London", "英国": "Europe/London",
    "uk": "Europe/London", "england": "Europe/London", "巴黎": "Europe/Paris", "法国": "Europe/Paris",
    "france": "Europe/Paris", "柏林": "Europe/Berlin", "德国": "Europe/Berlin", "germany": "Europe/Berlin",
    "munich": "Europe/Berlin", "frankfurt": "Europe/Berlin", "罗马": "Europe/Rome", "马德里": "Europe/Madrid",
    "milan": "Europe/Rome", "barcelona": "Europe/Madrid", "geneva": "Europe/Zurich", "纽约": "America/New_York",
    "华盛顿": "America/New_York", "washington": "America/New_York", "boston": "America/New_York",
    "miami": "America/New_York", "芝加哥": "America/Chicago", "houston": "America/Chicago",
    "dallas": "America/Chicago", "洛杉矶": "America/Los_Angeles", "旧金山": "America/Los_Angeles",
    "西雅图": "America/Los_Angeles", "san francisco": "America/Los_Angeles", "seattle": "America/Los_Angeles",
    "la": "America/Los_Angeles", "nyc": "America/New_York", "多伦多": "America/Toronto",
    "温哥华": "America/Vancouver", "圣保罗": "America/Sao_Paulo", "rio de janeiro": "America/Sao_Paulo",
    "开罗": "Africa/Cairo", "utc": "UTC", "gmt": "UTC", "z": "UTC", "est": "America/New_York",
    "pst": "America/Los_Angeles", "cst": "America/Chicago", "cet": "Europe/Paris",
}  # fmt: skip

_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "timezone": {
            "type": "string",
            "description": 'A city, an IANA time zone, or "here".',
        }
    },
    "required": [],
}


class CurrentTime(BaseTool):
    """Date, weekday and time, with the zone spelled out."""

    name = "current_time"
    description = "Tells the current date, weekday and time, here or in a given city or time zone."
    parameters = _PARAMETERS
    labels: ClassVar[Mapping[str, str]] = {"en": "Current time", "zh": "当前时间"}
    wishes: ClassVar[Mapping[str, str]] = {"en": "look at the clock", "zh": "查看时间"}
    deduplicate = True
    safe_output = True
    idempotent = False
    timeout = 5.0

    def call(self, params: str | dict[str, Any], *, lang: str = "en", **kwargs: Any) -> str:
        """The time as a sentence in `lang`.

        Raises:
            ToolError: No zone has that name; near names are offered.
        """
        del kwargs
        place = str(self._verify_json_format_args(params).get("timezone") or "").strip()
        now = datetime.now(UTC).astimezone(zone_of(place) if _is_place(place) else None)
        return told(now, lang, place if _is_place(place) else "")


def told(now: datetime, lang: str, place: str = "") -> str:
    """A moment as a sentence, which a small model can repeat: "It is Saturday, 2026-11-21, 14:05:09 …"."""
    offset = now.strftime("%z")
    zone = f"UTC{offset[:3]}:{offset[3:5]}"
    name = getattr(now.tzinfo, "key", "")
    where = f"{zone}, {name}" if name and name != "UTC" else zone
    if lang == "zh":
        day = f"{now.year}年{now.month}月{now.day}日 星期{_DAYS_ZH[now.weekday()]}"
        return f"{place}现在是 {day} {now:%H:%M:%S}（{where}）。"
    there = f"In {place} it" if place else "It"
    return f"{there} is {_WEEKDAYS[now.weekday()]}, {now:%Y-%m-%d}, {now:%H:%M:%S} ({where})."


def zone_of(place: str) -> tzinfo:
    """The time zone of a city, an IANA name or an offset such as `UTC+8`.

    Raises:
        ToolError: There is none; near names are offered.
    """
    if match := _OFFSET.match(place):
        minutes = int(match[2]) * 60 + int(match[3] or 0)
        if minutes < 24 * 60:
            return timezone(timedelta(minutes=minutes if match[1] == "+" else -minutes))
    wanted = place.casefold().replace("_", " ").strip(" .")
    zones = _zones()
    city = wanted.partition(",")[0].strip()  # "Paris, France"
    for name in (wanted, wanted.removesuffix("时间").removesuffix("市"), city, wanted.removesuffix(" time")):
        if found := zones.get(name) or _PLACES.get(name):
            return _zone(found)
    near = get_close_matches(wanted, zones, n=3, cutoff=0.7)
    hint = f"Did you mean {' or '.join(zones[name] for name in near)}?" if near else 'Try a name like "Europe/Berlin".'
    raise ToolError(f"There is no time zone named {place[:80]!r}.", hint=hint)


def _is_place(place: str) -> bool:
    return bool(place) and place.casefold() not in {"local", "here", "none", "null", "本地", "当地"}


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ToolError(f"This machine knows no time zone {name!r}.", hint="Install the package tzdata.") from error


@cache
def _zones() -> dict[str, str]:
    """Every IANA zone by its whole name and by its last part, in lower case with spaces."""
    names = sorted(
        name for name in available_timezones() if not name.startswith(("Etc/", "SystemV/", "posix", "right"))
    )
    by_city = {name.rpartition("/")[2].replace("_", " ").casefold(): name for name in names if "/" in name}
    return by_city | {name.replace("_", " ").casefold(): name for name in names}
