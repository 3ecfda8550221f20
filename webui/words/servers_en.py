"""English for why a server of tools is not there; part of `en.py`."""

from __future__ import annotations

SERVERS: dict[str, str] = {
    "error.mcp_late": "“{name}” did not answer within {seconds} seconds",
    "error.mcp_late.do": "Check how it is reached.",
    "error.mcp_none": "What answers at the address of “{name}” is no MCP server",
    "error.mcp_none.do": "Check its address: it often ends in /mcp or /sse.",
    "error.mcp_ended": "“{name}” ended while it was being started, and said nothing",
    "error.mcp_ended.do": "Check its command, arguments and variables.",
    "error.mcp_ended_saying": "“{name}” ended while it was being started. The last it said: {wrote}",
    "error.mcp_refused": "Nobody answers at the address of “{name}”",
    "error.mcp_refused.do": "Check the address, and whether the server runs.",
    "error.mcp_login": "“{name}” wants a login (status {status})",
    "error.mcp_login.do": "Put its key into the header Authorization.",
    "error.mcp_status": "“{name}” answers with the status {status}",
    "error.mcp_status.do": "Check its address.",
    "tools.try_address": "Check its address.",
}
