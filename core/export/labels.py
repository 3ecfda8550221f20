"""What an export says of itself, in both languages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Lang: TypeAlias = Literal["en", "zh"]

LABELS: Final[Mapping[Lang, Mapping[str, str]]] = {
    "en": {
        "untitled": "A conversation",
        "exported": "Exported from Parlour, {when} UTC.",
        "others": "{n} turns of other versions are not in sight; the JSON export has them.",
        "other": "1 turn of another version is not in sight; the JSON export has it.",
        "user": "You",
        "assistant": "Assistant",
        "thought": "Thought",
        "step": "Step {n}",
        "arguments": "Called with",
        "result": "Result",
        "no_result": "There is no result.",
        "file": "File",
        "image": "Picture",
        "audio": "Sound",
        "video": "Video",
        "bytes": "{n} bytes",
        "page": "page {n}",
        "waiting": "not over yet",
        "asked": "waits to be allowed",
        "done": "done",
        "failed": "failed",
        "refused": "not allowed",
        "call_stopped": "stopped",
        "running": "This reply was still being written when it was exported.",
        "paused": "This reply pauses here.",
        "stopped": "This reply was stopped here.",
        "error": "This reply broke off: {why}",
        "interrupted": "This reply was interrupted here.",
        "apart": " ",
    },
    "zh": {
        "untitled": "对话",
        "exported": "由 Parlour 导出，{when}（UTC）。",
        "others": "另有 {n} 条属于其他版本，此处未显示；JSON 导出中有全部内容。",
        "other": "另有 1 条属于其他版本，此处未显示；JSON 导出中有全部内容。",
        "user": "你",
        "assistant": "助手",
        "thought": "思考",
        "step": "第 {n} 步",
        "arguments": "参数",
        "result": "结果",
        "no_result": "没有结果。",
        "file": "文件",
        "image": "图片",
        "audio": "音频",
        "video": "视频",
        "bytes": "{n} 字节",
        "page": "第 {n} 页",
        "waiting": "尚未结束",
        "asked": "等待许可",
        "done": "完成",
        "failed": "失败",
        "refused": "未获许可",
        "call_stopped": "已停止",
        "running": "导出时，这条回复还在生成中。",
        "paused": "这条回复在此暂停。",
        "stopped": "这条回复在此被停止。",
        "error": "这条回复中断了：{why}",
        "interrupted": "这条回复在此中断。",
        "apart": "",
    },
}
