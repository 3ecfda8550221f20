"""English for the keyboard: the search for titles, and the list of keys; part of `en.py`."""

from __future__ import annotations

KEYS: dict[str, str] = {
    "history.find": "Find a conversation",
    "history.keys": "Keyboard shortcuts",
    "js.find_some": "{n} found",
    "js.find_none": "No title holds this.",
    "js.keys_skip": "Skip to the message field",
    "js.keys_title": "Keyboard shortcuts",
    "js.keys_in_anywhere": "Anywhere",
    "js.keys_in_writing": "In the message field",
    "js.keys_in_conversations": "In the list of conversations",
    "js.keys_find": "Find a conversation by its title",
    "js.keys_new": "New chat",
    "js.keys_list": "Show this list, outside text fields",
    "js.keys_list_too": "Show this list, also while writing",
    "js.keys_escape": "Close what is open",
    "js.keys_send": "Send",
    "js.keys_line": "New line",
    "js.keys_again": "Ask again, in a question that you edit",
    "js.keys_walk": "Next, previous",
    "js.keys_ends": "First, last",
    "js.keys_open": "Open",
    "js.keys_menu": "Rename, export, delete",
    "js.keys_rename": "Rename",
    "js.keys_delete": "Delete, after a question",
}
