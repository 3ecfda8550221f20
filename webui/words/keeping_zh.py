"""Chinese for keeping data safe: updates of the database, backups; part of `commands_zh.py`."""

from __future__ import annotations

KEEPING: dict[str, str] = {
    "error.storage_in_use": "数据库 {path} 正被另一个 Parlour 使用",
    "error.storage_in_use.do": "请先退出那一个，再重试；没有任何改动。",
    "error.storage_update_space": "更新数据库需要 {needed} MB 可用空间，目前只有 {free} MB",
    "error.storage_update_space.do": "请腾出空间后重新启动；没有任何改动。",
    "error.storage_update_lost": "更新数据库会丢失内容（{what}），因此数据库保持原样",
    "error.storage_update_lost.do": "请继续使用原来的 Parlour，并报告这个问题。",
}
