"""Chinese: the same keys and blanks as `entrance_en.py`."""

from __future__ import annotations

ENTRANCE: dict[str, str] = {
    "entrance.title": "打开 Parlour",
    "entrance.kept": (
        "请打开 Parlour 启动时在终端显示的地址（以 ?token=… 结尾），或在此输入该令牌；"
        "令牌也保存在 Parlour 数据文件夹的“token”文件中。"
    ),
    "entrance.given": "请输入启动 Parlour 时设置的令牌（PARLOUR_TOKEN）；可向运行者询问，终端显示的地址中也有。",
    "entrance.field": "令牌",
    "entrance.open": "打开",
    "entrance.wrong": "令牌不正确。",
    "entrance.too_often": "输错次数过多，请在 {seconds} 秒后重试。",
    "entrance.needed": "需要 Parlour 的令牌：请重新加载页面并按提示操作。",
    "unread.title": "无法读取此浏览器的 Cookie",
    "unread.say": (
        "您的对话仍然保存着，但它们所属的 Cookie 已损坏，或来自另一个 Parlour；"
        "如有备份请恢复，或重新开始：旧 Cookie 会以另一个名称保留。"
    ),
    "unread.anew": "重新开始",
    "refused.host": (
        "Parlour 不接受此主机名。如果这是您的代理或网络的名称，运行者可以用 PARLOUR_ALLOWED_HOSTS 添加它；"
        "此后通过该名称访问的人各有自己的对话，且不能启动程序。"
    ),
    "refused.site": "Parlour 只响应自己的页面；此请求来自其他网站。",
    "refused.own": "Parlour 不响应由自己的工具发出的请求。",
    "refused.relayed": (
        "此请求经由代理或隧道而来，而这里的 Parlour 只属于本机的一位使用者。请让代理传递自己的主机名，"
        "并用 PARLOUR_ALLOWED_HOSTS 添加该名称；此后访问者各有自己的对话，且不能启动程序。做法见 docs/proxies.md。"
    ),
    "refused.not_here": "这里没有内容。",
    "refused.not_yours": "这属于另一个浏览器或之前的访问；请重新加载页面。",
    "refused.too_much": "超出了 Parlour 一次能接收的大小。",
}
