"""The MCP servers of owners: what they typed, what may be started, and what answers."""
