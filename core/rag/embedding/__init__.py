"""Text into vectors: models that ship in packages, and services."""
