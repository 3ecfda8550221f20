"""Chinese for what one owner may do at once, and how often; part of `zh.py`."""

from __future__ import annotations

LIMITS: dict[str, str] = {
    "reply.queued": "正在排队，等你的其他回答完成后开始",
    "error.too_many_requests": "请求太频繁",
    "error.too_many_requests.do": "请稍后再试。",
    "error.queue_full": "已有 {waiting} 个回答在排队",
    "error.queue_full.do": "请等其中一个完成后再发送，或停止一个。",
}
