"""What models write is shown as text: no HTML of theirs survives, at any moment of its arrival; code stays as it is."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.texts.measuring import is_in_time
from webui.render.markdown import drawable, fenced, markdown
from webui.render.markup import DISPLAY, INLINE, MARKS, escaped
from webui.words import Words

WORDS = Words("en")
READER = MarkdownIt("commonmark", {"html": True}).enable("table")
KEPT = re.compile(r"</?(?:sub|sup|kbd|details|summary|code)>|<br ?/?>", re.IGNORECASE)
PIECES = [
    "<style>*{display:none}</style>", "<img src=x onerror=alert(1)>", "<form action=/x>", "<div id=composer>",
    "</div>", "<!-- ", "-->", "<![CDATA[", "<?x", "<br>", "<details>", "</details>", "<sub>", "<svg onload=x>",
    "<a href=javascript:x>", "`", "``", "```", "````", "~~~", "```mermaid\n", "```html\n", "\n", "\n\n", "\n    ",
    "\n- ", "\n1. ", "\n> ", "> ", "- ```", "|", "\n|---|\n", "$", "$$", "\\(", "\\)", "\\[", "\\]", "\\", "\\`",
    "*", "**", "_", "[a](", "![a](", "[1]", ")", "http://x.y/z", "[x]: <y>\n", "#", "\t", " ", "a", "好", "&lt;",
    "<", ">", "a<b", MARKS[0], MARKS[1],
]  # fmt: skip


def html_of(text: str) -> list[str]:
    """Every piece of raw HTML that a Markdown reader finds."""
    parts = [part for token in READER.parse(text) for part in [token, *(token.children or [])]]
    return [part.content for part in parts if part.type in {"html_block", "html_inline"}]


def strange(text: str) -> list[str]:
    return [left for piece in html_of(text) for left in re.findall(r"<[a-zA-Z/!?][^>]*>?", KEPT.sub("", piece))]


def formulas_out(text: str) -> tuple[str, list[str]]:
    """As Gradio does: formulas leave before the Markdown is read, and come back as HTML."""
    taken: list[str] = []
    for left, right in (DISPLAY, INLINE):
        taken += re.findall(f"{left}([\\s\\S]+?){right}", text)
        text = re.sub(f"{left}([\\s\\S]+?){right}", "FORMULA", text)
    return text, taken


@given(st.lists(st.sampled_from(PIECES), max_size=24))
def test_no_html_survives_however_it_is_put_together(pieces: list[str]) -> None:
    shown, formulas = formulas_out(markdown("".join(pieces), WORDS))
    assert not strange(shown)
    assert not [formula for formula in formulas if "<" in formula]


@given(st.lists(st.sampled_from(PIECES), max_size=14), st.data())
def test_no_html_survives_at_any_prefix(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    end = data.draw(st.integers(0, len(text)))
    shown, _ = formulas_out(markdown(text[:end], WORDS, lambda numbers: f"({numbers})"))
    assert not strange(shown)


@given(st.text(alphabet=st.sampled_from("<>ab`\n |$\\*"), max_size=80))
def test_code_in_a_fence_is_untouched(code: str) -> None:
    fence = "`" * (max((len(run) for run in re.findall("`+", code)), default=2) + 3)
    tokens = READER.parse(markdown(f"Look:\n{fence}py\n{code}\n{fence}\nDone.", WORDS))
    blocks = [token for token in tokens if token.type == "fence"]
    assert [(block.content, block.info) for block in blocks] == [(code + "\n", "py")]


@pytest.mark.parametrize(
    "text",
    ["```py\nif a < b:\n    pass", "~~~\n<b>", "- x\n\n  ```\n  <b>\n", "> ```\n> <b>", "1. ```\n   <b>\n   ```\n2. y"],
)
def test_code_that_has_not_ended_yet_is_code_already(text: str) -> None:
    tokens = [token for token in READER.parse(markdown(text, WORDS)) if token.type == "fence"]
    assert len(tokens) == 1
    assert "<" in tokens[0].content


def test_code_in_a_list_belongs_to_its_item() -> None:
    tokens = READER.parse(markdown("1. Do:\n   ```sh\n   ls\n   ```\n2. Then", WORDS))
    assert [token.type for token in tokens].count("ordered_list_open") == 1
    assert next(token.content for token in tokens if token.type == "fence") == "ls\n"


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("$a<b$", "a&lt;b"),
        (r"\(a<b\)", "a&lt;b"),
        ("$x$", "x"),
        (r"is $\alpha_1$, so", r"\alpha_1"),
        ("对于$n$次", "n"),
    ],
)
def test_formulas_in_a_line_reach_the_page(text: str, formula: str) -> None:
    assert INLINE[0] + formula + INLINE[1] in markdown(text, WORDS)


@pytest.mark.parametrize("text", ["$$\na<b\n$$", "\\[\na<b\n\\]", "\\[a<b\\]", "$$a<b$$"])
def test_formulas_on_lines_of_their_own_reach_the_page(text: str) -> None:
    shown = markdown(text, WORDS)
    assert DISPLAY[0] in shown
    assert DISPLAY[1] in shown
    assert "a&lt;b" in shown


@pytest.mark.parametrize(
    "text",
    [
        "from $5 to $10",
        "US$100 or A$150",
        "`$x` and `$y`",
        "```sh\necho $A $B\n```",
        "costs $20 and you have $30.",
        r"\$5$",
    ],
)
def test_money_and_variables_are_no_formulas(text: str) -> None:
    assert not set(markdown(text, WORDS)) & set(MARKS)


def test_pictures_from_elsewhere_become_links_that_name_the_host() -> None:
    shown = markdown("![a chart](https://evil.example/x.png?q=secret)", WORDS)
    show = '<a class="p-do p-picture" role="button" href="#do-picture">Show</a>'
    assert shown == f"[a chart, picture at evil.example](https://evil.example/x.png?q=secret) {show}"


@pytest.mark.parametrize(
    "text",
    ["![x][ref]\n\n[ref]: http://evil.example/x", "![x]( http://e/x )", "![x](//e/x)", "![x](data:image/png;base64,A)"],
)
def test_no_other_way_to_a_picture_is_left(text: str) -> None:
    shown = markdown(text, WORDS)
    assert "![" not in shown
    assert not [token for token in READER.parse(shown) for part in token.children or [] if part.type == "image"]


def test_stored_pictures_are_shown() -> None:
    assert markdown("![a](/files/abc-1_2)", WORDS) == "![a](/files/abc-1_2)"


def test_a_few_bare_tags_stay() -> None:
    assert markdown("H<sub>2</sub>O<br>x <sub onclick=x>", WORDS) == "H<sub>2</sub>O<br>x &lt;sub onclick=x>"


def test_marks_become_what_the_caller_says() -> None:
    def cite(numbers: list[int]) -> str:
        return "".join(f"<{number}>" for number in numbers if number < 3)

    assert markdown("So [1]. And [1, 2], 也有[2]【1】. None [9].", WORDS, cite) == "So<1>. And<1><2>, 也有<2><1>. None."


@pytest.mark.parametrize("text", ["`a[1]`", "[1](x)", "```\na[1]\n```", "$a[1]$"])
def test_what_only_looks_like_a_mark_stays(text: str) -> None:
    assert "CITED" not in markdown(text, WORDS, lambda _: "CITED")


def test_a_drawing_is_drawn_when_it_is_whole_and_nothing_more_will_come() -> None:
    whole = "```mermaid\ngraph LR\nA-->B\n```"
    assert markdown(whole, WORDS) == whole
    assert markdown(f"> {whole}", WORDS, growing=True).count("mermaid") == 0
    assert markdown(whole, WORDS, growing=True) == whole.replace("mermaid", "")
    assert "mermaid" not in markdown(whole[:-3], WORDS)


def test_a_drawing_cannot_smuggle_markup() -> None:
    shown = markdown("```mermaid\nA[<style>x</style>]\n```", WORDS)
    assert "<" not in shown
    assert "#lt;style" in shown


@pytest.mark.parametrize("sign", ["&lt;", "&#60;", "&#x3c;", "&LT;", "&lt"])
def test_an_entity_in_a_drawing_does_not_become_a_tag(sign: str) -> None:
    shown = markdown(f'```mermaid\ngraph LR\nA["{sign}b id=composer>"] & B --> C\n```', WORDS)
    assert "#amp;" + sign[1:] in shown
    assert "] & B --> C" in shown


@pytest.mark.parametrize(
    "line",
    [
        'click A href "https://evil.example"',
        'A-->B; click A "javascript:alert(1)"',
        "link A: Home @ javascript:alert(1)",
        'LINKS A: {"x": "https://evil.example"}',
        'properties A: {"class": "p-do"}',
        'A["<%%{wrap}%%b id=composer>"]',
        'A@{ img: "https://evil.example/x.png" }',
        'A@{ "\\u0069mg": "https://evil.example/x.png" }',
    ],
)
def test_what_reaches_out_of_a_drawing_is_shown_as_code(line: str) -> None:
    assert "mermaid" not in markdown(f"```mermaid\ngraph LR\nA-->B\n{line}\n```", WORDS)
    assert "mermaid" in markdown("```mermaid\ngraph LR\nlink --> click\nlinkStyle 0 color:red\n```", WORDS)


@pytest.mark.parametrize(
    "line",
    [
        'A@{ label: "a@b", img: "https://evil.example/x.png" }',
        'A@{ label: "}", img: "https://evil.example/x.png" }',
        "%%{init: {}",
        "A %%{init: {}}%%",
    ],
)
def test_neither_signs_within_properties_nor_half_a_directive_hide_what_reaches_out(line: str) -> None:
    assert "mermaid" not in markdown(f"```mermaid\ngraph LR\nA-->B\n{line}\n```", WORDS)


@pytest.mark.parametrize(
    "before",
    [
        "%%{init: {'themeCSS': '@keyframes p-turn {}'}}%%\n",
        "  %%{\n  init: {'themeCSS': '*{}'}\n}%%\n%%{wrap}%%\n",
        "---\nconfig:\n  themeCSS: '* { color: red }'\n---\n",
        "---\ntitle: a\n---\n---\nconfig: {themeCSS: '*{}'}\n---\n",
        "%%{wrap}%%\n---\nconfig: {themeCSS: '*{}'}\n---\n",
        "---\ntitle: a\n%%{init: {'themeCSS': '*{}'}}%%\n---\n",
    ],
)
def test_directives_and_front_matter_of_a_drawing_are_dropped_and_it_is_drawn(before: str) -> None:
    shown = markdown(f"```mermaid\n{before}graph LR\nA-->B\n```", WORDS)
    assert shown.startswith("```mermaid\n")
    assert shown.endswith("graph LR\nA-->B\n```")
    assert not any(word in shown for word in ("themeCSS", "%%{", "---\n", "title"))


@given(st.lists(st.sampled_from(["%%{", "}%%", "%", "{", "}", "---", "\n", " ", "a", "%%", "\n---\n"]), max_size=14))
def test_no_directive_and_no_front_matter_reaches_a_drawing(pieces: list[str]) -> None:
    shown = markdown("```mermaid\n" + "".join(pieces) + "\n```", WORDS)
    source = shown.removeprefix("```mermaid\n")
    assert source == shown or ("%%{" not in source and not source.lstrip().startswith("---"))


def test_a_drawing_of_too_much_source_is_code_with_a_note() -> None:
    long = "```mermaid\ngraph LR\n" + "A-->B\n" * 4_000 + "```"
    shown = markdown(long, WORDS)
    assert "mermaid" not in shown
    assert WORDS("reply.drawing_long") in shown
    assert "A-->B" in shown


def test_a_drawing_is_looked_through_once_whatever_opens_in_it() -> None:
    for unit in ("@{", "@", "%%{", "}%%", "---\n", ";", "; click", "<", "&", "@{\\", "click ", " "):
        began = time.process_time()
        drawable(unit * (150_000 // len(unit)))
        markdown(f"```mermaid\n{unit * (19_000 // len(unit))}\n```", WORDS)
        assert is_in_time(time.process_time() - began, 0.5), unit


@given(st.text(max_size=300))
def test_any_text_can_be_shown(text: str) -> None:
    markdown(text, WORDS)


def test_long_text_is_read_in_one_pass() -> None:
    units = (
        "`",
        "$",
        "[1] ",
        "<",
        "![",
        "\\[",
        "$$ ",
        "> ",
        "- ",
        "*",
        "[",
        "`$<",
        " \t",
        "![a](",
        "\\(a",
        "<sub>",
        "【1",
    )
    for unit in units:
        began = time.process_time()
        markdown(unit * (40_000 // len(unit)), WORDS, lambda _: "")
        assert time.process_time() - began < 3, unit  # read anew from each place where it opens, it takes over a minute


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        (r"\[a \\[2pt] b\]", r"a \\[2pt] b"),
        (r"\[ a \\\]", r" a \\"),
        (r"\(\alpha\)", r"\alpha"),
        ("\\[a\\\nb\\]", "a\\\nb"),
        (r"\[ never closed \[a\]", "a"),
    ],
)
def test_backslashes_inside_a_formula_belong_to_it(text: str, formula: str) -> None:
    shown = markdown(text, WORDS)
    assert any(left + formula + right in shown for left, right in (INLINE, DISPLAY))


@given(st.text(max_size=80))
def test_escaped_text_is_text_and_one_line(text: str) -> None:
    shown = escaped(text)
    assert not re.search(r"[<>\"'`*_\[\]\n]", shown)
    tokens = READER.parseInline(shown)[0].children or []
    assert {token.type for token in tokens} <= {"text", "text_special", "softbreak"}


@given(st.text(alphabet="`ab\n", max_size=40))
def test_a_fence_is_longer_than_any_in_it(text: str) -> None:
    tokens = READER.parse("\n".join(fenced(text, "x")))
    assert [token.type for token in tokens] == ["fence"]
    assert tokens[0].content.rstrip("\n") == text.rstrip("\n")
