"""Figures on a PDF page: pictures, charts and drawings, with their captions and the words inside of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from core.rag.document import Block, union
from core.rag.figure_labels import figure_text, label_of
from core.rag.parsers.pdf_page import Line, is_contents_list, joined, largest_share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from core.rag.document import Rectangle
    from core.rag.parsers.pdf_page import RawPage, Runs

_SMALLEST: Final = (50.0, 40.0)  # points, wide and high: what is smaller is an icon or an ornament
_SMALLEST_SHARE, _WHOLE_SHARE = 0.012, 0.85  # of the page
_FEWEST_STROKES = 8  # curves and slanted lines that make a drawing even where no caption says so
_MOST_STROKES = 20_000
_CELL = 6.0  # points: strokes closer than that belong together
_NEAR = 60.0  # points between a figure and its caption
_ON_IT = 200  # letters on a picture without a caption: it is a background
_IN_IT = 1_200  # letters within a drawing: where there are more, it is a frame around text
_BESIDE, _LONGEST_BESIDE = 14.0, 30  # points from a drawing, and letters
_LONGEST_CAPTION = 600  # letters
_LONGEST_NAME = 12  # letters: what is no longer has no words beside the name
_MOST_ALONE = 4  # captions of a page that belong to nothing on it: there are more in a list of figures
_MOST_ON_PAGE = 12
_IN_TABLE = 0.3  # of a drawing's area: it is the table's
_READABLE: Final = (60.0, 40.0)  # points: in smaller ones no words are looked for


@dataclass(slots=True)
class _Found:
    """A figure: where it is, its caption, and the lines of text in it."""

    place: Rectangle
    drawn: bool
    caption: list[Line] = field(default_factory=list[Line])
    words: list[Line] = field(default_factory=list[Line])
    strokes: int = 0


def with_figures(runs: Runs, page: RawPage, tables: Sequence[Rectangle], number: int) -> Runs:
    """The runs of lines of a page, with one line for each figure in place of its caption and of the words in it.

    Args:
        runs: Lines as drawn, without those of tables.
        page: Upright.
        tables: Places of tables, whose rulings are no figures.
        number: The page's, from 1.
    """
    pictures = page.pictures()
    if is_covered(page, pictures):
        return runs
    found = _pictures(page, pictures) + _drawings(page, tables)
    captions = _captions(runs)
    if not found and not captions:
        return runs
    found = _with_captions(found, captions)
    taken: set[int] = {id(line) for one in found for line in one.caption}
    lines = [line for run in runs for line in run if not line.table and id(line) not in taken]
    for one in found:
        one.words = [line for line in lines if _belongs(line, one)]
        one.place = union((one.place, *(line.rectangle for line in one.words))) or one.place
    found = [one for one in found if not one.drawn or _letters(one) <= _IN_IT]
    kept = [one for one in found if one.caption or _is_figure(one)][:_MOST_ON_PAGE]
    alone = _alone(captions, found)
    gone = {id(line) for one in kept for line in (*one.caption, *one.words)} | {
        id(line) for one in alone for line in one
    }
    figures = [_as_line(one, number) for one in kept] + [_as_page(one, number) for one in alone]
    return _placed([[line for line in run if id(line) not in gone] for run in runs], runs, figures)


def is_covered(page: RawPage, pictures: Sequence[Rectangle]) -> bool:
    """Whether one picture covers the page, as that of a scan does, with or without a layer of text."""
    return largest_share(pictures, page.width, page.height) > _WHOLE_SHARE


def page_as_figure(page: RawPage, number: int) -> Block:
    """What stands for a page that is one picture."""
    return Block("figure", "", number, ((0, (0.0, 0.0, page.width, page.height)),), source="page")


def wordless(line: Line) -> Rectangle | None:
    """The place of a figure in which no words are known yet, and which may have some; `None` for another line."""
    block = line.table
    if block is None or block.kind != "figure" or block.source != "place" or "\n" in block.text:
        return None
    x0, y0, x1, y1 = place = block.lines[0][1]
    return place if x1 - x0 >= _READABLE[0] and y1 - y0 >= _READABLE[1] else None


def with_words(line: Line, words: Sequence[str]) -> Line:
    """The line of a figure, with the words that were recognised in it."""
    block = line.table
    if block is None or not words:
        return line
    mark, _, caption = block.text.partition("] ")
    text = figure_text(caption if mark else "", "\n".join(words))
    return replace(line, table=replace(block, text=text, lines=_lines([place for _, place in block.lines], text)))


# ---------------------------------------------------------------------------------------------- what may be a figure


def _pictures(page: RawPage, pictures: Sequence[Rectangle]) -> list[_Found]:
    """The pictures, those that touch each other as one: programs cut large ones into strips."""
    boxes = [box for box in pictures if box[2] - box[0] > 1 and box[3] - box[1] > 1][:_MOST_STROKES]
    return [_Found(box, drawn=False) for box, _ in _clusters(boxes, page) if _is_large(box, page)]


def _drawings(page: RawPage, tables: Sequence[Rectangle]) -> list[_Found]:
    """The places of lines and curves that belong together and are not the rulings of a table."""
    if not page.strokes and len(page.drawn) < _FEWEST_STROKES:
        return []
    area = page.width * page.height
    boxes = [box for box in (*page.strokes, *page.drawn)[:_MOST_STROKES] if _area(box) < 0.6 * area]
    boxes = [box for box in boxes if not any(_shared(box, table) >= _area(box) * 0.5 for table in tables)]
    found: list[_Found] = []
    for box, _ in _clusters(boxes, page):
        if _is_large(box, page) and all(_shared(box, table) < _IN_TABLE * _area(box) for table in tables):
            strokes = sum(_is_inside(one, box) for one in page.strokes)
            found.append(_Found(box, drawn=True, strokes=strokes))
    return found


def _is_figure(one: _Found) -> bool:
    """Whether something without a caption is a figure all the same."""
    return _letters(one) < _ON_IT and (not one.drawn or one.strokes >= _FEWEST_STROKES)


def _belongs(line: Line, one: _Found) -> bool:
    """Whether a line stands in a figure; what the axes of a chart measure stands beside them."""
    x0, y0, x1, y1 = one.place
    beside = _BESIDE if one.drawn and len(line.text) <= _LONGEST_BESIDE else 0.0
    return _is_inside(line.rectangle, (x0 - beside, y0 - beside, x1 + beside, y1 + beside))


def _letters(one: _Found) -> int:
    return sum(len(line.text) for line in one.words)


def _is_large(box: Rectangle, page: RawPage) -> bool:
    wide, high = box[2] - box[0], box[3] - box[1]
    return wide >= _SMALLEST[0] and high >= _SMALLEST[1] and wide * high >= _SMALLEST_SHARE * page.width * page.height


def _clusters(boxes: Sequence[Rectangle], page: RawPage) -> list[tuple[Rectangle, int]]:
    """Boxes that are close to each other, as one; with how many they are."""
    if not boxes:
        return []
    wide, high = int(page.width / _CELL) + 2, int(page.height / _CELL) + 2
    if wide * high > 1_000_000:  # a poster
        return [(box, 1) for box in boxes]
    covered = _covered([_in_cells(box, wide, high) for box in boxes], wide, high)
    home = _components(covered, wide, high)
    groups: dict[int, list[Rectangle]] = {}
    for box in boxes:
        x0, y0, _, _ = _in_cells(box, wide, high)
        groups.setdefault(home[y0 * wide + x0], []).append(box)
    return [(around, len(some)) for some in groups.values() if (around := union(tuple(some)))]


def _in_cells(box: Rectangle, wide: int, high: int) -> tuple[int, int, int, int]:
    x0, y0, x1, y1 = (int(edge / _CELL) for edge in box)
    return (min(max(x0, 0), wide - 1), min(max(y0, 0), high - 1), min(max(x1, 0), wide - 1), min(max(y1, 0), high - 1))


def _covered(boxes: Iterable[tuple[int, int, int, int]], wide: int, high: int) -> list[bool]:
    """The cells that any of the boxes covers: marks at their corners, summed up along both sides."""
    marks = [0] * ((wide + 1) * (high + 1))
    row = wide + 1
    for x0, y0, x1, y1 in boxes:
        marks[y0 * row + x0] += 1
        marks[y0 * row + x1 + 1] -= 1
        marks[(y1 + 1) * row + x0] -= 1
        marks[(y1 + 1) * row + x1 + 1] += 1
    above = [0] * row
    covered: list[bool] = []
    for y in range(high):
        across = accumulate(marks[y * row : (y + 1) * row])
        above = [a + b for a, b in zip(above, across, strict=True)]
        covered += [one > 0 for one in above[:wide]]
    return covered


def _components(covered: Sequence[bool], wide: int, high: int) -> list[int]:
    """For each covered cell the first cell of those that it is connected with, also across a corner; else -1."""
    home = [-1] * (wide * high)
    for start, is_covered_ in enumerate(covered):
        if not is_covered_ or home[start] >= 0:
            continue
        home[start] = start
        waiting = [start]
        while waiting:
            y, x = divmod(waiting.pop(), wide)
            for near_y in range(max(0, y - 1), min(high, y + 2)):
                for near_x in range(max(0, x - 1), min(wide, x + 2)):
                    near = near_y * wide + near_x
                    if covered[near] and home[near] < 0:
                        home[near] = start
                        waiting.append(near)
    return home


# ------------------------------------------------------------------------------------------------------- captions


def _captions(runs: Runs) -> list[list[Line]]:
    """The lines of captions; one may begin in the middle of a run."""
    found: list[list[Line]] = []
    for number, run in enumerate(runs):
        texts = [line.text for line in run]
        if run[0].table or is_contents_list(texts):
            continue
        starts = [at for at, text in enumerate(texts) if _begins(text, texts[at + 1 : at + 2], is_first=at == 0)]
        for start, end in pairwise([*starts, len(run)]):
            letters, last = 0, start
            while last < end and (last == start or letters + len(texts[last]) <= _LONGEST_CAPTION):
                letters += len(texts[last])
                last += 1
            found.append(run[start:last])
            if last == len(run):
                found[-1] += _next_line(found[-1][-1], runs[number + 1 : number + 2])
    return found


def _next_line(last: Line, following: Runs) -> list[Line]:
    """The line that goes on with a caption, where it was drawn as a run of its own."""
    line = following[0][0] if following and not following[0][0].table and len(following[0]) <= 2 else None
    if line is None or not line.text.strip()[:1].islower():
        return []
    high = last.rectangle[3] - last.rectangle[1]
    is_below = -high / 2 < line.rectangle[1] - last.rectangle[3] < high
    return following[0][:] if is_below and abs(line.size - last.size) < 1 else []


def _begins(text: str, after: Sequence[str], *, is_first: bool) -> bool:
    """Whether a caption begins with a line; its name may stand alone on it. Within a run it says so by a sign."""
    if not text.strip() or not label_of(" ".join([text.strip(), *after])):
        return False
    name = text.strip()[:24]
    return is_first or any(sign in name for sign in ".:：—|")


def _with_captions(found: list[_Found], captions: Sequence[list[Line]]) -> list[_Found]:
    """The figures with their captions; those that share one are one figure."""
    homes: dict[int, list[_Found]] = {}
    apart: list[_Found] = []
    for one in found:
        near = [(gap, at) for at, lines in enumerate(captions) if (gap := _gap(one, lines)) <= _NEAR]
        if near:
            homes.setdefault(min(near)[1], []).append(one)
        else:
            apart.append(one)
    for at, near_it in homes.items():
        some, rest = _on_one_side(near_it, captions[at])
        apart += rest
        place = union(tuple(one.place for one in some))
        if place:
            drawn = all(one.drawn for one in some)
            apart.append(_Found(place, drawn, captions[at], strokes=sum(one.strokes for one in some)))
    return sorted(apart, key=lambda one: (one.place[1], one.place[0]))


def _on_one_side(some: list[_Found], caption: Sequence[Line]) -> tuple[list[_Found], list[_Found]]:
    """Those on the side of a caption where the nearest of them is, and the others: text may stand between."""
    nearest = min(some, key=lambda one: _gap(one, caption))
    middle = caption[0].rectangle[1]
    is_above = nearest.place[1] < middle
    return [one for one in some if (one.place[1] < middle) == is_above], [
        one for one in some if (one.place[1] < middle) != is_above
    ]


def _gap(one: _Found, caption: Sequence[Line]) -> float:
    """Points between a figure and a caption above or below it, or within; far where they have nothing in common."""
    box = union(tuple(line.rectangle for line in caption))
    label = label_of(" ".join(line.text for line in caption[:2]))
    if box is None or (label.startswith("table") and one.drawn):  # the rules of a table are no picture of one
        return 2 * _NEAR
    if min(box[2], one.place[2]) - max(box[0], one.place[0]) <= 0:
        return 2 * _NEAR
    return max(box[1] - one.place[3], one.place[1] - box[3], 0.0)


def _alone(captions: Sequence[list[Line]], found: Sequence[_Found]) -> list[list[Line]]:
    """Captions of figures of which nothing was found on the page, though somebody who sees it will."""
    used = {id(one.caption[0]) for one in found if one.caption}
    alone = [
        lines
        for lines in captions
        if id(lines[0]) not in used
        and label_of(text := " ".join(line.text for line in lines)).startswith("figure")
        and len(text) > _LONGEST_NAME
    ]
    return alone if len(alone) <= _MOST_ALONE else []


# --------------------------------------------------------------------------------------------------------- as lines


def _as_line(one: _Found, number: int) -> Line:
    text = figure_text(joined([line.text for line in one.caption])[0], _words(one.words))
    caption = union(tuple(line.rectangle for line in one.caption))
    block = Block("figure", text, number, _lines([one.place, *([caption] if caption else [])], text), source="place")
    return Line("", union((one.place, *([caption] if caption else []))) or one.place, 0.0, bold=False, table=block)


def _as_page(caption: Sequence[Line], number: int) -> Line:
    place = union(tuple(line.rectangle for line in caption)) or (0.0, 0.0, 0.0, 0.0)
    text = figure_text(joined([line.text for line in caption])[0])
    return Line("", place, 0.0, bold=False, table=Block("figure", text, number, ((0, place),), source="page"))


def _lines(places: Sequence[Rectangle], text: str) -> tuple[tuple[int, Rectangle], ...]:
    """The places of a figure's block: all of them belong to all of its text."""
    return tuple((min(at, max(0, len(text) - 1)), place) for at, place in enumerate(places))


def _words(lines: Sequence[Line]) -> str:
    """The words inside of a figure, row by row."""
    rows = sorted(lines, key=lambda line: (round(line.rectangle[1] / _CELL), line.rectangle[0]))
    return "\n".join(" ".join(line.text.split()) for line in rows)


def _placed(runs: Runs, before: Runs, figures: Sequence[Line]) -> Runs:
    """The runs that are left, each figure where its first line was drawn, else before what stands below it."""
    done: Runs = []
    waiting = list(figures)
    for run, whole in zip(runs, before, strict=True):
        here = [one for one in waiting if _comes(one, whole, changed=len(run) != len(whole))]
        done += [[one] for one in here]
        waiting = [one for one in waiting if one not in here]
        if run:
            done.append(run)
    return [*done, *([one] for one in waiting)]


def _comes(figure: Line, run: Sequence[Line], *, changed: bool) -> bool:
    first = run[0].rectangle
    if changed and any(_is_inside(line.rectangle, figure.rectangle) for line in run):
        return True
    beside = min(first[2], figure.rectangle[2]) - max(first[0], figure.rectangle[0]) > 0
    return beside and first[1] >= figure.rectangle[3] - _CELL


def _is_inside(box: Rectangle, place: Rectangle) -> bool:
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return place[0] <= x <= place[2] and place[1] <= y <= place[3]


def _area(box: Rectangle) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _shared(box: Rectangle, other: Rectangle) -> float:
    wide, high = min(box[2], other[2]) - max(box[0], other[0]), min(box[3], other[3]) - max(box[1], other[1])
    return wide * high if wide > 0 and high > 0 else 0.0


def ornaments(pages: Iterable[Runs], fewest: int) -> Callable[[Line], bool]:
    """Tells whether a line stands for a figure without words that is at the same place on several pages: a logo.

    Args:
        pages: The lines of pages.
        fewest: Pages on which it stands at least.
    """
    seen: dict[tuple[int, ...], int] = {}
    for runs in pages:
        for key in {key for run in runs for line in run if (key := _same_place(line))}:
            seen[key] = seen.get(key, 0) + 1
    often = frozenset(key for key, count in seen.items() if count >= fewest)
    return lambda line: _same_place(line) in often


def _same_place(line: Line) -> tuple[int, ...]:
    block = line.table
    if block is None or block.kind != "figure" or block.text or block.source != "place":
        return ()
    return tuple(round(edge / _CELL) for edge in block.lines[0][1])
