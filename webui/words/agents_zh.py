"""Chinese for pages with several agents; part of `zh.py`."""

from __future__ import annotations

AGENTS: dict[str, str] = {
    "agents.choose": "这个对话由谁回答",
    "agents.at": "在问题里写 @ 和名字，只把这个问题交给另一位。",
    "agents.question": "问题",
    "agents.again": "换个问题，从这里重新询问",
    "agents.own_tools": "此页面的工具由打开它的程序提供；运行前何时询问，以及单个工具的规则，由你决定。",
    "agents.own_model": "这里由程序自带的模型回答，因此没有可选的模型。",
    "js.mention": "可以指定的智能体",
    "js.mention_found": "{n} 个智能体。用方向键选择，按 Enter 确认。",
    "js.mention_found_one": "1 个智能体。按 Enter 选用。",
}
