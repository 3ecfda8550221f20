"""From what was said and done to what the page shows; pure functions."""
