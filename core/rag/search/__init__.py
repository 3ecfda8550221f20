"""Ways of finding chunks; `base.py` lists them."""
