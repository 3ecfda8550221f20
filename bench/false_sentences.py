"""True sentences in other words, and false ones: a figure, a name, a month, a role or a denial is changed.

How a sentence is changed knows nothing of how it is checked.
"""

from __future__ import annotations

import json
import os
import random
import re
from calendar import month_name
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

DATA = Path(os.environ.get("BENCH_DATA") or Path(__file__).parents[2] / "shared" / "data") / "questions"
Kind: TypeAlias = Literal["true", "figure", "name", "month", "role", "denial"]
MONTHS = tuple(month_name)[1:]
_NAME = r"[A-Z][a-z]+(?: [A-Z][a-z]+)+"
_ONE_WORD = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_HAN_DIGITS = "零一二三四五六七八九"
_SURNAMED = re.compile(
    r"[王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶][一-龥]{1,2}(?=是|于|在|担任|出任|毕业|认为|表示|任)"
)
_HAN_PLACE = re.compile(
    r"(?:北京|上海|天津|重庆|广州|深圳|香港|台湾|日本|美国|英国|法国|德国|中国|韩国|广东|江苏|浙江|四川|湖南|湖北|河南|山东|福建|台北|东京|俄罗斯|意大利|西班牙|澳大利亚|加拿大|印度)"
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence about a passage.

    Args:
        text: As an answer might say it.
        passages: The texts it is held against; one of them bears it out if it is true.
        kind: What was changed; `true` where nothing was.
    """

    text: str
    passages: tuple[str, ...]
    kind: Kind


def texts(name: str, count: int, seed: int) -> list[str]:
    """Passages of a set, drawn by lot."""
    lines = (DATA / name / "passages.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["text"] for line in random.Random(seed).sample(lines, count)]


def sentences(lang: Literal["en", "zh"], count: int, seed: int) -> list[Sentence]:
    """True and false sentences about `count` passages, each held against its own passage and two others."""
    lots = random.Random(seed)
    drawn = texts("squad_dev" if lang == "en" else "cmrc2018", count, seed)
    made: list[Sentence] = []
    for at, text in enumerate(drawn):
        given = (drawn[at - 1], text, drawn[(at + 1) % count])
        parts = re.split(r"(?<=[a-z\d)]\.)\s(?=[A-Z])", text) if lang == "en" else re.findall(r"[^。！？\n]+。", text)
        whole = [one.strip() for one in parts if (40 if lang == "en" else 15) < len(one) < 260]
        for said in lots.sample(whole, min(3, len(whole))):
            reworded = _reworded(said, lots, lang)
            made.append(Sentence(reworded, given, "true"))
            made += [Sentence(false, given, kind) for kind, false in _falsified(said, text, lots, lang)]
    return made


# ---- in other words


def _reworded(said: str, lots: random.Random, lang: str) -> str:
    changes = _CHANGES if lang == "en" else _HAN_CHANGES
    for change in lots.sample(changes, 2):
        said = change(said)
    return said


def in_other_words(said: str, lots: random.Random, lang: str) -> str:
    """A sentence in other words, nothing of it left out."""
    changes = _CHANGES if lang == "en" else _HAN_CHANGES
    return lots.choice([change for change in changes if change not in {_shortened, _han_shortened}])(said)


def _in_figures(said: str) -> str:
    """Small numbers the other way: "three" for "3", and "3" for "three"."""
    if re.search(r"\b(?:two|three|four|five|six|seven|eight|nine|ten)\b", said):
        return re.sub(
            r"\b(two|three|four|five|six|seven|eight|nine|ten)\b",
            lambda one: str(_ONE_WORD.index(one[0])),
            said,
            count=1,
        )
    return re.sub(r"(?<![\w.,-])([2-9])(?![\w.,%-])", lambda one: _ONE_WORD[int(one[0])], said, count=1)


def _dated(said: str) -> str:
    said = re.sub(rf"({'|'.join(MONTHS)}) (\d{{1,2}}), (\d{{4}})", r"\2 \1 \3", said)
    return re.sub(r"(\d)%", r"\1 percent", said) if "%" in said else re.sub(r"(\d) percent", r"\1%", said)


def _without_brackets(said: str) -> str:
    return re.sub(r"\s?\([^()]*\)", "", said)


def _turned(said: str) -> str:
    """What stands before the first comma goes to the end."""
    found = re.fullmatch(r"((?:In|On|At|During|After|Before|By|From|Since|For) [^,.]{4,50}), (\S.+)\.", said)
    return f"{found[2][0].upper()}{found[2][1:]} {found[1][0].lower()}{found[1][1:]}." if found else said


def _shortened(said: str) -> str:
    """What follows the last comma goes, where enough is left."""
    head, comma, _ = said.rpartition(", ")
    return f"{head}." if comma and len(head) > 60 and " and " not in said[-60:] else said


def _synonyms(said: str) -> str:
    for one, other in (
        (" also ", " "),
        (" however", ""),
        (" because ", " since "),
        (" began ", " started "),
        (" many ", " numerous "),
        (" about ", " approximately "),
        (" such as ", " like "),
        (" located ", " situated "),
        (" large ", " big "),
    ):
        said = said.replace(one, other)
    return said


_CHANGES: list[Callable[[str], str]] = [_in_figures, _dated, _without_brackets, _turned, _shortened, _synonyms, str]


def _han_figures(said: str) -> str:
    return re.sub(r"(?<![\d.])([2-9])(?=个|名|位|次|座|所)", lambda one: _HAN_DIGITS[int(one[0])], said)


def _han_percent(said: str) -> str:
    return re.sub(r"(\d+(?:\.\d+)?)%", r"百分之\1", said)


def _han_shortened(said: str) -> str:
    head, comma, _ = said.rpartition("，")
    return f"{head}。" if comma and len(head) > 20 else said


def _han_without_brackets(said: str) -> str:
    return re.sub(r"（[^（）]*）", "", said)


def _han_synonyms(said: str) -> str:
    for one, other in (
        ("因为", "由于"),
        ("开始", "起初"),
        ("位于", "坐落于"),
        ("以及", "和"),
        ("并且", "而且"),
        ("大约", "约"),
    ):
        said = said.replace(one, other)
    return said


_HAN_CHANGES: list[Callable[[str], str]] = [
    _han_figures,
    _han_percent,
    _han_shortened,
    _han_without_brackets,
    _han_synonyms,
    str,
]


# ---- made false


def _falsified(said: str, text: str, lots: random.Random, lang: str) -> Iterator[tuple[Kind, str]]:
    makers: Mapping[Kind, Callable[[str, str, random.Random], str]] = _MAKERS if lang == "en" else _HAN_MAKERS
    for kind, make in makers.items():
        false = make(said, text, lots)
        if false and false != said and false not in text:
            yield kind, _reworded(false, lots, lang) if kind in {"figure", "name", "month"} else false


def _other_figure(said: str, text: str, lots: random.Random) -> str:
    found = list(re.finditer(r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?(?![\w-])", said))
    if not found:
        return ""
    one = lots.choice(found)
    elsewhere = [other for other in re.findall(r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?(?![\w-])", text) if other not in said]
    number = one[0].rstrip(",")
    value = float(number.replace(",", ""))
    near = (
        f"{value + lots.choice([-1, 1, 2, 3]) * max(1, round(value * 0.1)):.0f}"
        if value < 1000
        else str(int(value) + lots.randint(2, 30))
    )
    other = lots.choice(elsewhere).rstrip(",") if elsewhere and lots.random() < 0.5 else near
    return said[: one.start()] + other + said[one.start() + len(number) :]


def _other_month(said: str, _: str, lots: random.Random) -> str:
    found = re.search(rf"\b({'|'.join(MONTHS)})(?= \d)|(?<=\d )({'|'.join(MONTHS)})\b", said)
    if not found:
        return ""
    return said[: found.start()] + lots.choice([one for one in MONTHS if one not in said]) + said[found.end() :]


def _other_name(said: str, text: str, lots: random.Random) -> str:
    mine = re.findall(_NAME, said)
    there = sorted({one for one in re.findall(_NAME, text) if one not in said and not said.startswith(one)})
    others = (
        there
        if there and lots.random() < 0.5
        else ["Margaret Holloway", "Port Ellison", "Victor Lindqvist", "Camden Fields"]
    )
    if not mine:
        return ""
    name = lots.choice(mine)
    return said.replace(name, lots.choice(others))


def _other_role(said: str, _: str, _lots: random.Random) -> str:
    found = re.match(
        rf"((?:The )?{_NAME}) (\w+ed|won|beat|led|built|sold|bought|gave|took)( by)? ((?:the )?{_NAME})", said
    )
    if not found:
        found = re.match(
            r"((?:The )?[A-Z][a-z]+)s? (\w+ed|won|beat|led|built|sold|bought|gave|took)( by)? ((?:the )?[A-Z][a-z]+)",
            said,
        )
    if not found:
        return ""
    return f"{found[4]} {found[2]}{found[3] or ''} {found[1]}{said[found.end() :]}"


def _denial(said: str, _: str, _lots: random.Random) -> str:
    found = re.search(
        r"\b(is|was|are|were|can|will|could|would|has been|have been|had been|may|should)\b (?!not)", said
    )
    if not found:
        return ""
    verb = found[1].split()
    return f"{said[: found.start()]}{verb[0]} not {' '.join(verb[1:])}{' ' if verb[1:] else ''}{said[found.end() :]}"


_MAKERS: Mapping[Kind, Callable[[str, str, random.Random], str]] = {
    "figure": _other_figure,
    "name": _other_name,
    "month": _other_month,
    "role": _other_role,
    "denial": _denial,
}


def _han_figure(said: str, text: str, lots: random.Random) -> str:
    found = list(re.finditer(r"(?<![\d.])\d+(?:\.\d+)?", said))
    if not found:
        return ""
    one = lots.choice(found)
    elsewhere = [other for other in re.findall(r"(?<![\d.])\d+(?:\.\d+)?", text) if other not in said]
    value = float(one[0])
    near = f"{value + lots.choice([1, 2, 3]):.0f}"
    if said[one.end() :].startswith("月"):
        return ""
    return (
        said[: one.start()]
        + (lots.choice(elsewhere) if elsewhere and lots.random() < 0.5 else near)
        + said[one.end() :]
    )


def _han_month(said: str, _: str, lots: random.Random) -> str:
    found = re.search(r"(?<!\d)(\d{1,2})月", said)
    if not found:
        return ""
    other = lots.choice([month for month in range(1, 13) if f"{month}月" not in said])
    return f"{said[: found.start()]}{other}月{said[found.end() :]}"


def _han_name(said: str, text: str, lots: random.Random) -> str:
    for pattern in lots.sample([_SURNAMED, _HAN_PLACE, re.compile(r"《[^《》]+》")], 3):
        if found := pattern.search(said):
            others = [one for one in pattern.findall(text) if one not in said and one != found[0]]
            spare = {_SURNAMED: ["赵明远", "李国华", "孙丽"], _HAN_PLACE: ["秘鲁", "青岛", "挪威", "成都"]}
            made = (
                lots.choice(others)
                if others and lots.random() < 0.5
                else lots.choice(spare.get(pattern, ["《远山》", "《长河纪事》"]))
            )
            return said.replace(found[0], made)
    return ""


def _han_role(said: str, _: str, _lots: random.Random) -> str:
    found = re.match(
        r"([一-龥]{2,6})(收购|击败|任命|起诉|邀请|战胜|支持|帮助|攻打|影响|吸引|控制|管理|资助|取代)了?([一-龥]{2,6})(?=[，。])",
        said,
    )
    return f"{found[3]}{found[2]}{found[1]}{said[found.end() :]}" if found else ""


def _han_denial(said: str, _: str, _lots: random.Random) -> str:
    for one, other in (
        ("可以", "不可以"),
        ("能够", "不能够"),
        ("属于", "不属于"),
        ("包括", "不包括"),
        ("是", "不是"),
        ("有", "没有"),
    ):
        if (
            one in said
            and f"不{one}" not in said
            and "没有" not in said
            and not re.search(rf"(?:还|或|就|也|都|总|于|但|只|若|所|拥|没|具|共|含|占|享|私|国|公){one}", said)
        ):
            return said.replace(one, other, 1)
    return ""


_HAN_MAKERS: Mapping[Kind, Callable[[str, str, random.Random], str]] = {
    "figure": _han_figure,
    "name": _han_name,
    "month": _han_month,
    "role": _han_role,
    "denial": _han_denial,
}
