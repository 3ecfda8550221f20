"""Chinese for what documents say to an answer; part of `zh.py`."""

from __future__ import annotations

CLAIMS: dict[str, str] = {
    "claims.weak": "文档对这句话的支持不足。点击再查一次。",
    "claims.unsupported": "文档中没有这样的内容。点击再查一次。",
    "claims.weak_web": "网上找到的内容对这句话的支持不足。",
    "claims.unsupported_web": "网上找到的内容中没有这样的说法。",
    "claims.all_web": "每句话都能在网上找到的内容中找到依据",
    "claims.some_web": "{total} 句中有 {n} 句能在网上找到的内容中找到依据；短句不检查",
    "claims.all": "每句话都有文档依据",
    "claims.some": "{total} 句中有 {n} 句有文档依据；短句不检查",
    "claims.again": "再次查找：{claim}",
    "error.claim_not_found": "文档中没有类似的内容",
    "error.claim_not_found.do": "请换一种说法，或添加包含这一内容的文档。",
}
