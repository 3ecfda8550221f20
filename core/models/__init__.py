"""Which model answers whom: what can be chosen, what was chosen, and getting it ready."""
