"""The doors for programs, over HTTP: `/v1` in OpenAI's protocol."""
