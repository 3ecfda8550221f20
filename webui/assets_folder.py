"""Where the stylesheet, script, icons and sample documents lie: in the checkout, or inside an installed copy."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent


def assets_folder() -> Path:
    """The folder `assets`, which ends up inside `webui` when Parlour is installed as a package.

    Raises:
        FileNotFoundError: Neither place has it, so the copy of Parlour is not whole.
    """
    for folder in (_HERE / "assets", _HERE.parent / "assets"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"Parlour's folder of assets is missing beside {_HERE}.")
