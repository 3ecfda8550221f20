"""One package per service or engine; vendors' packages are imported here alone."""
