"""English for reading documents in; part of `en.py`."""

from __future__ import annotations

READING: dict[str, str] = {
    "reading.waits": "waits for its turn",
    "reading.begins": "being read",
    "reading.at_page": "page {n} of {total}",
    "reading.at_slide": "slide {n} of {total}",
    "reading.at_sheet": "sheet {n} of {total}",
    "reading.page": "{n} pages",
    "reading.page_one": "1 page",
    "reading.slide": "{n} slides",
    "reading.slide_one": "1 slide",
    "reading.sheet": "{n} sheets",
    "reading.sheet_one": "1 sheet",
    "reading.scanned": "text recognised on {n} pages",
    "reading.scanned_one": "text recognised on 1 page",
    "reading.tables": "{n} tables",
    "reading.tables_one": "1 table",
    "reading.passages": "{n} passages",
    "reading.passages_one": "1 passage",
    "reading.known": "known already",
    "reading.vectors": "search by meaning is being prepared",
    "reading.failed": "could not be read",
    "reading.cancelled": "reading was cancelled",
    # what can be done
    "reading.cancel": "Cancel",
    "reading.cancel_it": "Stop reading {name}",
    "reading.again": "Try again",
    "reading.again_it": "Read {name} once more",
    "reading.unlock": "Enter password",
    "reading.unlock_it": "Enter the password of {name}",
    # a reply that waits, or did not wait to the end
    "reading.waiting_one": "Waiting until {name} is read",
    "reading.waiting": "Waiting until {n} documents are read",
    "reading.ask_now": "Ask now with what is ready",
    "reading.left_failed": "Answered without {name}, which could not be read.",
    "reading.left_cancelled": "Answered without {name}: reading it was cancelled.",
    "reading.left_reading": "{name} was still being read: only {n} of its {total} pages were known.",
    "reading.left_begun": "{name} was still being read: only its beginning was known.",
    # what went wrong
    "error.document_password_asked": "{name} is protected by a password",
    "error.document_password_asked.do": "Enter its password, or send a copy without one.",
    "error.document_cancelled": "Reading {name} was cancelled",
    "error.document_cancelled.do": "Press “Try again” beside it, or ask without it.",
    "error.document_reading": "{name} is still being read",
    "error.document_reading.do": "Ask again when it is done.",
    # the dialog
    "js.unlock_title": "{name} asks for its password",
    "js.unlock_field": "Password",
    "js.unlock_note": "It opens the file once and is kept nowhere.",
    "js.unlock_open_way": "It is kept nowhere, but this page came over plain http: whoever can watch your network can "
    "read it on its way.",
    "js.unlock_do": "Open",
    "js.unlock_trying": "Opening …",
    "js.unlock_empty": "Type the password.",
    "js.unlock_failed": "Parlour did not answer. Try again.",
}
