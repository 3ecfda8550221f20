"""The report of a run, as Markdown and as one HTML file; what models and suites say is put in as text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from core.judging.checks import Outcome
    from core.judging.result import Group, Row, SuiteRun, Total
    from core.languages import Lang


WORDS: Final[Mapping[Lang, Mapping[str, str]]] = {
    "en": {
        "passed": "passed",
        "failed": "failed",
        "of": "{passed} of {of}",
        "left": "; not asked: {n}",
        "none_done": "no task was asked to its end; left: {n}",
        "task": "task",
        "model": "Model",
        "began": "Begun",
        "tokens": "Tokens",
        "seconds": "Seconds, all tasks",
        "took": "{n} s",
        "cost": "Cost",
        "cost.usd": "US$ {cost}",
        "tasks": "Tasks",
        "result": "Result",
        "before": "Before",
        "now": "Now",
        "group.tag": "By tag",
        "group.lang": "By language",
        "group.check": "By check",
        "lang.en": "English",
        "lang.zh": "Chinese",
        "check.contains": "contains",
        "check.regex": "regular expression",
        "check.cites": "cites a place",
        "check.called": "calls a tool",
        "check.no_tool": "calls no tool",
        "check.judged": "judged by a model",
        "since": "Since the last run ({began}, {model})",
        "better": "Better",
        "worse": "Worse",
        "new": "New",
        "gone": "Gone",
        "changed": "Changed, not compared",
        "nothing_changed": "Nothing changed.",
        "question": "Question",
        "answer": "Answer",
        "no_answer": "no answer",
        "calls": "Calls",
        "sources": "Cites",
        "why.contains": "The answer does not contain “{text}”.",
        "why.regex": "Nothing in the answer fits {pattern}",
        "why.cites": "The answer cites {cited}, not {place}.",
        "why.cites_nothing": "The answer cites nothing, where {place} should be.",
        "why.called_none": "No tool was called, where {tool} should be.",
        "why.called_other": "{called} was called, not {tool}.",
        "why.called_arguments": "{tool} was called, but with {arguments}",
        "why.no_tool": "{called} was called, where no tool is needed.",
        "why.judged": "The judge: {said}",
        "why.judged_unclear": "The judge gave no verdict: {said}",
        "why.evaluator": "{name} says no.",
        "why.evaluator_said": "{name}: {said}",
        "why.error": "It failed: {why}",
    },
    "zh": {
        "passed": "通过",
        "failed": "未通过",
        "of": "{passed} / {of}",
        "left": "；未提问：{n}",
        "none_done": "没有完成任何任务；剩余：{n}",
        "task": "任务",
        "model": "模型",
        "began": "开始于",
        "tokens": "token 数",
        "seconds": "全部任务用时（秒）",
        "took": "{n} 秒",
        "cost": "费用",
        "cost.usd": "{cost} 美元",
        "tasks": "任务",
        "result": "结果",
        "before": "上次",
        "now": "本次",
        "group.tag": "按标签",
        "group.lang": "按语言",
        "group.check": "按检查",
        "lang.en": "英文",
        "lang.zh": "中文",
        "check.contains": "包含文字",
        "check.regex": "正则表达式",
        "check.cites": "引用出处",
        "check.called": "调用工具",
        "check.no_tool": "不调用工具",
        "check.judged": "由模型评判",
        "since": "与上次运行相比（{began}，{model}）",
        "better": "变好",
        "worse": "变差",
        "new": "新增",
        "gone": "已删除",
        "changed": "已改动，不作比较",
        "nothing_changed": "没有变化。",
        "question": "问题",
        "answer": "回答",
        "no_answer": "没有回答",
        "calls": "调用",
        "sources": "引用",
        "why.contains": "回答中没有“{text}”。",
        "why.regex": "回答中没有符合 {pattern} 的内容",
        "why.cites": "回答引用的是 {cited}，而不是 {place}。",
        "why.cites_nothing": "回答没有引用任何出处，应引用 {place}。",
        "why.called_none": "没有调用工具，应调用 {tool}。",
        "why.called_other": "调用的是 {called}，而不是 {tool}。",
        "why.called_arguments": "调用了 {tool}，但参数是 {arguments}",
        "why.no_tool": "调用了 {called}，而这里不需要工具。",
        "why.judged": "评判：{said}",
        "why.judged_unclear": "评判没有给出结论：{said}",
        "why.evaluator": "{name} 认为不通过。",
        "why.evaluator_said": "{name}：{said}",
        "why.error": "失败：{why}",
    },
}


def said(lang: Lang, key: str, **blanks: Any) -> str:
    """A sentence with its blanks filled; a name that no table has stays itself."""
    known = WORDS[lang].get(key)
    return key.partition(".")[2] if known is None else known.format(**blanks)


def why(outcome: Outcome, lang: Lang) -> str:
    """Why a check is not met."""
    try:
        return said(lang, f"why.{outcome.why}", **outcome.details)
    except KeyError:  # a row of a later version
        return outcome.why


GROUPS: Final[Sequence[Group]] = ("tag", "lang", "check")
CHANGES: Final = ("better", "worse", "new", "gone", "changed")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a table: what is counted, what came out before, and now."""

    name: str
    before: str
    now: str


def headline(run: SuiteRun, lang: Lang) -> str:
    """How many passed, and their share; also how many were not asked, where it was stopped."""
    if not run.rows:
        return said(lang, "none_done", n=run.left)
    left = said(lang, "left", n=run.left) if run.left else ""
    return f"{_of(run.total, lang)} {said(lang, 'passed')} ({run.total.share:.0%}){left}"


def overall(run: SuiteRun, lang: Lang) -> list[Line]:
    """The model, the time, tokens, seconds and cost."""
    before = run.before
    lines = [
        Line(said(lang, "model"), before.model if before else "", run.model),
        Line(said(lang, "began"), _moment(before), _moment(run)),
        Line(said(lang, "tasks"), _of(before.total, lang) if before else "", _of(run.total, lang)),
        Line(said(lang, "tokens"), _tokens(before), _tokens(run)),
        Line(said(lang, "seconds"), f"{before.seconds:.1f}" if before else "", f"{run.seconds:.1f}"),
    ]
    if run.usage.cost is not None:
        lines.append(Line(said(lang, "cost"), _cost(before, lang), _cost(run, lang)))
    return lines


def grouped(run: SuiteRun, group: Group, lang: Lang) -> list[Line]:
    """A line for each tag, language or kind of check."""
    before = run.before.totals(group) if run.before else {}
    kind = {"lang": "lang.", "check": "check."}.get(group, "")
    names = {name: said(lang, f"{kind}{name}") if kind else name for name in run.totals(group)}
    old = {name: _of(total, lang) for name, total in before.items()}
    return [Line(names[name], old.get(name, ""), _of(total, lang)) for name, total in run.totals(group).items()]


def reasons(row: Row, lang: Lang) -> list[str]:
    """Why a task did not pass."""
    if row.error:
        return [said(lang, "why.error", why=row.error.get("message", ""))]
    return [why(one, lang) for one in row.checks if not one.passed]


def since(run: SuiteRun, lang: Lang) -> str:
    """What the comparison is with."""
    return said(lang, "since", began=_moment(run.before), model=run.before.model) if run.before else ""


def changes(run: SuiteRun, lang: Lang) -> list[tuple[str, Sequence[str]]]:
    """What is better, worse, new, gone and changed, those that are any."""
    compared = run.compared()
    found: list[tuple[str, Sequence[str]]] = [(name, getattr(compared, name)) for name in CHANGES] if compared else []
    return [(said(lang, name), ids) for name, ids in found if ids]


def _of(total: Total, lang: Lang) -> str:
    return said(lang, "of", passed=total.passed, of=total.of)


def _moment(run: SuiteRun | None) -> str:
    return run.began.partition("+")[0].replace("T", " ") + " UTC" if run else ""


def _tokens(run: SuiteRun | None) -> str:
    return f"{run.usage.total_tokens:,}" if run else ""


def _cost(run: SuiteRun | None, lang: Lang) -> str:
    cost = run.usage.cost if run else None
    return said(lang, "cost.usd", cost=f"{cost:.4f}") if cost is not None else ""


_SIGNS: Final = re.compile(r"([\\`*_\[\]<>#|~&]|(?<=\w):(?=//)|(?<=[Ww]{3})\.)")
_FENCES: Final = re.compile(r"`{3,}")


def markdown(run: SuiteRun, lang: Lang = "en") -> str:
    """The report."""
    return "\n".join(_lines(run, lang)).rstrip() + "\n"


def _lines(run: SuiteRun, lang: Lang) -> Iterator[str]:
    yield f"# {plain(run.suite)}: {headline(run, lang)}"
    yield ""
    yield from _markdown_table("", overall(run, lang), lang, compared=run.before is not None)
    if run.before is not None:
        yield f"## {plain(since(run, lang))}"
        yield ""
        listed = changes(run, lang)
        for name, ids in listed:
            yield f"- {name}: {', '.join(map(plain, ids))}"
        if not listed:
            yield said(lang, "nothing_changed")
        yield ""
    for group in GROUPS:
        if lines := grouped(run, group, lang):
            yield from _markdown_table(said(lang, f"group.{group}"), lines, lang, compared=run.before is not None)
    yield f"## {said(lang, 'tasks')}"
    yield ""
    yield f"| {said(lang, 'task')} | {said(lang, 'result')} | |"
    yield "|---|---|---|"
    for row in run.rows:
        why = " ".join(reasons(row, lang))
        yield f"| {plain(row.id)} | {said(lang, 'passed' if row.passed else 'failed')} | {plain(why)} |"
    yield ""
    for row in run.rows:
        if not row.passed:
            yield from _failed(row, lang)


def _markdown_table(title: str, lines: Sequence[Line], lang: Lang, *, compared: bool) -> Iterator[str]:
    head = [title, said(lang, "before"), said(lang, "now")] if compared else [title, said(lang, "now")]
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for line in lines:
        cells = [line.name, line.before, line.now] if compared else [line.name, line.now]
        yield f"| {' | '.join(map(plain, cells))} |"
    yield ""


def _failed(row: Row, lang: Lang) -> Iterator[str]:
    yield f"### {plain(row.id)}"
    yield ""
    for name, text in (("question", row.question), ("answer", row.answer or said(lang, "no_answer"))):
        yield f"{said(lang, name)}:"
        yield ""
        yield _fenced(text)
        yield ""
    if row.calls:
        yield f"{said(lang, 'calls')}:"
        yield ""
        yield _fenced("\n".join(f"{name} {arguments}" for name, arguments in row.calls))
        yield ""


def plain(text: str) -> str:
    """A text on one line that Markdown leaves alone."""
    return _SIGNS.sub(r"\\\1", " ".join(text.split()))


def _fenced(text: str) -> str:
    fence = "`" * max(3, max((len(found) for found in _FENCES.findall(text)), default=0) + 1)
    return f"{fence}text\n{text}\n{fence}"


_STYLE: Final = """
:root{color-scheme:light dark;--desk:#eceae3;--sheet:#fffefb;--code:#f0eee7;--ink:#1d201c;--ink-2:#4d5049;
--rule:#d8d5ca;--good:#1d5a49;--good-soft:#dce7df;--bad:#96281f;--bad-soft:#f6e4e0}
@media(prefers-color-scheme:dark){:root{--desk:#121412;--sheet:#222522;--code:#121412;--ink:#e8e5da;--ink-2:#b9b7aa;
--rule:#343832;--good:#93ccb2;--good-soft:#24362e;--bad:#f0978b;--bad-soft:#3a2220}}
*{box-sizing:border-box}
body{margin:0;padding:24px 16px 64px;background:var(--desk);color:var(--ink);line-height:1.5;font-size:15px;
font-family:ui-sans-serif,-apple-system,"Segoe UI","Noto Sans",system-ui,"PingFang SC","Microsoft YaHei",
"Noto Sans CJK SC",sans-serif;overflow-wrap:anywhere}
main{max-width:860px;margin:0 auto}
h1{font-size:22px;line-height:1.3;margin:0 0 4px}
h2{font-size:16px;margin:0 0 8px}
.share{font-size:17px;color:var(--ink-2);margin:0 0 12px;font-variant-numeric:tabular-nums}
.bar{height:8px;border-radius:4px;background:var(--bad-soft);overflow:hidden;margin:0 0 24px}
.bar i{display:block;height:100%;background:var(--good)}
.sheets{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,264px),1fr));gap:16px;align-items:start}
section{background:var(--sheet);border:1px solid var(--rule);border-radius:10px;padding:16px;margin:0 0 16px}
.sheets section{margin:0}
.sheets+section{margin-top:16px}
table{width:100%;border-collapse:collapse;font-size:14px}
th,td{text-align:left;padding:4px 8px 4px 0;border-top:1px solid var(--rule);vertical-align:top;font-weight:400}
.sheets td{white-space:nowrap}
p{margin:0}
td{text-align:right;font-variant-numeric:tabular-nums;padding-right:0;padding-left:12px}
thead th,thead td{color:var(--ink-2);font-size:12.5px;border-top:0}
dl{margin:0;display:grid;grid-template-columns:max-content 1fr;gap:4px 16px}
dt{color:var(--ink-2)}
dd{margin:0}
details{border-top:1px solid var(--rule)}
details:first-of-type{border-top:0}
summary{display:grid;grid-template-columns:5.2em minmax(0,1fr) auto;gap:12px;padding:10px 0;cursor:pointer;
list-style:none;align-items:baseline}
summary::-webkit-details-marker{display:none}
summary:focus-visible{outline:2px solid var(--good);outline-offset:2px;border-radius:6px}
.mark{font-size:12.5px;padding:1px 8px;border-radius:6px;text-align:center;background:var(--good-soft);
color:var(--good)}
.failed .mark{background:var(--bad-soft);color:var(--bad)}
.why{display:block;color:var(--ink-2);font-size:13px}
.took{color:var(--ink-2);font-size:12.5px;font-variant-numeric:tabular-nums;white-space:nowrap}
.inside{padding:0 0 14px}
h3{font-size:12.5px;font-weight:400;color:var(--ink-2);margin:8px 0 4px}
pre{margin:0;padding:10px 12px;background:var(--code);border-radius:6px;white-space:pre-wrap;font:inherit;
font-size:14px}
@media(min-width:600px){.inside{padding-left:calc(5.2em + 12px)}}
@media print{details:not([open])>.inside{display:block}body{background:none}}
"""


def page(run: SuiteRun, lang: Lang = "en") -> str:
    """The report. Whatever models and suites say is escaped; the page asks for nothing and has no script."""
    title = f"{_text(run.suite)}: {_text(headline(run, lang))}"
    return (
        f'<!doctype html>\n<html lang="{lang}">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{_text(run.suite)}</h1>\n"
        f'<p class="share">{_text(headline(run, lang))}</p>\n'
        f'<div class="bar" aria-hidden="true"><i style="width:{run.total.share:.1%}"></i></div>\n'
        f"{_changed(run, lang)}{_tables(run, lang)}{_tasks(run.rows, lang)}</main>\n</body>\n</html>\n"
    )


def _changed(run: SuiteRun, lang: Lang) -> str:
    if run.before is None:
        return ""
    listed = "".join(f"<dt>{_text(name)}</dt><dd>{_text(', '.join(ids))}</dd>\n" for name, ids in changes(run, lang))
    body = f"<dl>\n{listed}</dl>" if listed else f"<p>{_text(said(lang, 'nothing_changed'))}</p>"
    return f"<section>\n<h2>{_text(since(run, lang))}</h2>\n{body}\n</section>\n"


def _tables(run: SuiteRun, lang: Lang) -> str:
    compared = run.before is not None
    whole = _html_table("", overall(run, lang), lang, compared=compared)
    tables = [(said(lang, f"group.{group}"), grouped(run, group, lang)) for group in GROUPS]
    parts = [_html_table(title, lines, lang, compared=compared) for title, lines in tables if lines]
    return f'{whole}<div class="sheets">\n{"".join(parts)}</div>\n'


def _html_table(title: str, lines: Sequence[Line], lang: Lang, *, compared: bool) -> str:
    names = [said(lang, "before"), said(lang, "now")] if compared else []
    heads = "".join(f"<td>{_text(name)}</td>" for name in names)
    head = f"<thead><tr><th></th>{heads}</tr></thead>\n" if names else ""
    rows = "".join(
        f'<tr><th scope="row">{_text(line.name)}</th>'
        + (f"<td>{_text(line.before)}</td>" if compared else "")
        + f"<td>{_text(line.now)}</td></tr>\n"
        for line in lines
    )
    above = f"<h2>{_text(title)}</h2>\n" if title else ""
    return f"<section>\n{above}<table>\n{head}<tbody>\n{rows}</tbody>\n</table>\n</section>\n"


def _tasks(rows: Sequence[Row], lang: Lang) -> str:
    return f"<section>\n<h2>{_text(said(lang, 'tasks'))}</h2>\n{''.join(_task(row, lang) for row in rows)}</section>\n"


def _task(row: Row, lang: Lang) -> str:
    state = "passed" if row.passed else "failed"
    why = "".join(f'<span class="why">{_text(one)}</span>' for one in reasons(row, lang))
    parts = [("question", row.question), ("answer", row.answer or said(lang, "no_answer"))]
    if row.calls:
        parts.append(("calls", "\n".join(f"{name} {arguments}" for name, arguments in row.calls)))
    if row.sources:
        parts.append(("sources", "\n".join(f"{name}:{number}" if number else name for name, number in row.sources)))
    inside = "".join(f"<h3>{_text(said(lang, name))}</h3>\n<pre>{_text(text)}</pre>\n" for name, text in parts)
    took = said(lang, "took", n=f"{row.seconds:.1f}")
    return (
        f'<details class="{state}">\n<summary><span class="mark">{_text(said(lang, state))}</span>'
        f'<span>{_text(row.id)}{why}</span><span class="took">{_text(took)}</span></summary>\n'
        f'<div class="inside">\n{inside}</div>\n</details>\n'
    )


def _text(text: str) -> str:
    """A text as text, without signs that no page may hold or that turn the direction of what follows."""
    return escape("".join(sign for sign in text if sign.isprintable() or sign in "\n\t"))
