"""The strip in the composer's place while a demonstration is played, and those that the start page offers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from core.rag.citations import cited_numbers
from core.runs.reply import TextBlock
from webui.render.markup import escaped, exact
from webui.render.tool_words import label_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.importing.recording import About
    from webui.views import Watched
    from webui.words import Words


def demo_html(watched: Watched | None, words: Words) -> str:
    """Markup for `#demo`; nothing where a conversation is in sight."""
    if watched is None:
        return ""
    about, player = watched.demonstration.about, watched.player
    steps, now = player.tape.steps, player.step
    marks = "".join(_mark(at, now, len(steps), words) for at in range(len(steps)))
    place = words("demo.step", n=now + 1, total=len(steps))
    when = _made(about.made, words)
    said = about.said[now] if now < len(about.said) and about.said[now] else _usual(watched, now, words)
    playing = player.is_playing
    moves = "".join(
        (
            _button("demo-back", words("demo.back"), off=now == 0),
            _button("demo-still" if playing else "demo-play", words("demo.still" if playing else "demo.play")),
            _button("demo-on", words("demo.on"), off=player.is_over),
            _speed(player.speed, words),
        )
    )
    return (
        f'<section class="p-demo" role="group" aria-label="{escaped(words("demo.title"))}"'
        f' data-playing="{int(playing)}"><div class="p-marks">{marks}</div><div class="p-played"><div class="p-now">'
        f'<p class="p-when">{escaped(words("demo.line", made=when, step=place) if when else place)}</p>'
        f'<p class="p-said" role="status">{escaped(said)}</p></div><div class="p-moves">{moves}</div>'
        f'<button type="button" class="p-button p-take" data-do="demo-take">{escaped(words("demo.take"))}</button>'
        f'</div></section><p class="p-demo-foot">{escaped(words("demo.foot"))}</p>'
    )


def demo_ready_html(words: Words) -> str:
    """What stands where the model's readiness does."""
    return (
        f'<div class="p-ready p-played-now"><span class="p-st p-off"></span><span class="p-said">'
        f'{escaped(words("demo.title"))}</span> <span class="p-model">{escaped(words("demo.no_model"))}</span></div>'
    )


def offered_html(offered: Mapping[str, About], words: Words) -> str:
    """The demonstrations under the greeting; nothing where none is offered."""
    if not offered:
        return ""
    rows = "".join(
        f'<li><a class="p-watch" href="./?demo={exact(name)}" data-do="watch" data-name="{exact(name)}">'
        f'<span class="p-st p-off"></span><span class="p-name">{escaped(one.title)}</span>'
        f'<span class="p-about">{escaped(one.about)}</span>'
        f'<span class="p-go">{escaped(words("demo.watch"))}</span></a></li>'
        for name, one in offered.items()
    )
    return f'<div class="p-demos"><p>{escaped(words("demo.offered"))}</p><ul>{rows}</ul></div>'


def _mark(at: int, now: int, total: int, words: Words) -> str:
    kind = "p-past" if at < now else "p-here" if at == now else "p-ahead"
    label = escaped(words("demo.go_to", n=at + 1, total=total))
    here = ' aria-current="step"' if at == now else ""
    return (
        f'<button type="button" class="{kind}" data-do="demo-step" data-n="{at}" aria-label="{label}" title="{label}"'
        f"{here}></button>"
    )


def _button(act: str, label: str, *, off: bool = False) -> str:
    said = escaped(label)
    disabled = ' aria-disabled="true"' if off else ""
    return (
        f'<button type="button" class="p-icon p-{act}" data-do="{act}" aria-label="{said}" title="{said}"{disabled}>'
        "</button>"
    )


def _speed(speed: int, words: Words) -> str:
    label = escaped(words("demo.speed", n=speed))
    return (
        f'<button type="button" class="p-demo-speed" data-do="demo-speed" aria-label="{label}" title="{label}">'
        f"{speed}×</button>"
    )


def _made(made: float, words: Words) -> str:
    if not made:
        return ""
    day = datetime.fromtimestamp(made, UTC)
    return words("demo.made", day=day.day, month=words(f"history.month_{day.month}"), year=day.year)


def _usual(watched: Watched, now: int, words: Words) -> str:
    """What is said of a step of which the recording says nothing."""
    step = watched.player.tape.steps[now]
    if step.kind == "tool":
        return words("demo.says_tool", tool=label_of(step.name, words) or step.name)
    if step.kind == "answers" and not _has_marks(watched, step.turn):
        return words("demo.says_answers_plainly")
    return words(f"demo.says_{step.kind}")


def _has_marks(watched: Watched, turn: int) -> bool:
    """Whether a whole reply has marks that open something."""
    reply = watched.player.tape.whole(turn)
    numbers = {passage.get("number") for passage in reply.passages}
    texts = [block.text for block in reply.blocks if isinstance(block, TextBlock)]
    return any(number in numbers for text in texts for number in cited_numbers(text))
