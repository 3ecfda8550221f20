"""Greetings, thanks, wishes and closings, in English and Chinese: they claim nothing that a passage could bear out."""

from __future__ import annotations

import re
from typing import Final


def _any(words: str, between: str | None = None) -> str:
    return f"(?:{'|'.join(words.split(between))})"


_LONGEST: Final = 120  # letters; whoever says more says something
# Loops here never give anything back: they are asked of whatever a model writes.
_NAMED: Final = r"(?:,?\s++[\w'’.-]++(?:\s++[\w'’.-]++){0,3})?"
_DAY: Final = _any("day morning afternoon evening night week weekend time trip journey stay holiday")
_FAVOUR: Final = _any(
    "attention business call consideration cooperation co-operation email feedback help interest kindness letter"
    " loyalty message note patience question reading reply support time trust understanding work"
)
_MORE: Final = r"(?:(?:any|anything|further|more|other|additional|else|questions?|concerns?|details|information)\b ?)*"
_NO_DOUBT: Final = r"(?:feel free to|do not hesitate to|don['’]t hesitate to)"
_REACH: Final = (
    rf"(?:{_NO_DOUBT} (?:ask|reach out|contact (?:me|us)|get in touch|write)"
    r"|let (?:me|us) know|ask|contact (?:me|us)|get in touch|reach out)"
)
_IF: Final = rf"(?:if (?:you|there) (?:have|need|are|is|want|would like) {_MORE})"
_THANKS: Final = (
    r"(?:(?:many|kind|with|and|i|we|would like to|want to)\s+)*thank(?:s| you)"
    r"(?: (?:very|so) much| a lot| again| all| everyone| in advance| kindly)*"
    rf"(?: for (?:all )?(?:your |the )?(?:\w+ )?{_FAVOUR}(?: and (?:your )?{_FAVOUR})?)?(?: in advance)?"
)
_YOURS: Final = _any("yours sincerely faithfully respectfully cordially truly")
_ENGLISH: Final = (
    rf"dear{_NAMED}",
    r"(?:hello|hi|hey|greetings|welcome)(?: there| all| everyone| everybody)?(?:,?\s+[\w'’.-]+)?",
    rf"good {_DAY}(?:,?\s++[\w'’.-]++(?:\s++[\w'’.-]++)?)?",
    _THANKS,
    rf"(?:we |i )?(?:really |very much |greatly )?appreciate your (?:\w+ )?{_FAVOUR}(?: and (?:your )?{_FAVOUR})?",
    rf"(?:with )?(?:(?:kind|kindest|best|warm|warmest|many|friendly) )?(?:regards|wishes|greetings){_NAMED}",
    rf"{_YOURS}(?: {_YOURS})?{_NAMED}",
    r"(?:all the best|best|cheers|take care|goodbye|bye|see you(?: soon| then)?|congratulations|good luck)",
    rf"(?:i |we )?(?:wish|have|enjoy)(?: you)?(?: all)? (?:a|an|your) (?:\w+ )?(?:\w+ )?{_DAY}(?: ahead)?",
    r"(?:i |we )?(?:really )?hope (?:this|that|it|these)(?: \w+)? (?:helps?|is (?:helpful|useful))(?: you)?",
    rf"(?:{_IF},? )?(?:please,? )?{_REACH}(?: any ?time| at any time)?(?: {_IF})?",
    r"(?:i(?:['’]m| am) |we(?:['’]re| are) )?(?:happy|glad|here) to help(?: you)?(?: further)?",
    r"you(?:['’]re| are) (?:very |most )?welcome|no problem|my pleasure|sure|of course|certainly",
    r"(?:we |i )?(?:(?:am|are) )?(?:very )?(?:sorry|apologi[sz]e) for (?:any|the) (?:inconvenience|delay)(?: caused)?",
    rf"(?:we |i )?look(?:ing)? forward to (?:hearing from you|your (?:\w+ )?{_FAVOUR}|seeing you)(?: soon)?",
)
_WHO: Final = _any("住户 业主 居民 邻居 家长 同事 客户 朋友 同学 读者 用户 旅客 乘客 会员 老师")
_YOURSELF: Final = _any("您 你 大家 各位 诸位 贵方 贵司 贵公司 贵单位 广大")
_YOU: Final = rf"(?:{_YOURSELF}*+们?+{_WHO}*+)"
_FAVOURS: Final = _any(
    "理解 配合 支持 合作 关注 阅读 提问 来信 帮助 等待 谅解 信任 关心 参与 耐心 大力 积极 鼎力 一直以来 长期以来"
    " 对 我们 我 本次 此次 工作 的 与 和 及 、 您 大家"
)
_HEARTILY: Final = _any("非常 十分 衷心 再次 谨此 在此 我们 我 由衷 诚挚 地 特此 最后 提前 先行 表示 向 并")
_WISHED: Final = _any(
    "愉快 顺利 健康 如意 安康 快乐 幸福 平安 商祺 进步 成功 康复 大安 安好 兴隆 吉祥 好 开心 顺遂 时祺"
)
_HEEDED: Final = _any("谅解 理解 配合 知悉 周知 悉知 支持 见谅 查收")
_CHINESE: Final = (
    r"(?:尊敬的|亲爱的|敬爱的)(?:(?![不禁请须应要可])[\u4e00-\u9fff]){1,14}(?:您好|你好)?",
    rf"(?:{_YOU}(?:您好|你好|大家好|好)|(?:早上|上午|中午|下午|晚上)好|早安|晚安|欢迎(?:您|你|光临)?)",
    rf"(?:{_HEARTILY}|{_YOURSELF}|们|{_WHO})*+(?:感谢|谢谢|多谢|致谢|谢意){_YOU}{_FAVOURS}*+",
    rf"(?:顺|谨|恭|敬|预|最后|衷心|并)*(?:祝|颂|祝愿|祝福){_YOU}[\u4e00-\u9fff、，]{{0,8}}{_WISHED}",
    r"此致(?:敬礼)?|敬礼|再见|保重|不客气|不用谢|没关系|好的|当然(?:可以)?|期待(?:您|你)?的?(?:回复|光临|来信)",
    rf"(?:敬请|恳请|烦请|还请|望请|望|请){_YOU}(?:予以|给予|多多|相互|互相)?{_HEEDED}(?:[和与、]?{_HEEDED})?",
    r"特此(?:通知|说明|告知|公告|致歉|函告)",
    (rf"(?:如果?|若){_YOU}还?有?(?:任何|其他|其它|进一步的?|更多|什么)*(?:疑问|问题|需要|需求|不明之处)，?(?:敬?请|欢迎)?"
    rf"{_YOU}(?:随时)?[与和向]?(?:我们|我|本人)?(?:取得)?(?:联系|咨询|告诉|告知|提问|沟通|联络)(?:我们|我)?"),
    (r"希望(?:以上|这些|这|本|上述)*(?:信息|内容|回答|解答|说明|答复)?(?:能够?|可以)?对?(?:帮到|帮助)?(?:您|你)?"
    r"(?:有所|有|能有)?(?:帮助|用)?"),
    (rf"(?:由此|因此|对)?给?{_YOU}(?:带来|造成)的?(?:任何)?不便，?(?:我们)?(?:深表|表示|深感|敬请|恳请)?"
    r"(?:谅解|抱歉|歉意)"),
)  # fmt: skip
_SIGNS: Final = r"[\s!！.。,，~～:：…*_'\"”’)）\u2600-\u27bf\U0001f300-\U0001faff]*"
_ANY: Final = re.compile(rf"[\s*_\"“'‘]*(?:{'|'.join((*_ENGLISH, *_CHINESE))}){_SIGNS}", re.IGNORECASE)


def is_courtesy(sentence: str) -> bool:
    """Whether a sentence is a greeting, thanks, a wish, an offer of help or a closing, and nothing else."""
    said = sentence.strip()
    return len(said) <= _LONGEST and not any(sign.isdecimal() for sign in said) and _ANY.fullmatch(said) is not None
