"""Whose address it is: a key must not go to whoever rents a name beside the vendor's."""

from __future__ import annotations

import pytest

from core.known_hosts import is_dashscope

OWN = """
    https://dashscope.aliyuncs.com/api/v1 https://DashScope.aliyuncs.com:443/api/v1
    https://dashscope-intl.aliyuncs.com/compatible-mode/v1 https://dashscope-us.aliyuncs.com/api/v1
    https://dashscope-finance.aliyuncs.com/api/v1 https://cn-hongkong.dashscope.aliyuncs.com/compatible-mode/v1
    https://coding.dashscope.aliyuncs.com/v1 https://vpc-cn-beijing.dashscope.aliyuncs.com/api/v1
    https://ws-1.ap-southeast-1.maas.aliyuncs.com/api/v1
"""
NOT_OWN = """
    http://dashscope.aliyuncs.com/api/v1 https://aliyuncs.com https://oss-cn-beijing.aliyuncs.com/x
    https://mine.oss-cn-beijing.aliyuncs.com/api/v1 https://mydashscope.aliyuncs.com https://dashscope-evil.aliyuncs.com
    https://dashscope.aliyuncs.com.example/api/v1 https://dashscope.aliyuncs.com:8443/api/v1
    https://dashscope.aliyuncs.com@evil.example/v1 https://a.b.dashscope.aliyuncs.com https://maas.aliyuncs.com
    https://x.maas.aliyuncs.com https://dashscope.aliyuncs.com:port https://[dashscope.aliyuncs.com dashscope
"""


@pytest.mark.parametrize("address", OWN.split())
def test_the_services_documented_hosts_are_its_own(address: str) -> None:
    assert is_dashscope(address)


@pytest.mark.parametrize("address", ["", *NOT_OWN.split()])
def test_any_other_host_is_not_even_of_the_same_vendor(address: str) -> None:
    assert not is_dashscope(address)
