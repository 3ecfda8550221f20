"""Words of questions about tables that are known everywhere, in English and Chinese, and what each of them says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from core.rag.german_words import WORDS as GERMAN

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Token:
    """A part of a question.

    Args:
        text: As names are compared, in lower case.
        raw: As it was written.
        said: Which figure, or which comparison; of a number "year" where it may be one, "in 2024".
        column: The number of the column.
        number: Its number.
        unit: The unit of a number; of "how many" the word for rows in it; of a comparison which
            column it means, "age" of "older than".
        date: In ISO 8601: a day, a month or a year.
        wide: Whether it is a Chinese word, before which a column may stand.
        loose: Whether it may say nothing, as "多少" at the end.
        whole: Whether a word for a row is in it already: "who", "哪一行".
        dated: Whether it is said of dates alone: "latest".
        owned: Whether something before it has it: "the order with the highest".
    """

    kind: str
    text: str
    raw: str = ""
    said: str = ""
    column: int | None = None
    number: int | float | None = None
    unit: str = ""
    date: str = ""
    wide: bool = False
    loose: bool = False
    whole: bool = False
    dated: bool = False
    owned: bool = False


# ---- words that are known everywhere: kind, what it says, then the words


_ENGLISH: Final = """
count|is there any, are there any, were there any, was there any, is there a, is there an
count|how many, how many of the, number of, the number of, total number of, the total number of, count of, count, \
count the, count all
share|percentage, percent, percentage of, percent of, share of, proportion of, % of, which percentage of, \
which share of, which proportion of
figure sum|sum of, total of, sum, total, add up, sum up, total up
figure average|average of, average, mean, mean of, average value of
figure median|median of, median
figure highest|highest, largest, biggest, maximum, max, greatest, highest value of, maximum of
figure lowest|lowest, smallest, minimum, min, lowest value of, minimum of
dated highest|latest
dated lowest|earliest
most highest|the most, most
most lowest|the least, the fewest, least, fewest
which|which, in which, on which, for which, which one of the
who|who
thing|row, rows, record, records, entry, entries, line, lines
thing people|people, persons, person
thing staff|employees, employee, staff, workers, colleagues, staff members, students, student
thing sales|orders, order, sales orders, transactions, transaction, purchases, purchase
verb work|work, works, worked, are working, is working, is employed, are employed, were employed
verb live|live, lives, lived, are living
verb pay|earn, earns, earned, is paid, gets paid
verb sell|sold, bought, ordered, purchased
spent|spent, did we spend, have we spent, was spent, we spent, do we spend, we spend, have we spent so far
implied highest/age|oldest
implied lowest/age|youngest
implied highest/price|most expensive
implied lowest/price|cheapest, least expensive
sold highest|sold the most, sold most, sells the most, sells most, sells best, sold best, sold most often
sold highest|best selling, best-selling, top selling, top-selling, bestselling
none|no, without, without a, without an, without any, with no
list|list, list all, list the, list all the, list every, list all of the, list me, list me all
compare >|more than, greater than, larger than, higher than, bigger than, over, above, exceeds, exceed, exceeding, >, \
later than, after, is more than
compare <|less than, fewer than, smaller than, lower than, under, below, <, before, earlier than
compare >=|at least, >=, ≥, no less than, not less than, since, on or after, greater than or equal to
compare <=|at most, <=, ≤, no more than, not more than, up to, on or before, less than or equal to
compare >/age|older than
compare </age|younger than
compare >/price|more expensive than
compare </price|cheaper than
or_more >=|or more, and more, or higher, or above
or_more <=|or less, or fewer, or lower, or below
not|but not, but are not, but were not, \
is not, isn't, are not, aren't, was not, !=, ≠, <>, not equal to, is not equal to, other than, is other than, \
not, were not, weren't, wasn't, aren't, have not been, haven't been, has not been, hasn't been, have not, has not
is|is, are, was, were, have been, has been, =, ==, equals, equal to, is equal to, is set to
between|between
to|to
each|per, by, for each, for each of the, for every, in each, in every, of each, each, grouped by, by each, split by, \
broken down by
period month|month, months, calendar month
period quarter|quarter, quarters
period year|year, years, calendar year
contains|contains, contain, containing, that contains, includes
and|and, and also, and whose, ",", as well as
filler|the, a, an, of, in, on, for, from, with, where, whose, that, which have, which has, having, have, has, had, \
are there, is there, was there, were there, there are, there is, there were, there was, \
what, what's, what is, what are, do, does, did, \
all, my, our, this, these, please, tell me, tell me the, give me, \
calculate, compute, find, value, values, column, table, sheet, file, spreadsheet, 's, at, by value, their, its, it, \
show, how much, how high is, how large is, you, can you, could you, me, show me, within, among, data, altogether, \
in total, in all, recorded, listed, and the
owned highest|with the highest, with the largest, with the biggest, with the greatest, with the most, with the maximum
owned lowest|with the lowest, with the smallest, with the least, with the fewest, with the minimum
"""
_CHINESE: Final = """
count_rows|多少行, 多少条, 几行, 几条, 多少条记录, 几条记录, 多少行数据, 几行数据, 多少条数据, 多少笔记录
count|有多少个, 多少个, 有多少, 多少, 几个, 有几个, 多少笔, 多少张, 多少份, 多少位, \
多少名, 多少项, 多少家, 几笔, 几张, 几份, 几位, \
几名, 几项, 几家, 的数量, 数量
share|比例, 占比, 百分比, 所占比例, 所占百分比, 占多少百分比, 占百分之几, 占百分之多少, 占多大比例
figure sum|总和, 合计, 总计, 之和, 求和, 加起来, 汇总, 总, 总额
figure average|平均值, 平均数, 均值, 平均
figure median|中位数
figure highest|最大值, 最高值, 最大, 最高, 最多
figure lowest|最小值, 最低值, 最小, 最低, 最少
dated highest|最晚
dated lowest|最早
count|有没有, 是否有
list|列出, 列出所有, 列出全部, 列举
which|哪些
thing people|人
thing staff|员工, 职工, 学生
thing sales|订单, 交易
verb work|工作, 上班
verb live|居住, 住
verb pay|挣, 赚
implied highest/age|年龄最大, 最年长
implied lowest/age|年龄最小, 最年轻
implied highest/price|最贵
implied lowest/price|最便宜
sold highest|卖得最好, 卖得最多, 最畅销, 卖的最好, 卖的最多
which_row|哪一行, 哪行, 哪一条, 哪条, 哪条记录, 哪一条记录
which|哪个, 哪一个, 哪位, 哪一位, 哪家, 哪一家, 哪项, 哪一项, 哪笔, 哪一笔, 哪张, 哪一张, 哪份, 哪一份, 哪名, 哪一名, \
哪件, 哪一件, 哪
who|谁
thing|行, 条, 记录, 条记录, 数据行, 行数据
compare >|大于, 超过, 高于, 多于, 晚于
compare <|小于, 低于, 少于, 不到, 早于
compare >=|大于等于, 大于或等于, 不低于, 不少于, 不小于, 至少, 不早于
compare <=|小于等于, 小于或等于, 不超过, 不高于, 不大于, 不多于, 至多, 不晚于
or_more >=|以上, 及以上, 或以上
or_more <=|以下, 及以下, 或以下
or_more >|之后
or_more <|之前
not|不是, 不为, 不等于, 并非, 没有, 没, 未, 未被, 没有被
is|是, 为, 等于, 属于
to|到, 至
between|之间
each|每, 每个, 每一个, 每种, 每一种, 每类, 每一类, 每位, 每一位, 每家, 每一家, 各, 各个, 各种, 各类, 按, 按照, 按各
period month|月, 个月, 月份, 月度
period quarter|季度, 个季度, 季
period year|年, 年份, 年度
contains|包含, 含有, 包括
and|且, 并且, 而且, 同时, 以及, ，, 、, 和, 与
filler|的, 了, 呢, 吗, 啊, 请问, 请, 一共, 总共, 共, 共有, 有, 里, 里面, 中, 内, 表, 表中, 表里, 表格, 表格中, \
工作表, 文件, 其中, 那些, 所有, 全部, 在, \
这个, 该, 列, 值, 计算, 统计, 帮我, 告诉我, 那, 那一行, 一列, 是多少, 元的, 各有, 各自, 各自有, 分别, 分别有
"""


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Known words.

    Args:
        words: Each as the token that it is.
        longest: The number of letters of the longest of them.
    """

    words: Mapping[str, Token]
    longest: int


@lru_cache(maxsize=2)
def lexicon(*, german: bool = False) -> Lexicon:
    """All known words.

    Args:
        german: Whether German words are known, too, before English ones.
    """
    found: dict[str, Token] = {}
    texts = [(False, _ENGLISH), (True, _CHINESE)]
    for wide, text in [*texts, (False, GERMAN.casefold())] if german else texts:
        for line in text.strip().splitlines():
            head, _, words = line.partition("|")
            kind, _, said = head.partition(" ")
            said, _, called = said.partition(":")  # what follows is the English word that says the same
            for word in _split(words):
                token = _known(kind, word, said, wide=wide)
                found[word] = replace(token, text=called) if called else token
    return Lexicon(found, max(map(len, found)))


def _split(words: str) -> list[str]:
    """The words of a line; a comma in quotation marks is one of them."""
    return [one.strip().replace("\0", ",") for one in words.replace('","', "\0").split(",")]


def _known(kind: str, word: str, said: str, *, wide: bool) -> Token:
    match kind:
        case "compare" if "/" in said:
            sign, _, of = said.partition("/")
            return Token("compare", word, said=sign, unit=of, wide=wide)
        case "count_rows":
            return Token("count", word, said=said, unit="row", wide=wide)
        case "which_row" | "who":
            return Token("which", word, wide=wide, whole=True)
        case "dated":
            return Token("figure", word, said=said, wide=wide, dated=True)
        case "owned":
            return Token("figure", word, said=said, wide=wide, owned=True)
        case "count":
            return Token("count", word, wide=wide, loose=word in {"多少", "有多少"})
        case _:
            return Token(kind, word, said=said, wide=wide)
