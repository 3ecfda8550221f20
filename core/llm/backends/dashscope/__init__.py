"""DashScope in its own protocol."""
