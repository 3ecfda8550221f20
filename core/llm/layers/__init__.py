"""The layers around every model."""
