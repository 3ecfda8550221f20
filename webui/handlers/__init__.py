"""What the page can ask for; each handler changes state on the server and returns."""
