"""Models of the Transformers library, run in this process."""
