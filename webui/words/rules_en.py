"""English for the rules of single tools and what may be wrong with them; part of `en.py`."""

from __future__ import annotations

RULES: dict[str, str] = {
    "rules.unknown": "“{rule}” matches no tool there is: kept for later.",
    "rules.meant": "“{rule}” matches no tool there is: did you mean {name}?",
    "tools.may_reaches_out.image_zoom_in_tool": "goes online only for a picture that is a web address",
    "rules.asked_again": "Parlour asks for this tool again.",
    "js.rules_name": "Its name in rules",
    "js.rules_here": "In this conversation",
    "js.rules_here_about": "You always allowed these here. Take one back, and Parlour asks again from its next call "
    "on.",
    "js.rules_take_back": "Take back",
    "js.rules_take_back_named": "Take back: {name}",
}
