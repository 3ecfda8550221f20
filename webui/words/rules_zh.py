"""Chinese for the rules of single tools and what may be wrong with them; part of `zh.py`."""

from __future__ import annotations

RULES: dict[str, str] = {
    "rules.unknown": "“{rule}”与现有的工具都不匹配：先保留着。",
    "rules.meant": "“{rule}”与现有的工具都不匹配：是否指 {name}？",
    "tools.may_reaches_out.image_zoom_in_tool": "仅当图片是网址时联网",
    "rules.asked_again": "之后使用这个工具前会再次询问。",
    "js.rules_name": "规则中的名称",
    "js.rules_here": "在本对话中",
    "js.rules_here_about": "以下工具在本对话中始终允许。撤回后，从下一次调用起会再次询问。",
    "js.rules_take_back": "撤回",
    "js.rules_take_back_named": "撤回：{name}",
}
