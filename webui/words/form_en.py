"""English for what an MCP server asks during a call; part of `en.py`."""

from __future__ import annotations

FORM: dict[str, str] = {
    "form.asks": "The server “{server}” asks you something",
    "form.why": "The words and fields are the server's. What you type goes to it, and is not kept here.",
    "form.optional": "may stay empty",
    "form.choose": "—",
    "form.yes": "Yes",
    "form.no": "No",
    "form.least_chars": "At least {n} characters.",
    "form.most_chars": "At most {n} characters.",
    "form.least_number": "{n} or more.",
    "form.most_number": "{n} or less.",
    "form.least_picks": "Tick {n} or more.",
    "form.most_picks": "Tick {n} or fewer.",
    "form.decline": "Don't answer",
    "form.answer": "Answer",
    "form.over": "its server had asked something when Parlour closed",
    "error.wrong_answer": "“{name}” cannot be answered in this way",
    "error.wrong_answer.do": "Correct it, then try again.",
    "js.ask_needed": "This is needed.",
    "js.ask_too_few": "Tick {n} or more.",
    "js.ask_too_many": "Tick {n} or fewer.",
}
