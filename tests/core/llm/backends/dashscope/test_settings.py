"""What may stand in the settings of a DashScope model."""

from __future__ import annotations

import pytest

from core.errors import SettingsError
from core.llm.open_model import get_chat_model

KEY = "sk-test-0123"


@pytest.mark.parametrize(
    ("cfg", "named"),
    [
        ({"base_http_api_url": "ftp://h/api"}, "base_http_api_url"),
        ({"model_server": "http://"}, "model_server"),
        ({"base_url": "http://two words/api/v1"}, "base_url"),
        ({"base_url": "http://h:99999/api/v1"}, "base_url"),
        ({"base_url": 7}, "base_url"),
        ({"api_key": "sk-钥匙"}, "api_key"),
        ({"api_key": "sk-a\nb"}, "api_key"),
        ({"default_headers": {"X": "a\r\nb"}}, "default_headers"),
        ({"default_headers": [1]}, "default_headers"),
    ],
)
def test_a_wrong_setting_is_named(cfg, named):
    with pytest.raises(SettingsError, match=named) as caught:
        get_chat_model({"model": "qwen-max", "model_type": "qwen_dashscope", "api_key": KEY, **cfg})
    assert "sk-" not in str(caught.value)


def test_the_callers_dict_stays_as_it_is():
    given = {
        "model": "qwen-max",
        "model_type": "qwen_dashscope",
        "api_key": KEY,
        "base_http_api_url": "http://h/api/v1",
    }
    kept = dict(given)
    get_chat_model(given)
    assert given == kept


def test_a_key_is_in_no_repr():
    model = get_chat_model({"model": "qwen-max", "model_type": "qwen_dashscope", "api_key": KEY})
    parts = [model, *vars(model).values()]
    assert KEY not in repr([part for part in parts if part is not model.cfg])
