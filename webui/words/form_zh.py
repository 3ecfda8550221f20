"""Chinese for what an MCP server asks during a call; part of `zh.py`."""

from __future__ import annotations

FORM: dict[str, str] = {
    "form.asks": "服务器“{server}”有问题要问你",
    "form.why": "文字和表格项都来自这个服务器。你填写的内容会发给它，这里不保存。",
    "form.optional": "可以不填",
    "form.choose": "—",
    "form.yes": "是",
    "form.no": "否",
    "form.least_chars": "至少 {n} 个字。",
    "form.most_chars": "最多 {n} 个字。",
    "form.least_number": "不小于 {n}。",
    "form.most_number": "不大于 {n}。",
    "form.least_picks": "至少选 {n} 项。",
    "form.most_picks": "最多选 {n} 项。",
    "form.decline": "不回答",
    "form.answer": "回答",
    "form.over": "Parlour 关闭时，它的服务器正在提问",
    "error.wrong_answer": "“{name}”不能这样填",
    "error.wrong_answer.do": "请改正后再试。",
    "js.ask_needed": "这一项要填。",
    "js.ask_too_few": "至少选 {n} 项。",
    "js.ask_too_many": "最多选 {n} 项。",
}
