"""Where Hugging Face Spaces starts Parlour; everywhere else it is `make run` or `python -m webui`."""

from __future__ import annotations

import sys

from webui.__main__ import main

if __name__ == "__main__":
    # A Space reaches its app from outside the container, at this port.
    sys.exit(main(["--host", "0.0.0.0", "--port", "7860"]))  # noqa: S104
