"""Models: one way to ask them, many services and files behind it."""
