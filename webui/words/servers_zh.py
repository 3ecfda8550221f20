"""Chinese for why a server of tools is not there; part of `zh.py`."""

from __future__ import annotations

SERVERS: dict[str, str] = {
    "error.mcp_late": "“{name}”在 {seconds} 秒内没有应答",
    "error.mcp_late.do": "请检查连接方式。",
    "error.mcp_none": "“{name}”的地址上应答的不是 MCP 服务器",
    "error.mcp_none.do": "请检查地址：通常以 /mcp 或 /sse 结尾。",
    "error.mcp_ended": "“{name}”在启动时退出了，没有任何输出",
    "error.mcp_ended.do": "请检查命令、参数和变量。",
    "error.mcp_ended_saying": "“{name}”在启动时退出了，最后的输出是：{wrote}",
    "error.mcp_refused": "“{name}”的地址无人应答",
    "error.mcp_refused.do": "请检查地址，以及服务器是否在运行。",
    "error.mcp_login": "“{name}”需要登录（状态 {status}）",
    "error.mcp_login.do": "请把密钥写入 Authorization 请求头。",
    "error.mcp_status": "“{name}”返回了状态 {status}",
    "error.mcp_status.do": "请检查地址。",
    "tools.try_address": "请检查地址。",
}
