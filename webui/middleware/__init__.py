"""What stands between the network and the page: pure ASGI, outermost first: `headers`, `owner`, `gate`."""
