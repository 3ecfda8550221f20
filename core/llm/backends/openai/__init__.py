"""Services that speak the OpenAI protocol."""
