"""A SELECT taken apart as far as is needed to ask it a second time with the numbers of the rows that went into it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<string>'(?:[^']|'')*(?:'|\Z))
    |(?P<name>"(?:[^"]|"")*(?:"|\Z)|`[^`]*(?:`|\Z)|\[[^\]]*(?:\]|\Z))
    |(?P<word>[^\W\d]\w*)
    |(?P<number>\d[\w.]*)
    |(?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_CLAUSES = frozenset({"from", "where", "group", "having", "window", "order", "limit"})
_SET = frozenset({"union", "intersect", "except"})
_AGGREGATES = frozenset(
    {"sum", "avg", "count", "min", "max", "total", "group_concat", "string_agg", "median", "stddev"}
)
_EXTREME = frozenset({"min", "max"})
_KEYWORDS = frozenset(
    {"select", "distinct", "all", "where", "and", "or", "not", "by", "having", "on", "when", "then", "else", "case"}
    | {"between", "in", "is", "like", "glob", "from", "join", "limit", "offset", "using", "null", "end", "escape"}
)
_AFTER_TABLE = frozenset(
    {"on", "using", "join", "left", "right", "inner", "outer", "cross", "natural", "full", "indexed", "not"}
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    depth: int

    @property
    def word(self) -> str:
        return self.text.casefold() if self.kind == "word" else ""


@dataclass(frozen=True, slots=True)
class Statement:
    """A plain SELECT: one list of columns, from named tables.

    Args:
        text: All of it.
        tables: What its tables are called in it, and their names.
        aggregated: Whether several rows become one.
        distinct: Whether equal rows are given once.
        extreme: Whether its only aggregate is `min` or `max`: then one row says it.
        listed: Where the list of columns ends.
        ordered: Where HAVING, ORDER or LIMIT begin, or it ends.
    """

    text: str
    tables: tuple[tuple[str, str], ...]
    aggregated: bool
    distinct: bool
    extreme: bool
    listed: int
    ordered: int

    def traced(self, columns: int, function: str) -> str:
        """The same statement, with the rows that went in as further columns, one for each table.

        Args:
            columns: How many it has.
            function: The aggregate that gathers numbers of rows.
        """
        gathers = self.distinct or (self.aggregated and not self.extreme)
        more = "".join(f", {function}({alias}._row)" if gathers else f", {alias}._row" for alias, _ in self.tables)
        groups = ""
        if self.distinct and not self.aggregated:
            groups = f" GROUP BY {', '.join(map(str, range(1, columns + 1)))} "
        head, middle, tail = self.text[: self.listed], self.text[self.listed : self.ordered], self.text[self.ordered :]
        return f"{head.rstrip()}{more} {middle}{groups} {tail}"


def taken_apart(text: str) -> Statement | None:
    """A plain SELECT taken apart; `None` where it is another one, with a subquery for a table or a UNION."""
    text = text.strip().rstrip(";").rstrip()
    tokens = _tokens(text)
    if not tokens or tokens[0].word != "select":
        return None
    top = [token for token in tokens if token.depth == 0]
    if any(token.word in _SET or token.word == "window" for token in top):
        return None
    starts = {token.word: token.start for token in reversed(top) if token.word in _CLAUSES}
    if "from" not in starts:
        return None
    listed = starts["from"]
    after = [start for word, start in starts.items() if word != "from" and start > listed]
    source = [one for one in tokens if listed < one.start < min([*after, len(text) + 1])]
    tables = _tables(source[0:])
    columns = [one for one in tokens if one.start < listed]
    if tables is None or any(one.word in {"select", "over", "filter"} for one in columns[1:]):
        return None
    calls = _aggregates(columns)
    grouped = "group" in starts or bool(calls)
    ordered = min([start for word, start in starts.items() if word in {"having", "order", "limit"}] + [len(text)])
    distinct = len(columns) > 1 and columns[1].word == "distinct"
    if distinct and grouped:
        return None
    extreme = len(calls) == 1 and calls[0] in _EXTREME
    return Statement(text, tables, grouped, distinct, extreme, listed, ordered)


def names_in(text: str) -> set[str]:
    """All words and quoted names of a statement, in lower case: the tables that it may name are among them."""
    found: set[str] = set()
    for token in _tokens(text):
        if token.kind == "word":
            found.add(token.text.casefold())
        elif token.kind == "name":
            found.add(_bare(token.text).casefold())
    return found


def quoted_names(text: str) -> set[str]:
    """The names in quotation marks that a statement uses, in lower case, without those that it gives itself."""
    tokens = _tokens(text)
    given = {_bare(one.text).casefold() for before, one in pairwise(tokens) if _names(before, one)}
    return {_bare(one.text).casefold() for one in tokens if one.kind == "name"} - given


def _names(before: _Token, token: _Token) -> bool:
    """Whether a token in quotation marks is a name that is given here: `… AS "x"`, `count(*) "x"`, `WITH "x"`."""
    words = before.kind in {"word", "name"} and before.word not in _KEYWORDS
    return token.kind == "name" and (words or before.word in {"as", "with", "recursive"} or before.text == ")")


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    depth = 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if kind == "space":
            continue
        if match[0] == ")":
            depth -= 1
        found.append(_Token(kind, match[0], match.start(), depth))
        if match[0] == "(":
            depth += 1
    return found


def _bare(name: str) -> str:
    return name[1:-1].replace('""', '"') if name[:1] in {'"', "`", "["} else name


def _tables(tokens: list[_Token]) -> tuple[tuple[str, str], ...] | None:
    """What a FROM clause names: each as it is called, and its name; `None` where something else stands there."""
    found: list[tuple[str, str]] = []
    expects = True
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token.depth:
            continue
        if not expects:
            expects = token.text == "," or token.word == "join"
            continue
        if token.kind not in {"word", "name"}:
            return None
        name = alias = token.text
        if at < len(tokens) and tokens[at].text in {".", "("}:
            return None
        if at < len(tokens) and tokens[at].word == "as":
            at += 1
        if at < len(tokens) and tokens[at].kind in {"word", "name"} and tokens[at].word not in _AFTER_TABLE:
            alias = tokens[at].text
            at += 1
        found.append((alias, _bare(name)))
        expects = False
    return tuple(found) if found and not expects else None


def _aggregates(tokens: list[_Token]) -> list[str]:
    """The aggregates that are called among these; `min` and `max` of several values are none."""
    found: list[str] = []
    for at, token in enumerate(tokens[:-1]):
        if token.word not in _AGGREGATES or tokens[at + 1].text != "(":
            continue
        if token.word in _EXTREME and _has_several(tokens[at + 2 :], token.depth + 1):
            continue
        found.append(token.word)
    return found


def _has_several(tokens: list[_Token], depth: int) -> bool:
    for token in tokens:
        if token.depth < depth:
            return False
        if token.depth == depth and token.text == ",":
            return True
    return False
