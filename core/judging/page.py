"""The report of a run as one HTML file that needs nothing beside it, and runs nothing."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from core.judging.figures import GROUPS, changes, grouped, headline, overall, reasons, since
from core.judging.report_words import said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.judging.figures import Line
    from core.judging.result import SuiteRun
    from core.judging.row import Row
    from core.llm.request import Lang

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
    whole = _table("", overall(run, lang), lang, compared=compared)
    tables = [(said(lang, f"group.{group}"), grouped(run, group, lang)) for group in GROUPS]
    parts = [_table(title, lines, lang, compared=compared) for title, lines in tables if lines]
    return f'{whole}<div class="sheets">\n{"".join(parts)}</div>\n'


def _table(title: str, lines: Sequence[Line], lang: Lang, *, compared: bool) -> str:
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
