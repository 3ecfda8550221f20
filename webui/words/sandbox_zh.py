"""Chinese for why code cannot be run: in `/readyz` and the log it stands in English."""

from __future__ import annotations

import re
from typing import Final

_SENTENCES: Final = (
    (r"it needs Linux", "需要 Linux"),
    (r"it needs Linux on x86_64 or aarch64", "需要 x86_64 或 aarch64 上的 Linux"),
    (
        r"the program bwrap is not installed \(on Debian and Ubuntu: bubblewrap\)",
        "未安装程序 bwrap（Debian 和 Ubuntu 中的软件包是 bubblewrap）",
    ),
    (r"the program (\S+) is not installed", r"未安装程序 \1"),
    (r"the package (\S+) is not installed; run: (.+)", r"未安装 Python 包 \1，请运行：\2"),
    (r"this kernel has no Landlock, or it is switched off", "此内核没有 Landlock，或 Landlock 已关闭"),
    (r"it is switched off by the settings", "已在设置中关闭"),
    (r"it does not start here \(nothing was heard within (\d+) seconds\)", r"在这里无法启动（\1 秒内没有响应）"),
    (
        r"it does not start here \(a socket that it makes is not seen outside; gVisor needs its option (\S+)\)",
        r"在这里无法启动（外面看不到它创建的套接字；gVisor 需要选项 \1）",
    ),
    (r"it does not start here \((.*)\)", r"在这里无法启动（\1）"),
    (r"it cannot be tried \((.*)\)", r"无法测试（\1）"),
    (r"it does not hold (.*)", r"没有挡住 \1"),
)
_DRIVER: Final = re.compile(r"(bubblewrap|landlock|docker|runsc|auto): (.*)", re.DOTALL)
_BETWEEN: Final = re.compile(r"; (?=(?:bubblewrap|landlock|docker|runsc|auto): )")


def why_not(reason: str) -> str:
    """The reason in Chinese; words that the system itself said stay as they are."""
    return "；".join(_said(part) for part in _BETWEEN.split(reason.strip().rstrip(".")))


def _said(part: str) -> str:
    found = _DRIVER.fullmatch(part)
    driver, sentence = found.groups() if found else ("auto", part)
    for pattern, words in _SENTENCES:
        if match := re.fullmatch(pattern, sentence, re.DOTALL):
            sentence = match.expand(words)
            break
    return sentence if driver == "auto" else f"{driver}：{sentence}"
