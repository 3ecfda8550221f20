"""Chinese for what one owner may do at once, and how often; part of `zh.py`."""

from __future__ import annotations

LIMITS: dict[str, str] = {
    "reply.queued": "正在排队，等你的其他回答完成后开始",
    "error.too_many_requests": "请求太频繁",
    "error.too_many_requests.do": "请稍后再试。",
    "error.queue_full": "已有 {waiting} 个回答在排队",
    "error.queue_full.do": "请等其中一个完成后再发送，或停止一个。",
    "error.quota_full": "你的文件已占满可用空间（{limit} MB）",
    "error.quota_full.do": "请先删除不再需要的对话或资料库及其文件，然后重新添加。",
    "error.too_many_uploads": "你在一小时内添加的文件太多",
    "error.too_many_uploads.do": "请在 {minutes} 分钟后再添加。",
    "error.too_many_visitors": "来自你所在网络的新访客太多",
    "error.too_many_visitors.do": "请在 {seconds} 秒后重新打开此页。",
    "error.own_kernel_busy": "代码解释器正在你的另一个对话中运行",
    "error.own_kernel_busy.do": "请等它运行完再试。",
    "invisible.removed": "已去除 {n} 个不可见字符",
    "invisible.removed_one": "已去除 1 个不可见字符",
}
