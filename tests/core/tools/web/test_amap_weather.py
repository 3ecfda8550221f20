"""The weather from AMap, against a server that answers in its shape."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import SettingsError, ToolError
from core.tools.builtin.amap_weather import AmapWeather

pytestmark = pytest.mark.anyio

KEY = "amap-CANARY"
PLACE = {"formatted_address": "北京市海淀区", "province": "北京市", "city": "北京市", "adcode": "110108"}
LIVE = {
    "province": "北京",
    "city": "海淀区",
    "adcode": "110108",
    "weather": "晴",
    "temperature": "21",
    "winddirection": "西南",
    "windpower": "≤3",
    "humidity": "30",
    "reporttime": "2026-11-21 22:00:12",
}
OK = {"status": "1", "info": "OK", "infocode": "10000", "count": "1"}


def made(service: Any, **cfg: Any) -> AmapWeather:
    return AmapWeather({"token": KEY, "base_url": service.address, "own_network": True, **cfg})


async def test_the_weather_of_a_place_is_a_sentence(service: Any) -> None:
    service.says("/v3/geocode/geo", {**OK, "geocodes": [PLACE]})
    service.says("/v3/weather/weatherInfo", {**OK, "lives": [LIVE]})
    said = await made(service).call({"location": "海淀区"}, lang="zh")
    assert said == "北京市海淀区：晴，气温 21 °C，西南风 ≤3 级，湿度 30%（2026-11-21 22:00:12 发布）。"
    english = await made(service).call('{"location": "海淀区"}')
    assert english.startswith("北京市海淀区: 晴, 21 °C")
    first, second = service.requests[:2]
    assert (first.query["address"], second.query["city"]) == ("海淀区", "110108")
    assert first.query["key"] == KEY


async def test_an_unknown_place_is_told(service: Any) -> None:
    service.says("/v3/geocode/geo", {"status": "0", "info": "ENGINE_RESPONSE_DATA_ERROR", "infocode": "30001"})
    with pytest.raises(ToolError, match="no place named 'Atlantis'"):
        await made(service).call({"location": "Atlantis"})


@pytest.mark.parametrize(
    ("code", "said"),
    [("10001", "refuses the key"), ("10003", "no calls left"), ("10021", "too often"), ("9", "code 9")],
)
async def test_a_refusal_is_one_sentence_without_the_key(service: Any, code: str, said: str) -> None:
    service.says("/v3/geocode/geo", {"status": "0", "info": f"INVALID {KEY}", "infocode": code})
    with pytest.raises(ToolError, match=said) as caught:
        await made(service).call({"location": "海淀区"})
    assert KEY not in f"{caught.value!r}{caught.value}{caught.value.__cause__!r}"


async def test_without_a_key_nothing_is_sent(service: Any) -> None:
    with pytest.raises(SettingsError, match="needs a key"):
        await made(service, token="").call({"location": "海淀区"})
    assert service.requests == []
