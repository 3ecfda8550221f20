"""The page: Gradio in FastAPI, over `core`."""
