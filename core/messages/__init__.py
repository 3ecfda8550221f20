"""What is said: content, messages, the events of a reply, and the transcript that joins them."""
