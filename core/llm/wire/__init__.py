"""Messages to vendors' JSON and back, without any input or output of their own."""
