"""What turns a sentence round, held against one in nearly the same words: denials, opposites, extents and roles."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

from core.rag.claims.lists import listed
from core.rag.search.terms import EMPTY_CHARACTERS, STOP_WORDS, terms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Both: TypeAlias = "tuple[str, str] | None"
"""The words of a sentence, and those of the other; `None` where they agree."""

_MOST = 300  # words or characters that are looked at
_TOKEN = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*|[,;:.!?]")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_STOPS = frozenset(",;:.!?")

_DENYING = listed(
    "not no never without cannot neither nor none nobody nothing fail fails failed refuse refuses refused denied "
    "denies deny lack lacks lacked unable hardly"
)
_DENYING_ELSEWHERE = listed(
    "nicht kein keine keinen keinem keiner keines nie niemals pas jamais aucun aucune ningún ninguna nunca non"
)
_DENYING_VERBS = listed("non")
_DENIED_BEFORE = listed("nicht pas")  # what they deny may stand before them
_PASSED = listed(
    "longer be been being have has had ever yet to "
    "für in an von mit bei auf zu le la les l de du un une el los las il lo"
)
_ENDED = listed("stop stops stopped cease ceases ceased discontinued")
_NO_DENIAL = listed(
    "only just merely all least more less fewer later earlier until matter doubt one sooner exceed than "
    "nur seulement uniquement solo sólo mehr weniger plus moins más menos"
)
HAN_DENIAL = re.compile(
    r"不(?=得|能|会|可|是|再|予|被|应|需|必|包|承|赔|适|属|在|收|提|支|允|接|享|具|含|给|存|同意|想|愿|喜|知|参|用|去|做|要|准|许)"
    r"|没有|未(?!来|必|知|婚)|无(?:法|需|权|须|效)|并非|并不|禁止|拒绝|从不|没(?=能|被|再|得)"
)
_HAN_PASSED = re.compile(r"[得能会可是再予被应需必须曾经要有能够许用]*")
_CONDITIONAL = re.compile(
    r"\b(?:unless|except|excluding|otherwise|until|without|only|but|ohne|außer|sofern|nur|sondern|sans|sauf|sin|salvo|excepto)\b|除非|除了|以外|之外|否则|但",
    re.IGNORECASE,
)


def is_conditional(text: str) -> bool:
    """Whether a sentence has an exception or a condition, so that a denial may be of that alone."""
    return bool(_CONDITIONAL.search(text))


def denied(mine: str, theirs: str) -> Both:
    """What one of two sentences denies and the other says."""
    own, other = _denials(mine), _denials(theirs)
    if _DENYING_ELSEWHERE.intersection(_tokens(mine)) and _DENYING_ELSEWHERE.intersection(_tokens(theirs)):
        return None  # in German the word stands far from what it denies
    if _ENDED & {*_tokens(mine), *_tokens(theirs)}:
        return None  # "will stop selling" is "will not sell"
    for head, words in own.items():
        if head and head not in other and "" not in other and _has(head, theirs):
            return words, _written(head, theirs)
    for head, words in other.items():
        if head and head not in own and "" not in own and _has(head, mine):
            return _written(head, mine), words
    return None


def _denials(text: str) -> dict[str, str]:
    """What a text denies: the first word that says something after the denial; "" where none follows."""
    found: dict[str, str] = {}
    if _HAN.search(text):
        for match in HAN_DENIAL.finditer(text[:_MOST]):
            passed = _HAN_PASSED.match(text, match.end())
            at = passed.end() if passed else match.end()
            head = text[at : at + 2]
            found[head if len(head) == 2 and all(map(_HAN.match, head)) else ""] = text[match.start() : at + 2]
    tokens = _tokens(text)
    for at, token in enumerate(tokens):
        if token not in _DENYING | _DENYING_ELSEWHERE and not token.endswith("n't"):
            continue
        if token in _DENYING_VERBS and ("the" in tokens or _PASSED.intersection(tokens[at + 1 : at + 2])):
            continue  # of an English word, or of a noun
        head = ("", "") if tokens[at + 1 : at + 2] == ["by"] else next(_heads(tokens[at + 1 : at + 6]), None)
        if head == ("", "") and token in _DENIED_BEFORE:
            head = next(_heads(tokens[max(0, at - 5) : at][::-1]), None)
        if head is not None:
            found[head[0]] = f"{token} {head[1]}".strip()
    return found


def _heads(after: list[str]) -> Iterator[tuple[str, str]]:
    for at, word in enumerate(after):
        if word in _NO_DENIAL:
            return
        if word in _STOPS or (word == "do" and at == 1):  # "nothing to do with"
            break
        if word not in _PASSED and (stems := terms(word)):
            yield stems[0], word
            return
    yield "", ""


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.casefold().replace("’", "'"))[:_MOST]


def _has(head: str, text: str) -> bool:
    return head in text if _HAN.match(head) else any(terms(token) == [head] for token in _tokens(text))


def _written(head: str, text: str) -> str:
    """The words of a text that have this stem."""
    return head if _HAN.match(head) else next((one for one in _tokens(text) if terms(one) == [head]), head)


_OPPOSITES: Final = tuple(
    tuple(frozenset(side.split()) for side in pair.split("/"))
    for pair in (
        (
            "rise rises rose risen rising increase increases increased increasing grew grow grows growing gained / "
            "fall falls fell fallen falling decrease decreases decreased decreasing decline declined declines "
            "declining dropped drop drops shrank reduced reduces reduce"
        ),
        "before / after",
        "above / below",
        "north northern / south southern",
        "east eastern / west western",
        "minimum minimal / maximum maximal",
        "highest largest biggest longest most / lowest smallest shortest least",
        "higher larger greater more longer / lower smaller less fewer shorter",
        "first / last",
        "accept accepts accepted approve approves approved / reject rejects rejected decline declined refuse refused",
        "win wins won / lose loses lost",
        "include includes included including / exclude excludes excluded excluding",
        "allow allows allowed permitted permit permits / forbid forbids forbidden prohibit prohibits prohibited banned",
        "open opens opened / close closes closed",
        "begin begins began started starts start / end ends ended stopped stops stop",
        "buy buys bought purchased / sell sells sold",
        "male man men / female woman women",
        "son sons / daughter daughters",
        "brother brothers / sister sisters",
        "father / mother",
        "husband / wife",
        "possible / impossible",
        "legal / illegal",
        "succeed succeeded success successful / failed failure unsuccessful",
        "same / different",
        "hot warm / cold cool",
        "early earlier earliest / late later latest",
        "left / right",
        "public / private",
        "import imports imported / export exports exported",
        "borrow borrowed borrows / lend lends lent",
        "employer employers / employee employees",
        "landlord landlords / tenant tenants",
        "seller sellers / buyer buyers",
        "day daytime / night",
        "arrived arrives arrive / departed departs left leave leaves",
        "alive / dead",
        "majority / minority",
        "strengthened stronger strong / weakened weaker weak",
    )
)
_HAN_OPPOSITES: Final = tuple(
    tuple(side.split() for side in pair.split("/"))
    for pair in (
        "增加 上升 增长 提高 上涨 升高 增多 / 减少 下降 降低 下跌 下滑 减低",
        "之前 以前 / 之后 以后",
        "以上 / 以下",
        "高于 多于 大于 / 低于 少于 小于",
        "最高 最大 最多 最长 / 最低 最小 最少 最短",
        "最早 / 最晚 最迟",
        "包括 包含 / 不包括 不含 除外",
        "允许 可以 / 禁止 不得 严禁",
        "必须 / 不必 无需",
        "同意 批准 接受 / 反对 拒绝 否决",
        "胜利 获胜 击败 / 失败 落败 败给",
        "成功 / 失败",
        "开始 / 结束",
        "购买 买入 / 出售 卖出",
        "进口 / 出口",
        "男性 男子 / 女性 女子",
        "东部 东南 / 西部 西北",
        "北部 北方 / 南部 南方",
        "上午 早上 / 下午 晚上",
        "有效 / 无效",
        "合法 / 非法",
        "公开 / 秘密",
        "支持 / 反对",
        "首次 第一 / 最后",
    )
)
_HAN_EMPTY = re.compile(r"不(?:包括|含|得|必)")
_ALL = listed("all every always everyone everybody everything entirely never none nobody completely")
_SOME = listed("some most many several often usually sometimes partly partially few occasionally mostly rarely half")
_HAN_ALL = ("全部", "所有", "一切", "总是", "从不", "完全", "每一")
_HAN_SOME = ("部分", "一些", "有些", "多数", "有时", "通常", "往往", "少数", "一般")


_TURNING = (
    frozenset(stem for pair in _OPPOSITES for side in pair for word in side for stem in terms(word))
    | frozenset(word for pair in _HAN_OPPOSITES for side in pair for word in side if len(word) == 2)
    | frozenset(stem for word in _DENYING_ELSEWHERE for stem in terms(word))
    | listed("unless without except even provid 除非 如果 即使 无需 只有 未经")
)


def turns(word: str) -> bool:
    """Whether a word, or a pair of characters, has an opposite or denies."""
    return word in _TURNING or any(letter in "不没未无" for letter in word)


def opposites_in(mine: str, theirs: str) -> Both:
    """The words of which one sentence has the one and the other the opposite."""
    own, other = set(_tokens(mine)), set(_tokens(theirs))
    if not (own | other) & _DENYING and not any(token.endswith("n't") for token in own | other):
        for first, second in _OPPOSITES:
            for one, two in ((first, second), (second, first)):
                if own & one and other & two and not own & two and not other & one:
                    return min(own & one), min(other & two)
        for token in sorted(own ^ other):
            bare = re.sub(r"^(?:un|non-?)(?=[a-z]{4})(?!less\b)", "", token)
            if bare != token and bare in (other if token in own else own):
                return (token, bare) if token in own else (bare, token)
    if _HAN.search(mine):
        return _first_han(_HAN_OPPOSITES, mine[:_MOST], theirs[:_MOST])
    return None


def _first_han(pairs: Sequence[Sequence[Sequence[str]]], mine: str, theirs: str) -> Both:
    for first, second in pairs:
        for ones, twos in ((first, second), (second, first)):
            own = _first_of(ones, twos, mine)
            other = _first_of(twos, ones, theirs)
            if own and other and not _first_of(twos, ones, mine) and not _first_of(ones, twos, theirs):
                return own, other
    return None


def _first_of(wanted: Sequence[str], against: Sequence[str], text: str) -> str:
    """The first of some words that is there, but as a part of none of the words against them: 不包括 has 包括 in it."""
    for word in against:
        if any(one in word for one in wanted):
            text = text.replace(word, "　")
    return next((one for one in wanted if one in text), "")


def extents(mine: str, theirs: str) -> Both:
    """The word by which a sentence speaks of all, where the other one speaks of some."""
    own, other = set(_tokens(mine)), set(_tokens(theirs))
    if own & _ALL and not own & _SOME and other & _SOME and not other & _ALL:
        return min(own & _ALL), min(other & _SOME)
    if not _HAN.search(mine):
        return None
    every, some = _in(_HAN_ALL, mine), _in(_HAN_SOME, theirs)
    return (every, some) if every and some and not _in(_HAN_SOME, mine) and not _in(_HAN_ALL, theirs) else None


def _in(words: tuple[str, ...], text: str) -> str:
    return next((word for word in words if word in text), "")


# ---- who does it, and to whom

_SIDE = 8  # words, or characters of Chinese, on each side of what is done
_VERBS = listed(
    "bought beat bit sold won led taught sued gave sent paid wrote hired met told shot found built made took lent owes"
    " owed knew saw held became drew ran left chose fought struck caught overtook replaced"
)
_NO_ACT = listed("is was has its this as does across less always various towards series news based used")
_BEING = listed("is are was were be been being got gets")
_NEAR_BY = 3  # words between what is done and who does it: "closed down by"
_NO_OBJECT = listed("of in at on for from to with and or is are was were has have had will can may")
_BEFORE_NOUN = listed("the a an of its his her their our your my to these those")
_MARKED = re.compile("[被把向对由给]")
_ACTS = frozenset("买卖借租赢胜教付欠告骗救打骂娶嫁送")


def turned_round(mine: str, theirs: str) -> Both:
    """What is done, with both sides, where another sentence has the sides the other way round."""
    found = _english_round(mine, theirs)
    return found or (_chinese_round(mine[:_MOST], theirs[:_MOST]) if _HAN.search(mine) else None)


def _english_round(mine: str, theirs: str) -> Both:
    own, other = _acts(mine), _acts(theirs)
    for act, (before, after) in own.items():
        if act in other and _is_crossed(before, after, *other[act]):
            return _told(before, act, after), _told(other[act][0], act, other[act][1])
    return None


def _told(before: list[str], act: str, after: list[str]) -> str:
    return " ".join((*before[-2:], act, *after[:2]))


def _is_crossed(before: list[str], after: list[str], their_before: list[str], their_after: list[str]) -> bool:
    a, b, c, d = (set(map(str.casefold, side)) for side in (before, after, their_before, their_after))
    return bool(a & d and b & c and not a & c and not b & d)


def _acts(text: str) -> dict[str, tuple[list[str], list[str]]]:
    """The words that may say what is done, each with who does it and to whom; passive ones turned round."""
    tokens = [token.removesuffix("'s") for token in _TOKEN.findall(text.replace("’", "'"))[:_MOST]]
    found: dict[str, tuple[list[str], list[str]]] = {}
    for at, token in enumerate(tokens):
        is_act = token in _VERBS or (token.islower() and len(token) > 3 and token.endswith(("ed", "s")))
        if not is_act or token in _NO_ACT or (at and tokens[at - 1].casefold() in _BEFORE_NOUN):
            continue
        following = [one.casefold() for one in tokens[at + 1 : at + 1 + _SIDE]]
        is_passive = not _BEING.isdisjoint(map(str.casefold, tokens[max(0, at - 2) : at]))
        by = following.index("by") if "by" in following[: _NEAR_BY if is_passive else 1] else -1
        is_passive = is_passive or by == 0
        if (is_passive and by < 0) or (token[-1] == "s" and not _NO_OBJECT.isdisjoint(following[:1])):
            continue  # who does it is not told; or it is a noun
        before = _side(reversed(tokens[max(0, at - _SIDE) : at]))[::-1]
        after = _side(iter(tokens[at + 2 + by : at + 2 + by + _SIDE]))
        if is_passive:
            before, after = after, before
        if before and after and token not in found:
            found[token] = before, after
    return found


def _side(tokens: Iterator[str]) -> list[str]:
    """The words up to the next stop that say something."""
    side: list[str] = []
    for token in tokens:
        if token in _STOPS:
            break
        if token.casefold() not in STOP_WORDS:
            side.append(token)
    return side


def _chinese_round(mine: str, theirs: str) -> Both:
    for at in range(1, len(mine) - 2):
        for length in (2, 1):
            act = mine[at : at + length]
            if not all(map(_HAN.match, act)) or (length == 1 and act not in _ACTS) or EMPTY_CHARACTERS & set(act):
                continue
            there = theirs.find(act)
            if there < 1:
                continue
            own, other = _han_sides(mine, at, length), _han_sides(theirs, there, length)
            if _is_crossed(*own, *other):
                return _whole(mine, at, length), _whole(theirs, there, length)
    return None


def _han_sides(text: str, at: int, length: int) -> tuple[list[str], list[str]]:
    before = re.split(r"[^\u4e00-\u9fffA-Za-z·]", text[max(0, at - 2 * _SIDE) : at])[-1]
    after = re.split(r"[^\u4e00-\u9fffA-Za-z·]", text[at + length : at + length + _SIDE])[0]
    if marked := _MARKED.search(before):
        first, second = before[: marked.start()], before[marked.end() :]
        before, after = (second, first) if marked[0] in "被由" else (first, second + after)
    return _pieces(before), _pieces(after)


def _pieces(text: str) -> list[str]:
    return [a + b for a, b in pairwise(text) if a not in EMPTY_CHARACTERS and b not in EMPTY_CHARACTERS]


def _whole(text: str, at: int, length: int) -> str:
    return (
        re.split(r"[，。；！？,;\s]", text[max(0, at - _SIDE) : at])[-1]
        + text[at : at + length]
        + re.split(r"[，。；！？,;\s]", text[at + length : at + length + _SIDE])[0]
    )
