"""How an exported conversation looks: paper, ink, and a marker on the pages; no script, no file beside it."""

from __future__ import annotations

import base64
from hashlib import sha256
from typing import Final

SCREEN: Final = """
:root { color-scheme: light dark; --desk:#eceae3; --paper:#f8f7f3; --sheet:#fffefb; --code:#f0eee7; --ink:#1d201c;
  --ink-2:#4d5049; --ink-3:#5f6258; --rule:#d8d5ca; --rule-2:#7f8076; --accent:#1d5a49; --soft:#dce7df; --on:#fff;
  --wait:#7a5200; --bad:#96281f; --marker:#f2cf3f;
  --sans: ui-sans-serif, -apple-system, "Segoe UI", "Noto Sans", system-ui, "Helvetica Neue", Arial, "PingFang SC",
    "Microsoft YaHei", "Noto Sans CJK SC", sans-serif;
  --serif: "Iowan Old Style", Palatino, "Noto Serif", Charter, Georgia, "Songti SC", "Noto Serif CJK SC", serif;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", "Noto Sans Mono", Consolas, Menlo, "Noto Sans Mono CJK SC",
    monospace; }
:root:lang(zh) { --sans: "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "Source Han Sans SC", system-ui,
    sans-serif; --serif: "Songti SC", "Noto Serif CJK SC", "Source Han Serif SC", "PingFang SC", serif; }
@media (prefers-color-scheme: dark) { :root { --desk:#121412; --paper:#191b19; --sheet:#222522; --code:#121412;
  --ink:#e8e5da; --ink-2:#b9b7aa; --ink-3:#9a998c; --rule:#343832; --rule-2:#74776c; --accent:#93ccb2; --soft:#24362e;
  --on:#10201a; --wait:#e0b866; --bad:#f0978b; } .sheet > * { filter: brightness(.9) sepia(.14); } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.62 var(--sans); overflow-wrap: anywhere; }
:root:lang(zh) body { line-height: 1.75; }
a { color: var(--accent); text-underline-offset: 2px; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 4px 12px; padding: 18px 32px; min-height: 64px;
  border-bottom: 1px solid var(--rule); }
.over { display: flex; flex-wrap: wrap; justify-content: flex-end; align-items: center; gap: 4px 16px;
  padding: 10px 32px; background: var(--desk);
  border-bottom: 1px solid var(--rule); font-size: 14px; }
.over a { display: inline-flex; align-items: center; min-height: 40px; padding: 0 16px; border-radius: 6px;
  background: var(--accent); color: var(--on); text-decoration: none; }
h1 { font: 500 19px/1.3 var(--serif); margin: 0; }
.note { color: var(--ink-3); font-size: 13px; margin: 0; }
main { max-width: 34.5rem; margin: 0 auto; padding: 24px 16px 64px; }
article { margin: 0; }
article + .user, .beside + .user { border-top: 1px solid var(--rule); margin-top: 24px; padding-top: 24px; }
.user .said { font: 400 19px/1.42 var(--serif); white-space: pre-wrap; margin: 0 0 12px; padding: 10px 14px;
  background: var(--desk); border-radius: 6px; }
:root:lang(zh) .user .said { font-size: 18px; line-height: 1.65; }
.who { font: 500 13px/1.4 var(--sans); color: var(--ink-3); margin: 0 0 6px; }
article h1, article h2:not(.who), article h3 { font: 600 17px/1.4 var(--sans); margin: 20px 0 8px; }
article h1 { font-size: 21px; } article h2:not(.who) { font-size: 19px; }
.by { color: var(--ink-3); font-size: 12px; margin: 12px 0 0; }
.user .by { display: none; }
.ending { color: var(--ink-2); border-left: 3px solid var(--bad); padding-left: 12px; }
pre { font: 13px/1.6 var(--mono); margin: 0; padding: 12px 14px; overflow: auto; background: var(--code);
  border-radius: 6px; white-space: pre-wrap; }
.code { position: relative; margin: 12px 0; } .code span { position: absolute; right: 10px; top: 6px; font-size: 12px;
  color: var(--ink-3); }
code { font: .875em var(--mono); background: var(--code); border-radius: 3px; padding: 0 .25em; }
pre code { font: inherit; padding: 0; background: none; }
.formula { font: .95em var(--mono); background: none; }
.math { margin: 10px 0; overflow-x: auto; overflow-y: hidden; padding: 2px 0; }
math .rooted { border-top: 1px solid; padding-top: 1px; }
math .root { margin-right: -1px; }
math mtd[columnalign="right"] { text-align: right; padding-right: 0; }
math mtd[columnalign="left"] { text-align: left; padding-left: 0; }
.formula.apart, div.formula { display: block; margin: 10px 0 10px 1.5em; white-space: pre-wrap; }
table { border-collapse: collapse; font-size: 14px; margin: 12px 0; font-variant-numeric: tabular-nums; display: block;
  overflow-x: auto; overflow-wrap: normal; }
.right { text-align: right; } .center { text-align: center; } th:not([class]) { text-align: start; }
th { border-bottom: 1.5px solid var(--ink); padding: 6px 16px 6px 0; }
td { border-bottom: 1px solid var(--rule); padding: 8px 16px 8px 0; }
blockquote { margin: 12px 0; padding-left: 14px; border-left: 2px solid var(--rule-2); color: var(--ink-2); }
img { max-width: 100%; }
details { margin: 6px 0; font-size: 13px; color: var(--ink-2); }
summary { cursor: pointer; min-height: 32px; padding: 5px 0; color: var(--ink-2); }
details > div { border-left: 1px solid var(--rule-2); padding: 4px 0 4px 14px; margin: 2px 0 8px 4px; }
.st { display: inline-block; width: 9px; height: 9px; margin-right: 8px; border-radius: 50%;
  background: var(--accent); }
.st.bad { border-radius: 1px; background: var(--bad); transform: rotate(45deg); }
.st.off { background: none; border: 1.5px solid var(--rule-2); }
.files { list-style: none; padding: 0; margin: 0 0 12px; font-size: 13px; }
.files li { display: inline-block; border: 1px solid var(--rule); border-radius: 6px; background: var(--sheet);
  padding: 6px 12px; margin: 0 8px 8px 0; }
.files img { display: block; max-height: 280px; margin: 4px 0; }
a.mark { font: 600 11px/1.5 var(--sans); color: var(--accent); background: var(--soft); border-radius: 3px;
  padding: 1px 5px; margin-left: 2px; text-decoration: none; vertical-align: 2px; }
a.mark:hover { background: var(--accent); color: var(--on); }
.evidence { background: var(--desk); padding: 24px 32px 48px; }
.evidence h2 { font: 500 17px/1.3 var(--serif); margin: 0 0 16px; }
.page { margin: 0 auto 40px; max-width: 46rem; }
.page h3 { font: 500 13px/1.4 var(--sans); margin: 0 0 10px; }
.page h3 span { color: var(--ink-3); font-weight: 400; }
.sheet { position: relative; box-shadow: 0 1px 1px #2a2a2014, 0 10px 28px -10px #2a2a2038; background: #fff; }
.sheet img { display: block; width: 100%; }
.sheet svg { position: absolute; inset: 0; width: 100%; height: 100%; mix-blend-mode: multiply; }
.sheet rect { fill: var(--marker); fill-opacity: .24; } .sheet .borne { fill-opacity: .66; }
.page ol { list-style: none; padding: 0; margin: 12px 0 0; font-size: 13px; }
.page li { display: flex; gap: 12px; padding: 8px; border-radius: 6px; border-top: 1px solid var(--rule); }
.page li:target, li.cited:target { background: var(--soft); }
.page li a { flex: none; align-self: flex-start; }
.page li p { margin: 0; white-space: pre-wrap; max-height: 14em; overflow: auto; }
footer { color: var(--ink-3); font-size: 12px; padding: 16px 32px; border-top: 1px solid var(--rule); }
.list { list-style: none; padding: 0; } .list li { border-top: 1px solid var(--rule); padding: 10px 0; }
.list span { color: var(--ink-3); font-size: 12px; display: block; }
@media (min-width: 800px) { main:has(> .beside) { max-width: 62rem; }
  main:has(> .beside) > article { max-width: 32.5rem; margin: 0 auto; }
  .beside { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 32px; } }
.beside { margin-top: 24px; }
@media (min-width: 1000px) { @supports selector(:has(*)) {
  body:has(> .evidence) { padding-right: clamp(400px, 34vw, 640px); }
  body:has(> .evidence) .evidence { position: fixed; inset: 0 0 0 auto; width: clamp(400px, 34vw, 640px);
    overflow: auto; border-left: 1px solid var(--rule); }
  body:has(> .evidence) .page { display: none; margin-bottom: 0; }
  body:has(> .evidence) .page:has(:target),
  body:has(> .evidence) .evidence:not(:has(:target)) .page:first-of-type { display: block; }
} }
@media (max-width: 600px) { header, .evidence, footer { padding-left: 16px; padding-right: 16px; }
  a.mark { padding: 6px 9px; } }
@media print { .over { display: none; }
  body:has(> .evidence) { padding: 0; } body:has(> .evidence) .evidence { position: static; width: auto; }
  body:has(> .evidence) .page { display: block; break-inside: avoid; } details > div { display: block; } }
"""
"""For a browser: beside each other the conversation and the page that is cited, below each other on a phone."""

PRINTED: Final = """
body { font-family: sans-serif; font-size: 10pt; line-height: 1.4; overflow-wrap: break-word; }
h1 { font-family: serif; font-size: 18pt; margin-bottom: 4pt; }
.who { font-size: 9pt; color: #5f6258; margin-top: 14pt; margin-bottom: 2pt; }
article h1 { font-family: sans-serif; font-size: 14pt; } h2 { font-size: 12.5pt; } h3 { font-size: 11pt; }
.note, .by { font-size: 8pt; color: #5f6258; }
.user .said { font-family: serif; font-size: 12.5pt; white-space: pre-wrap; }
pre, code, .formula { font-family: monospace; font-size: 8.5pt; }
pre { background-color: #f0eee7; padding: 5pt; white-space: pre-wrap; }
table { border-collapse: collapse; border-spacing: 0; }
td, th { border: 1px solid #d8d5ca; padding: 2pt 4pt; text-align: left; }
table.small { font-size: 8pt; } .small code { font-size: 7pt; }
table.tiny { font-size: 6.5pt; } .tiny code { font-size: 5.5pt; }
.right { text-align: right; } .center { text-align: center; }
.code { font-size: 7.5pt; color: #5f6258; margin-top: 8pt; margin-bottom: 8pt; }
.code pre { color: #1d201c; margin-top: 0; margin-bottom: 0; }
.row { margin-top: 4pt; margin-bottom: 4pt; }
ul, ol { padding-left: 20pt; } li li li ul, li li li ol { padding-left: 6pt; }
li li li li li li li li li li li li ul, li li li li li li li li li li li li ol { padding-left: 0; }
blockquote { margin-left: 4pt; margin-right: 0; padding-left: 8pt; border-left: 2px solid #a3a399; color: #4d5049; }
blockquote blockquote blockquote blockquote { margin-left: 0; padding-left: 3pt; }
blockquote blockquote blockquote blockquote blockquote blockquote blockquote blockquote blockquote blockquote
  blockquote blockquote { padding-left: 0; border-left: none; }
.call { font-size: 8.5pt; color: #4d5049; margin-left: 8pt; }
.mark { color: #1d5a49; font-weight: bold; }
.page { page-break-before: auto; margin-top: 12pt; }
"""
"""For paper, in what MuPDF understands of CSS."""


def hash_of(style: str) -> str:
    """How a content policy names a style sheet that stands in the page."""
    return f"'sha256-{base64.b64encode(sha256(style.encode()).digest()).decode()}'"
