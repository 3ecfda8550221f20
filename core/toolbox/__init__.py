"""What an owner may use in a conversation: tools, servers and services of their own, accounts, and what is allowed."""
