"""The synchronous side of an asynchronous core: plain iterators over one shared loop."""
