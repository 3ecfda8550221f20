"""The weather in China's cities and districts, from AMap (高德地图)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from core.errors import SettingsError, ToolError
from core.languages import spoken
from core.tools.base import BaseTool
from core.tools.web.base import Account, answer_of, rows, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_HOME = "https://restapi.amap.com"
_LABEL = "AMap"
_REFUSED = {
    "10001": ("refuses the key", "Check the key in the settings."),
    "10009": ("refuses the key", "The key must be one for web services."),
    "10003": ("has no calls left for today", "Try again tomorrow."),
    "10004": ("is asked too often at the moment", "Try again in a minute."),
    "10021": ("is asked too often at the moment", "Try again in a moment."),
    "10044": ("has no calls left for today", "Try again tomorrow."),
}
_SAID = {
    "en": (
        "{place}: {weather}, {temperature} °C, wind {winddirection} force {windpower}, humidity {humidity} %, "
        "as of {reporttime}."
    ),
    "zh": (
        "{place}：{weather}，气温 {temperature} °C，{winddirection}风 {windpower} 级，"
        "湿度 {humidity}%（{reporttime} 发布）。"
    ),
}
_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "location": {"type": "string", "minLength": 1, "description": "A city or district in China: 北京市海淀区."},
    },
    "required": ["location"],
}


class AmapWeather(BaseTool):
    """Asks AMap. For whoever has a key of theirs; without one it is left out.

    Args:
        cfg: Options. `api_key` (or `token`) is a key for AMap's web services; `base_url` and `own_network` lead to
            another server.
    """

    name = "amap_weather"
    description = "Tells the weather right now in a city or district of China."
    parameters = _PARAMETERS
    labels: ClassVar[Mapping[str, str]] = {"en": "Weather in China", "zh": "天气查询"}
    wishes: ClassVar[Mapping[str, str]] = {"en": "ask for the weather", "zh": "查询天气"}
    deduplicate = True
    reaches_out = True
    idempotent = False
    timeout = 30.0

    def addresses(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """None: it asks the service that the user chose."""
        del arguments
        return ()

    def validate_credentials(self, credentials: Mapping[str, Any]) -> None:
        """Whether there is a key; nothing is sent.

        Raises:
            SettingsError: There is none, or no request can carry it.
        """
        self._account(credentials)

    async def call(self, params: str | dict[str, Any], *, lang: str = "en", **kwargs: Any) -> str:
        """The weather as a sentence.

        Args:
            params: `{"location": ...}`.
            lang: The language of the sentence; AMap's own words are Chinese.
            kwargs: Not used.

        Raises:
            SettingsError: There is no key.
            ToolError: There is no such place, or AMap refuses.
            FetchError: It cannot be reached.
        """
        del kwargs
        place = str(self._verify_json_format_args(params)["location"]).strip()
        account = self._account(self.credentials)
        found = rows(await self._asked(account, "geocode/geo", {"address": place}), "geocodes")
        code = text_of(found[0].get("adcode"), 20) if found else ""
        if not code:
            raise ToolError(f"AMap knows no place named {place[:80]!r}.", hint="Name a city or district in China.")
        live = rows(await self._asked(account, "weather/weatherInfo", {"city": code}), "lives")
        if not live:
            raise ToolError(f"AMap has no weather for {place[:80]!r}.", hint="Name the city that it belongs to.")
        names = ("weather", "temperature", "winddirection", "windpower", "humidity", "reporttime")
        values = {name: text_of(live[0].get(name), 40) or "?" for name in names}
        where = text_of(found[0].get("formatted_address"), 80) or place
        return _SAID[spoken(lang)].format(place=where, **values)

    def _account(self, credentials: Mapping[str, Any]) -> Account:
        cfg = {**self.cfg, **credentials}
        account = Account.of({**cfg, "api_key": cfg.get("api_key") or cfg.get("token")})
        if not account.api_key:
            raise SettingsError("The weather of AMap needs a key.", hint="Get one at lbs.amap.com, and enter it.")
        return account

    async def _asked(self, account: Account, path: str, query: Mapping[str, str]) -> dict[str, Any]:
        url = f"{account.base_url or _HOME}/v3/{path}"
        said = await answer_of(_LABEL, url, query={**query, "key": account.api_key}, reach=account.reach)
        if str(said.get("status")) != "1":
            code = text_of(said.get("infocode"), 10)
            if code.startswith("3"):  # ENGINE_RESPONSE_DATA_ERROR: what was asked for is not there
                return {}
            wrong, hint = _REFUSED.get(code, ("refuses the request", "Check the key in the settings."))
            raise ToolError(f"{_LABEL} {wrong} (code {code or '?'}).", hint=hint)
        return said
