"""Documents: read in, cut into chunks, searched, and shown as evidence."""
