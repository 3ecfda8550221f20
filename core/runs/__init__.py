"""Replies that outlive their page: a task, its event log, and what a reader sees of it."""
