"""Sentences on what was counted or computed over tables, in English and Chinese, and the passages that hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from core.messages.computed import Computed
from core.rag.document import Passage, numbered_as

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.languages import Lang
    from core.rag.tables.query import Named
    from core.rag.tables.store import Table

Thing: TypeAlias = Literal["row", "total", "value", "column", "page", "slide", "sheet"]

_LONGEST: Final = 80  # letters of a name
WORDS: Final[Mapping[Lang, Mapping[str, str]]] = {
    "en": {
        "sheet": "Sheet {title}",
        "titled": "The table {title}",
        "table": "The table in {document}",
        "rows": "{table} has {rows}.",
        "different": "{table} has {n} of {column} in {rows}.",
        "columns": "{table} has {n}.",
        "all": "{document} has {rows} in {n} tables: {each}.",
        "each": "{title} {n}",
        "between": ", ",
        "page": "{document} has {n}.",
        "sheets": "{document} has {n}: {each}.",
        "figure": "{table}: the {figure} of {column} is {value} ({rows}).",
        "sum": "sum",
        "average": "average",
        "median": "median",
        "highest": "highest value",
        "lowest": "lowest value",
        "some": "{some} of {rows}, as the others have no number",
        "held": "{table}: {some} of {rows} fulfil {where}.",
        "held_share": "{table}: {some} of {rows} fulfil {where}, which is {share}.",
        "held_different": "{table}: {n} of {column} in the {some} of {rows} that fulfil {where}.",
        "each_value": "{table}: {rows} by {column}: {each}.",
        "held_each_value": "{table}: {some} of {rows} fulfil {where}, by {column}: {each}.",
        "value": "{value}: {n}",
        "value_blank": "{value}: {n} ({blank} without a number)",
        "no_number": "no number",
        "each_figure": "{table}: the {figure} of {column} by {by}: {each} ({rows}).",
        "by_month": "month of {column}",
        "by_quarter": "quarter of {column}",
        "by_year": "year of {column}",
        "ranked": "{table}: the {n} values of {by} with the {rank} {figure} of {column}: {each} ({rows}).",
        "ranked_first": "{table}: the value of {by} with the {rank} {figure} of {column}: {each} ({rows}).",
        "ranked_rows": "{table}: the value of {by} with {rank} rows: {each} ({rows}).",
        "ranked_rows_shared": "{table}: the {n} values of {by} that share the place with {rank} rows: {each} ({rows}).",
        "rows_highest": "the most",
        "rows_lowest": "the fewest",
        "listed": "{table}: {n} of {column} in the {some} of {rows} that fulfil {where}: {each}.",
        "listed_all": "{table}: {n} of {column} in {rows}: {each}.",
        "listed_some": "{table}: {n} of {column}, of which the first {first} follow, in the {some} of {rows} that \
fulfil {where}: {each}, and {left} more.",
        "difference": "{table}: {more} − {less} = {difference}.",
        "rank_highest": "highest",
        "rank_lowest": "lowest",
        "those": "{some} of {rows}, those with {where}",
        "figure_where": "{table}: the {figure} of {column} is {value} ({rows}{blank}).",
        "blank": "; {n} of these without a number",
        "extreme": "{table}: the {figure} of {column}{where} is {value}, in row {row}: {cells}.",
        "extremes": "{table}: the {figure} of {column}{where} is {value}, in {n} rows: {each}.",
        "extreme_where": " with {where}",
        "tops": "{table}: the {figure} of {column}{where}: {each}.",
        "highest_of": "{n} highest values",
        "lowest_of": "{n} lowest values",
        "each_row": "row {row}: {cells}",
        "and": " and ",
        "empty": "{column} is empty",
    },
    "zh": {
        "sheet": "工作表 {title} ",
        "titled": "表格 {title} ",
        "table": "{document} 中的表格",
        "rows": "{table}有 {rows}。",
        "different": "{table}有 {rows}，其中 {column} 有 {n}。",
        "columns": "{table}有 {n}。",
        "all": "{document} 的 {n} 个表格一共有 {rows}：{each}。",
        "each": "{title} {n}",
        "between": "，",
        "page": "{document} 有 {n}。",
        "sheets": "{document} 有 {n}：{each}。",
        "figure": "{table}：{column} 的{figure}是 {value}（{rows}）。",
        "sum": "总和",
        "average": "平均值",
        "median": "中位数",
        "highest": "最大值",
        "lowest": "最小值",
        "some": "{rows}中的 {some} 行，其余没有数字",
        "held": "{table}：{rows}中有 {some} 行满足 {where}。",
        "held_share": "{table}：{rows}中有 {some} 行满足 {where}，占 {share}。",
        "held_different": "{table}：{rows}中满足 {where} 的 {some} 行里，{column} 有 {n}。",
        "each_value": "{table}：{rows}按 {column} 分：{each}。",
        "held_each_value": "{table}：{rows}中有 {some} 行满足 {where}，按 {column} 分：{each}。",
        "value": "{value}：{n}",
        "value_blank": "{value}：{n}（其中 {blank} 行没有数字）",
        "no_number": "没有数字",
        "each_figure": "{table}：{column} 的{figure}按 {by} 分：{each}（{rows}）。",
        "by_month": "{column} 的月份",
        "by_quarter": "{column} 的季度",
        "by_year": "{column} 的年份",
        "ranked": "{table}：{column} 的{figure}{rank}的 {n} 个 {by}：{each}（{rows}）。",
        "ranked_first": "{table}：{column} 的{figure}{rank}的 {by}：{each}（{rows}）。",
        "ranked_rows": "{table}：{rank}的 {by}：{each}（{rows}）。",
        "ranked_rows_shared": "{table}：并列{rank}的 {n} 个 {by}：{each}（{rows}）。",
        "rows_highest": "行数最多",
        "rows_lowest": "行数最少",
        "listed": "{table}：{rows}中满足 {where} 的 {some} 行里，{column} 有 {n}：{each}。",
        "listed_all": "{table}：{rows}里 {column} 有 {n}：{each}。",
        "listed_some": "{table}：{rows}中满足 {where} 的 {some} 行里，{column} 有 {n}，前 {first} 个是：{each}，\
另有 {left} 个。",
        "difference": "{table}：{more} − {less} = {difference}。",
        "rank_highest": "最高",
        "rank_lowest": "最低",
        "those": "{rows}中的 {some} 行，条件：{where}",
        "figure_where": "{table}：{column} 的{figure}是 {value}（{rows}{blank}）。",
        "blank": "；其中 {n} 行没有数字",
        "extreme": "{table}：{column} 的{figure}{where}是 {value}，在第 {row} 行：{cells}。",
        "extremes": "{table}：{column} 的{figure}{where}是 {value}，共有 {n} 行：{each}。",
        "extreme_where": "（条件：{where}）",
        "tops": "{table}：{column} {figure}{where}：{each}。",
        "highest_of": "最大的 {n} 个值",
        "lowest_of": "最小的 {n} 个值",
        "each_row": "第 {row} 行：{cells}",
        "and": " 且 ",
        "empty": "{column} 为空",
    },
}
_COUNTS: Final[Mapping[Lang, Mapping[Thing, tuple[str, str]]]] = {
    "en": {
        "row": ("1 row", "{n} rows"),
        "total": (", and 1 more row with totals", ", and {n} more rows with totals"),
        "value": ("1 value", "{n} different values"),
        "column": ("1 column", "{n} columns"),
        "page": ("1 page", "{n} pages"),
        "slide": ("1 slide", "{n} slides"),
        "sheet": ("1 sheet", "{n} sheets"),
    },
    "zh": {
        "row": ("1 行数据", "{n} 行数据"),
        "total": ("，另有 1 行合计", "，另有 {n} 行合计"),
        "value": ("1 个值", "{n} 个不同的值"),
        "column": ("1 列", "{n} 列"),
        "page": ("1 页", "{n} 页"),
        "slide": ("1 张幻灯片", "{n} 张幻灯片"),
        "sheet": ("1 个工作表", "{n} 个工作表"),
    },
}


def written(value: float) -> str:
    """A number with separators, and as many places as say something."""
    if float(value).is_integer():
        return f"{int(value):,}"
    text = f"{value:,.4f}".rstrip("0").rstrip(".")
    return text if abs(value) >= 1 else f"{value:.6g}"


def called_in(named: Named, lang: Lang) -> str:
    """How a sentence names a table."""
    title = line(named.table.title)
    if title:
        return WORDS[lang]["sheet" if numbered_as(named.document) == "sheet" else "titled"].format(title=title)
    return WORDS[lang]["table"].format(document=line(named.document))


def label(named: Named) -> str:
    """The title of a table, or its number."""
    return line(named.table.title) or f"({named.table.number})"


def body(table: Table) -> int:
    """How many rows a table has, without those that add up others."""
    return table.rows - table.totals


def rows_in(table: Table, lang: Lang) -> str:
    """How many rows a table has, in words."""
    return number_of("row", body(table), lang) + (number_of("total", table.totals, lang) if table.totals else "")


def number_of(of: Thing, n: int | None, lang: Lang) -> str:
    """A number of something, in words."""
    one, several = _COUNTS[lang][of]
    return one if n == 1 else several.format(n=f"{n or 0:,}")


def line(text: str) -> str:
    """A name in one line, cut where it is long."""
    said = " ".join(text.split())
    return said if len(said) <= _LONGEST else f"{said[: _LONGEST - 1]}…"


def passage_at(named: Named, text: str, figure: str) -> Passage:
    """A sentence as a passage that leads to a table.

    Args:
        figure: What it tells, as `Passage.computed` has it.
    """
    table = named.table
    told = Computed(figure)
    return Passage(text, 1.0, named.document, named.document_id, table.page, (), table.title, computed=told)


def passage(document_id: str, document: str, text: str, figure: str) -> Passage:
    """A sentence as a passage that leads to a document; arguments as of `passage_at`."""
    return Passage(text, 1.0, document, document_id, computed=Computed(figure))
