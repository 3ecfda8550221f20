"""Models that llama.cpp runs in this process."""
