"""A model that plays a script, and a server that speaks a model service's protocol."""
