"""The web for models: searching it, and reading pages; all of it through the guarded way of `core.net`."""
