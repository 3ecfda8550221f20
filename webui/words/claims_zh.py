"""Chinese for what documents say to an answer; part of `zh.py`."""

from __future__ import annotations

CLAIMS: dict[str, str] = {
    "claims.weak": "与文档段落只是大致相近。点击再查一次。",
    "claims.unsupported": "文档中没有找到与此相近的段落。点击再查一次。",
    "claims.weak_web": "与网上找到的内容只是大致相近。",
    "claims.unsupported_web": "网上找到的内容中没有与此相近的说法。",
    "claims.all_web": "{total} 句中有 {n} 句与网上找到的内容相近",
    "claims.some_web": "{total} 句中有 {n} 句与网上找到的内容相近；短句不检查",
    "claims.all": "{total} 句中有 {n} 句与文档段落相近",
    "claims.some": "{total} 句中有 {n} 句与文档段落相近；短句不检查",
    "claims.again": "再次查找“{claim}”：以下段落与它相近。",
    "claims.closest": "再次查找“{claim}”：没有段落明确这样说，以下最接近。",
    "error.claim_not_found": "文档中没有类似的内容",
    "error.claim_not_found.do": "请换一种说法，或添加包含这一内容的文档。",
}
