"""The words of reports, in both languages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.judging.checks import Outcome
    from core.llm.request import Lang

WORDS: Final[Mapping[Lang, Mapping[str, str]]] = {
    "en": {
        "passed": "passed",
        "failed": "failed",
        "of": "{passed} of {of}",
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
        "why.error": "It failed: {why}",
    },
    "zh": {
        "passed": "通过",
        "failed": "未通过",
        "of": "{passed} / {of}",
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
