"""`python -m parlour` is the command `parlour`."""

from __future__ import annotations

import sys

from webui.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
