"""Who may come in, and what they may do: names, passwords, sessions, one-time links, roles and limits; no web."""
