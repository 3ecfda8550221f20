"""Chinese for the keyboard: the search for titles, and the list of keys; part of `zh.py`."""

from __future__ import annotations

KEYS: dict[str, str] = {
    "history.find": "查找对话",
    "history.keys": "键盘快捷键",
    "js.find_some": "找到 {n} 个",
    "js.find_none": "没有匹配的标题。",
    "js.keys_skip": "跳到输入框",
    "js.keys_title": "键盘快捷键",
    "js.keys_in_anywhere": "任何位置",
    "js.keys_in_writing": "输入框中",
    "js.keys_in_conversations": "对话列表中",
    "js.keys_find": "按标题查找对话",
    "js.keys_new": "新对话",
    "js.keys_list": "显示本列表（不在输入文字时）",
    "js.keys_list_too": "显示本列表（输入文字时也可以）",
    "js.keys_escape": "关闭打开的内容",
    "js.keys_send": "发送",
    "js.keys_line": "换行",
    "js.keys_again": "修改问题时：重新提问",
    "js.keys_walk": "下一个、上一个",
    "js.keys_ends": "第一个、最后一个",
    "js.keys_open": "打开",
    "js.keys_menu": "重命名、导出、删除",
    "js.keys_rename": "重命名",
    "js.keys_delete": "删除（会先询问）",
}
