"""A calculator for models, which cannot multiply; it evaluates arithmetic and nothing else."""

from __future__ import annotations

import ast
import math
import operator
import re
import unicodedata
from typing import TYPE_CHECKING, Any, ClassVar

from core.errors import ToolError
from core.tools.base import BaseTool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LONGEST = 1000  # characters
_MOST_BITS = 10_000  # of a whole number: about 3,000 digits
_WRITTEN = str.maketrans({"×": "*", "·": "*", "⋅": "*", "✕": "*", "÷": "/", "⁄": "/", "−": "-", "–": "-", "—": "-",
                          "∕": "/", "^": "^", "π": "pi", "²": "^2", "³": "^3", "，": ",", "。": ".", "％": "%",
                          "【": "(", "】": ")", "[": "(", "]": ")", "{": "(", "}": ")"})  # fmt: skip
_IN_WORDS = (("乘以", "*"), ("乘", "*"), ("除以", "/"), ("加上", "+"), ("加", "+"), ("减去", "-"), ("减", "-"),
             ("等于多少", ""), ("等于几", ""), ("是多少", ""), ("等于", ""))  # fmt: skip
_NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_PERCENT = re.compile(rf"({_NUMBER})\s*%(?!\s*[\w(.])|({_NUMBER})\s*%(?=\s*(?:of\b|的))")
_PERCENT_OF_GROUP = re.compile(r"\)\s*%(?!\s*[\w(.])")
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_NODES = (ast.Expression, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Call, ast.Name, ast.Load, ast.operator, ast.unaryop)

_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {"expression": {"type": "string", "description": 'For example "17.5% of 2480" or "(3 + 4)^2 / 7".'}},
    "required": ["expression"],
}


class Calculator(BaseTool):
    """Arithmetic with exact whole numbers, clean decimals, percentages and the usual functions."""

    name = "calculator"
    description = (
        "Calculates an arithmetic expression exactly. Use it for every calculation. "
        "Understands + - * / ^ % ( ), sqrt, sin, cos, tan, log, ln, exp, abs, round, min, max, factorial, pi, e."
    )
    parameters = _PARAMETERS
    labels: ClassVar[Mapping[str, str]] = {"en": "Calculator", "zh": "计算器"}
    wishes: ClassVar[Mapping[str, str]] = {"en": "calculate something", "zh": "做计算"}
    deduplicate = True
    safe_output = True
    timeout = 5.0

    def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        """Calculate; the result reads `expression = value`.

        Raises:
            ToolError: It is not arithmetic, or has no finite value.
        """
        del kwargs
        written = str(self._verify_json_format_args(params)["expression"]).strip()
        return f"{written.rstrip('=？? ')} = {calculate(written)}"


def calculate(written: str) -> str:
    """The value of an expression, as text.

    Raises:
        ToolError: It is not arithmetic, too large, or has no finite value.
    """
    from simpleeval import InvalidExpression, SimpleEval  # pyright: ignore[reportMissingTypeStubs]

    if len(written) > _LONGEST:
        raise ToolError(f"The expression is longer than {_LONGEST} characters.")
    expression = _readable(written)
    try:
        tree = ast.parse(expression, mode="eval")
        _check(tree, written)
        evaluator: Any = SimpleEval(operators=_OPERATORS, functions=_FUNCTIONS, names=_NAMES)
        return _clean(evaluator.eval(expression, previously_parsed=tree.body))
    except ZeroDivisionError:
        raise ToolError("Division by zero has no value.") from None
    except OverflowError:
        raise ToolError("The result is too large.") from None
    except (SyntaxError, MemoryError, RecursionError):
        raise ToolError(f"This is not an arithmetic expression: {written}") from None
    except InvalidExpression as error:
        raise ToolError(f"This cannot be calculated: {error}") from None
    except (ValueError, TypeError) as error:
        raise ToolError(f"This has no value: {error}.") from None


def _readable(written: str) -> str:
    """Python's spelling of what people and models write, Chinese included."""
    text = unicodedata.normalize("NFKC", written.strip().translate(_WRITTEN)).translate(_WRITTEN)
    for word, sign in _IN_WORDS:
        text = text.replace(word, sign)
    text = text.rstrip("=?？ ")
    if not re.search(r"[A-Za-z]\s*\(", text):  # else the commas stand between arguments
        text = _THOUSANDS.sub(lambda found: found[0].replace(",", ""), text)
    text = re.sub(r"的\s*(\d+)\s*次方", r"^\1", text)
    text = re.sub(r"√\s*(\d+(?:\.\d+)?)", r"sqrt(\1)", text).replace("√", "sqrt")
    text = re.sub(r"(\d+|\([^()]*\))\s*!(?!=)", r"factorial(\1)", text)
    text = _PERCENT.sub(lambda found: f"({found[1] or found[2]}/100)", text)
    text = _PERCENT_OF_GROUP.sub(")/100", text)
    text = re.sub(r"\s+of\s+|的", "*", text)
    text = re.sub(r"(?<![\w.])0+(?=\d)", "", text)  # 007 is 7 to a person
    return text.replace("^", "**").strip()


def _check(tree: ast.Expression, written: str) -> None:
    for node in ast.walk(tree):
        number = not isinstance(node, ast.Constant) or (isinstance(node.value, (int, float)))
        if not isinstance(node, _NODES) or not number:
            raise ToolError(f"This is not an arithmetic expression: {written}")


def _clean(value: object) -> str:
    if isinstance(value, int):
        return str(_bounded(value))
    if not isinstance(value, float) or not math.isfinite(value):
        raise ToolError("The result is too large.")
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.15g}"


def _bounded(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise OverflowError
    return value


def _power(base: Any, exponent: Any) -> Any:
    whole = isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1
    if whole and (base.bit_length() - 1) * exponent > _MOST_BITS:
        raise OverflowError
    value = base**exponent
    if isinstance(value, complex):
        raise ValueError("a root of a negative number is not real")  # noqa: TRY004 - a sentence for the model
    return value


def _factorial(number: Any) -> int:
    if number != int(number) or number < 0:
        raise ValueError("the factorial needs a whole number from 0")
    if number > 1000:
        raise OverflowError
    return math.factorial(int(number))


def _sqrt(number: float) -> float:
    if number < 0:
        raise ValueError("a negative number has no real square root")
    return math.sqrt(number)


def _log(number: float, base: float = 10) -> float:
    if number <= 0:
        raise ValueError("a logarithm needs a number above 0")
    return math.log10(number) if base == 10 else math.log(number, base)


def _round(number: float, digits: int = 0) -> float:
    return round(number, int(digits))


def _add(left: Any, right: Any) -> Any:
    return _bounded(left + right)


def _subtract(left: Any, right: Any) -> Any:
    return _bounded(left - right)


def _multiply(left: Any, right: Any) -> Any:
    return _bounded(left * right)


def _divide(left: Any, right: Any) -> Any:
    return left / right


def _divide_down(left: Any, right: Any) -> Any:
    return left // right


def _log2(number: float) -> float:
    return _log(number, 2)


def _ln(number: float) -> float:
    return _log(number, math.e)


_OPERATORS: dict[type[ast.AST], Any] = {
    ast.Add: _add,
    ast.Sub: _subtract,
    ast.Mult: _multiply,
    ast.Div: _divide,
    ast.FloorDiv: _divide_down,
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": _sqrt, "log": _log, "log10": _log, "log2": _log2, "ln": _ln,
    "factorial": _factorial, "round": _round, "pow": _power, "exp": math.exp, "abs": abs, "min": min, "max": max,
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan,
    "floor": math.floor, "ceil": math.ceil, "degrees": math.degrees, "radians": math.radians, "gcd": math.gcd,
    "hypot": math.hypot, "cbrt": math.cbrt,
}  # fmt: skip
_NAMES = {"pi": math.pi, "e": math.e, "tau": math.tau}
