"""One agent for other programs, without accounts and without a database: OpenAI's protocol, MCP and A2A."""
