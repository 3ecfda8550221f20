"""Words that mean a column without naming it, or rows without being what the table is called.

"Who earns most?" means a column of salaries, "orders above 5,000" the only column of amounts, "how many people work in
Kiel?" the rows where each is somebody, and "the total by region" the sum of a column that is called Total.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from core.rag.question_words import Token
from core.rag.tables.subjects import SOMEBODY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.question_tokens import Vocabulary

# ---- columns that a word means: exactly one has to be called so, and none that would count as well

_MEANT: Final = {
    "pay": re.compile(
        r"^(?:(?:base|gross|net|annual|monthly|yearly) )?(?:salary|pay|wages?|income|compensation|earnings)$"
        r"|^(?:monats|jahres|brutto|netto|grund)?(?:gehalt|lohn|verdienst|einkommen)$|^(?:月|年)?(?:工资|薪资|薪水|薪酬|薪)$"
    ),
    "age": re.compile(r"^(?:age|alter|年龄)$"),
    "price": re.compile(
        r"^(?:(?:unit|list|retail|sale|sales|selling) ?)?price$|^(?:stück|verkaufs|einzel|listen)?preis$"
        r"|^(?:单价|售价|价格)$"
    ),
}
_BESIDE: Final = {
    "pay": re.compile(
        r"bonus|commission|allowance|overtime|hour|rate|\bfte\b|salary|\bpay\b|wage|income|compensation|earning"
        r"|gehalt|lohn|verdienst|einkommen|prämie|provision|zulage|stunde|奖金|提成|津贴|工资|薪"
    ),
    "age": re.compile(r"\bage\b|alter|年龄"),
    "price": re.compile(r"price|cost|preis|kosten|价"),
}
_COMPARE: Final = frozenset({
    "more than", "greater than", "larger than", "higher than", "bigger than", "over", "above", "exceeding", "exceed",
    "exceeds", ">", "less than", "smaller than", "lower than", "under", "below", "<", ">=", "≥", "<=", "≤", "at least",
    "at most", "mehr als", "größer als", "höher als", "über", "weniger als", "unter", "mindestens", "höchstens",
    "大于", "超过", "高于", "小于", "低于", "不到", "不超过", "至少",
})  # fmt: skip
_COST, _PRICE = frozenset({"cost", "costs", "kosten"}), re.compile("price|preis|价")
_SPENDING: Final = re.compile(r"expen[sd]|\bcosts?\b|spend|ausgabe|kosten|支出|费用|花费|报销|开支")
_ROWS: Final = frozenset({"thing", "subject", "column", "value", "number"})


def with_meant(tokens: Sequence[Token], known: Vocabulary) -> list[Token] | None:
    """The tokens with columns and rows in the place of the words that mean them; `None` where that is not clear."""
    found = _with_totals(tokens, known)
    for each in (_with_verbs, _with_implied, _with_compared):
        if found is None:
            return None
        found = each(found, known)
    return found


def _column_meant(said: str, known: Vocabulary) -> int | None:
    """The number of the only column that is meant: "pay", "age" or "price"; `None` where none is, or several may be."""
    there = known.called(_MEANT[said], "number")
    return there[0] if len(there) == 1 and known.called(_BESIDE[said]) == there else None


def only_amount(known: Vocabulary, unit: str = "") -> int | None:
    """The number of the only column of amounts, of shares where these are in percent; `None` where several are."""
    there = [at for at in known.amounts if unit != "%" or known.units[at] == "%"]
    return there[0] if len(there) == 1 else None


def _column(at: int) -> Token:
    return Token("column", "", column=at)


def _said(tokens: Sequence[Token], at: int, step: int) -> Token | None:
    """The next token that says something, before or behind a place."""
    at += step
    while 0 <= at < len(tokens) and tokens[at].kind == "filler":
        at += step
    return tokens[at] if 0 <= at < len(tokens) else None


# ---- a column that is called "Total"


def _with_totals(tokens: Sequence[Token], known: Vocabulary) -> list[Token] | None:
    """A "total" that is the name of a column, too, as one of these, or as the sum of that column."""
    found: list[Token] = []
    for at, one in enumerate(tokens):
        if one.kind != "both":
            found.append(one)
            continue
        if one.column is None or known.kinds[one.column] != "number":
            return None
        before, after = _said(tokens, at, -1), _said(tokens, at, 1)
        if before is not None and (before.kind in {"figure", "most", "compare"} or _is_by(before, tokens)):
            found.append(replace(one, kind="column"))
        elif after is not None and after.kind in {"column", "both"}:
            found.append(Token("figure", one.text, said="sum"))
        elif after is not None and after.kind in {"compare", "between", "number", "is"}:
            found.append(replace(one, kind="column"))
        elif after is not None and after.kind in {"thing", "subject", "count"}:
            return None  # "the total orders"
        else:
            found += [Token("figure", one.text, said="sum"), replace(one, kind="column")]
    return found


def _is_by(before: Token, tokens: Sequence[Token]) -> bool:
    """Whether it is "the largest order by total"."""
    return (before.kind, before.text) == ("each", "by") and any(it.kind in {"figure", "most"} for it in tokens)


# ---- verbs that say of somebody what a column holds

_LEAVING: Final = re.compile(
    r"\b(?:exit|left|leaving|end|ended|until|termination|terminated|active|inactive|status|retired)\b"
    r"|austritt|ausgeschieden|aktiv|\bende?\b|bis|离职|在职|状态"
)
_HOME: Final = re.compile(r"home|birth|born|resid|\blives?\b|wohn|geburt|heimat|herkunft|籍贯|出生|居住|住址")
_PLACE: Final = re.compile(
    r"\b(?:city|town|country|state|place|region|province|village|district)\b|resid|home|wohn|\b(?:stadt|ort|land)\b"
    r"|bundesland|城市|省份?|地区|居住|住址"
)
_EMPLOYED: Final = re.compile(
    r"depart|salary|wage|\bteam\b|position|job|hire|employ|abteilung|gehalt|lohn|eintritt|stelle|部门|工资|薪|入职|职位"
)
_WORK: Final = re.compile(
    r"office|work|branch|\bjob|site|plant|store|arbeit|büro|standort|filiale|werk|niederlassung|办公|工作|分公司|门店"
)
_OTHERS: Final = re.compile(r"\b(?:role|type|kind|position|rolle|typ|art|funktion)\b|身份|类型|角色|类别")


def _with_verbs(tokens: Sequence[Token], known: Vocabulary) -> list[Token] | None:
    """Without verbs such as "work" and "live", of which the rows are who does so now and where their column says."""
    of = {one.said for one in tokens if one.kind == "thing"}
    if (of & {"people", "staff"} and known.called(_LEAVING)) or ("staff" in of and known.called(_OTHERS)):
        return None  # not all of them are there still, or may be employees
    verbs = {one.said for one in tokens if one.kind == "verb" and one.said != "pay"}
    found = [one for one in tokens if one.kind != "verb" or one.said == "pay"]
    if verbs == {"sell"}:  # "how many products were sold" are pieces, and no products
        return found if tokens[0].kind == "list" else None
    if not verbs:
        return found
    if not _is_said_of_columns(verbs, tokens, known):
        return None
    if any(one.kind in {"thing", "subject"} or (one.kind == "which" and one.whole) for one in found):
        return found
    at = next((at for at, one in enumerate(found) if one.kind == "count"), None)
    if at is None or any(one.kind == "column" and one.column not in known.flags for one in found):
        return None
    return [*found[: at + 1], Token("thing", "", said="people"), *found[at + 1 :]]


def _is_said_of_columns(verbs: set[str], tokens: Sequence[Token], known: Vocabulary) -> bool:
    """Whether columns say where somebody works, or lives, and none says who does so no more."""
    columns = {at for one in tokens if one.kind == "value" for at in known.holds(one.text)}
    columns |= {one.column for one in tokens if one.column is not None and one.column in known.flags}
    if not columns or known.called(_LEAVING) or any(one.kind == "date" or one.said == "year" for one in tokens):
        return False
    home, place, work, people = (set(known.called(one)) for one in (_HOME, _PLACE, _WORK, SOMEBODY))
    if columns & people:
        return False  # "work in May"
    if verbs == {"work"}:
        return not columns & home
    # The city of an employee may be that of the office.
    return verbs == {"live"} and columns <= (home if known.called(_EMPLOYED) else place) and not columns & work


# ---- "earns most", "oldest", "cheapest"


def _with_implied(tokens: Sequence[Token], known: Vocabulary) -> list[Token] | None:
    """With the column that a superlative means behind all: "the cheapest lamp" is that with the lowest price."""
    earns = any(one.kind == "verb" for one in tokens)
    found: list[Token] = []
    meant: list[Token] = []
    for one in tokens:
        if one.kind == "verb":
            continue
        if one.kind == "spent":
            amount = only_amount(known)
            if amount is None or not (known.called(_SPENDING) or any(map(_SPENDING.search, known.subjects))):
                return None
            found += [Token("figure", one.text, said="sum"), _column(amount)]
        elif one.kind == "implied" or (earns and one.kind == "most"):
            said, _, of = (one.said if one.kind == "implied" else f"{one.said}/pay").partition("/")
            column = _column_meant(of, known)
            if column is None or meant:
                return None
            meant = [Token("figure", one.text, said=said), _column(column)]
            if not any(it.kind == "which" for it in tokens):
                found.append(Token("which", one.text))
        else:
            found.append(one)
    return None if earns and not meant else found + meant


# ---- comparisons without a column


def _with_compared(tokens: Sequence[Token], known: Vocabulary) -> list[Token] | None:
    """With the column that is compared: the one that the word means, "older than", or the only one of amounts."""
    found: list[Token] = []
    for at, one in enumerate(tokens):
        after = tokens[at + 1] if at + 1 < len(tokens) else None
        if one.kind == "column" and one.text in _COST and after and after.kind == "compare" and known.called(_PRICE):
            return None  # "products that cost more than 50" may be those with such a price
        if one.kind != "compare" or after is None or after.kind != "number":
            found.append(one)
            continue
        column: int | None = None
        if one.unit:
            column = _column_meant(one.unit, known)
            if column is None:
                return None
        elif one.text in _COMPARE and not _is_of_column(tokens, at):
            then = _said(tokens, at + 1, 1)
            column = None if then is not None and then.kind in _ROWS else only_amount(known, after.unit)
            if any(it.said in {"people", "staff"} or (it.kind == "which" and it.whole) for it in tokens):
                return None  # "people over 30"
        found += [one] if column is None else [_column(column), one]
    return found


def _is_of_column(tokens: Sequence[Token], at: int) -> bool:
    """Whether a column stands before a comparison."""
    before = next((it for it in reversed(tokens[:at]) if it.kind not in {"filler", "is"}), None)
    return before is not None and before.kind == "column"
