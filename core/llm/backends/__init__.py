"""One module per service or engine; vendors' packages are imported here alone."""
