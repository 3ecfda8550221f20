"""Measurements that print a ratio against a named peer in the same run, since machines differ and ratios less."""
