"""Chinese for suites of tasks and what `parlour eval` says; part of `zh.py`."""

from __future__ import annotations

JUDGING: dict[str, str] = {
    "error.suite_one_check": "字段 {field} 必须是一项检查，即 {known} 之一。",
    "error.suite_same_id": "有两个任务的 id 都是 {id}。",
    "error.suite_no_agent": "任务 {id} 指定的智能体 {agent} 不在这套任务的 agents 里。",
    "error.suite_no_agent_near": "任务 {id} 指定的智能体 {agent} 不在这套任务的 agents 里；你是不是想写 {near}？",
    "error.suite_regex": "字段 {field} 不是正则表达式：{why}。",
    "error.suite_no_file": "任务 {id} 需要文件 {file}，但没有这个文件。",
    "error.suite_no_library": "任务 {id} 需要资料库 {library}，但没有这个资料库。",
    "error.suite_only_assistant": "任务 {id} 带有资料库，只有策略为 function_call 的智能体才能查询。",
    "error.suite_no_tool": "任务 {id} 应调用工具 {tool}，但它的智能体没有这个工具。",
    "error.suite_no_tool_near": "任务 {id} 应调用工具 {tool}，但它的智能体没有这个工具；你是不是想写 {near}？",
    "error.suite_none_left": "没有任务带有标签 {tag}。",
    "error.suite_judge": "评判模型出错：{why}",
    "eval.progress": "共 {total} 个任务，已完成 {done} 个，未通过 {failed} 个",
    "eval.over": "{of} 个任务中通过 {passed} 个（{share}）：{file}",
    "eval.there": "其中 {there} 个之前已经完成。",
    "eval.left": "还剩 {left} 个；再次运行即可继续。",
    "eval.change": "{name}：{ids}",
    "eval.no_change": "与上次运行相比没有变化。",
    "eval.below": "低于要求的 {least}。",
    "eval.no_write": "文件夹 {folder} 无法写入：{why}。",
    "eval.no_suite": "没有文件 {file}，Parlour 也没有自带叫这个名字的任务；自带的有 {known}。",
}
