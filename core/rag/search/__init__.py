"""Ways of finding chunks; `catalog.py` lists them."""
