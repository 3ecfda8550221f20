"""A process that runs code for Parlours on other machines, and does nothing else."""
