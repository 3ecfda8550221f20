"""What surrounds every model, one concern a file."""
