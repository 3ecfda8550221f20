"""The parts around the conversation: each a function from values to markup, escaped here."""
