"""Readers of file formats, one file each; `catalog.py` lists them, `worker.py` runs them in a process of their own."""
