"""Fetching from the web: one guarded way, for whatever a user, a document or a model names."""
