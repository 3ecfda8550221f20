"""Chinese for what is fetched from the web; part of `zh.py`."""

from __future__ import annotations

LINKS: dict[str, str] = {
    "error.fetch_failed": "无法获取该网页",
    "error.fetch_failed.do": "请检查地址，或把网页保存后作为文件添加。",
    "error.fetch_bad_address": "这不是网页或文件的地址",
    "error.fetch_bad_address.do": "请给出以 https:// 开头、不含密码的地址。",
    "error.fetch_private": "{host} 不在公开的互联网上",
    "error.fetch_private.do": "只获取公开的网页，并且只用常用端口。"
    "这台电脑或自己网络中的内容，可以保存后作为文件添加。",
    "error.fetch_own": "{host} 是 Parlour 自己的地址",
    "error.fetch_own.do": "请给出其他网页或服务的地址。",
    "error.fetch_unreachable": "无法连接 {host}",
    "error.fetch_unreachable.do": "请检查地址，并确认这台电脑已联网。",
    "error.fetch_untrusted": "{host} 的证书不可信",
    "error.fetch_untrusted.do": "请检查地址；如果地址无误，请在浏览器中保存网页后作为文件添加。",
    "error.fetch_refused": "{host} 不提供该网页（状态码 {status}）",
    "error.fetch_refused.do": "请在浏览器中打开。需要登录的网页可以保存后作为文件添加。",
    "error.fetch_redirects": "{host} 一再转到别的地址",
    "error.fetch_redirects.do": "请在浏览器中打开，然后给出最终的地址。",
    "error.fetch_too_large": "{host} 发来的内容超过 {limit} MB",
    "error.fetch_too_large.do": "请保存后作为文件添加。",
    "error.fetch_too_slow": "{host} 用时超过 {seconds} 秒",
    "error.fetch_too_slow.do": "请稍后再试。",
    "error.fetch_kind": "{host} 发来的内容无法读取（{kind}）",
    "error.fetch_kind.do": "可以获取网页、PDF、办公文档、图片和文本。",
}
