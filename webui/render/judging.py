"""Who judged the sentences of a reply, below it: rules alone or a model; and what having a model do it costs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from webui.render.markup import escaped
from webui.render.price import money

if TYPE_CHECKING:
    from core.runs.reply import Reply
    from core.workspace.judging import JudgingState
    from webui.words import Words


class Judging(NamedTuple):
    """A model may judge a reply.

    Args:
        state: How far that has come; `None` where it was not asked for, or is done.
    """

    state: JudgingState | None = None


def judging_html(reply: Reply, words: Words, message_id: str, judging: Judging | None) -> str:
    """The line; nothing where no sentence was checked.

    Args:
        judging: `None` where no model judges: then the line only says who did before.
    """
    if not reply.claims:
        return ""
    state = judging.state if judging is not None else None
    if state is None:
        return _line(*_done(reply, words, message_id, may=judging is not None))
    model = words.model(state.model) or words("judging.the_model")
    stop = _act("judgestop", "judging.stop", message_id, words)
    if state.kind == "working":
        return _line(f'<span class="p-st p-run"></span>{escaped(words("judging.working", model=model))}', stop)
    if state.kind == "failed":
        what, _ = words.error_parts(json.loads(state.error or "{}"))
        said = words("judging.failed", said=what.rstrip(" .。"))
        return _line(escaped(said), _act("judge", "judging.again", message_id, words))
    cost = money(state.cost, words, free=state.free)
    price = words("judging.price", model=model, tokens=f"{state.tokens:,}", cost=cost)
    said = words("judging.offer", price=price, rules=words("judging.rules_found"))
    yes, no = _act("judgenow", "judging.yes", message_id, words), _act("judgenot", "judging.no", message_id, words)
    return _line(escaped(said), f"{yes} {no}")


def _done(reply: Reply, words: Words, message_id: str, *, may: bool) -> tuple[str, str]:
    """Which way ran, how exact it was found to be, and what can be done about it."""
    if reply.judged is not None:
        model = words.model(reply.judged.model) or words("judging.the_model")
        total, denied = reply.judged.decided, sum(not one.borne_out for one in reply.judged.said)
        key = "judging.by_model" if total else "judging.undecided"
        line = words(key, model=model, n=total - denied, total=total)
        again = _act("judge", "judging.again", message_id, words) if may and not total else ""
        return f'<span title="{escaped(words("judging.model_found"))}">{escaped(line)}</span>', again
    found = escaped(words("judging.rules_found"))
    way = f'<span title="{found}">{escaped(words("judging.by_rules"))}</span>'
    is_open = may and reply.status == "complete" and any(not one.reasons for one in reply.claims)
    return way, _act("judge", "judging.ask", message_id, words) if is_open else ""


def _act(act: str, key: str, message_id: str, words: Words) -> str:
    return f'<a class="p-do" role="button" href="#do-{act}-{escaped(message_id)}">{escaped(words(key))}</a>'


def _line(said: str, acts: str = "") -> str:
    return f'<p class="p-judging">{said} {acts}</p>'.replace(" </p>", "</p>")
